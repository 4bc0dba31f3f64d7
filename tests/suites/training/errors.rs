//! A rejected step changes nothing and reports the reason.

use crate::model::{Model, bits, data, trainer};
use autobatch::prelude::*;
use autobatch::train::TrainError;
use std::sync::Arc;

#[track_caller]
fn says<T: std::fmt::Debug>(result: autobatch::Result<T>, words: &[&str]) {
    let error = result.unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

#[test]
fn rejected_steps_name_the_item_and_leave_the_weights_unchanged() {
    let (model, mut trainer) = trainer(1);
    let before = bits(&trainer);
    let items = data(1, 40);
    let none: [&(crate::model::Tree, u32); 0] = [];
    says(trainer.step(none, |g, item| model.loss(g, item)), &["the minibatch has no items"]);
    let label = trainer.step(0..40_usize, |g, number| {
        let (tree, class) = &items[number];
        model.logits(g, tree).cross_entropy(if number == 17 { 9 } else { *class })
    });
    says(label, &["item 17 of the minibatch", "index 9", "errors.rs", "below 3"]);
    let infinite = trainer.step(0..40_usize, |g, number| {
        let loss = model.loss(g, &items[number]);
        if number == 5 { loss / g.zeros([]) } else { loss }
    });
    says(infinite, &["step 0: item 5 of the minibatch", "expected a finite loss, found inf"]);
    let shape = trainer.step(&items, |g, (tree, _)| model.logits(g, tree));
    says(shape, &["item 0", "a loss is a scalar f32, found f32[3]"]);
    let free = trainer.step([()], |g, ()| g.constant(f32::NAN) * g.param_sum(&model));
    says(free, &["step 0: item 0 of the minibatch", "expected a finite loss, found NaN"]);
    assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
}

#[test]
fn evaluate_and_predict_name_the_line_of_an_index_out_of_range() {
    let (model, mut trainer) = trainer(1);
    let items: Vec<u32> = (0..300).map(|number| if number == 290 { 999 } else { 1 }).collect();
    let tree = |word: u32| crate::model::Tree::Leaf(word);
    let measured = trainer.evaluate(&items, |g, &word| model.logits(g, &tree(word)), |_, row| row[0]);
    let predicted = trainer.session().predict(&items, |g, &word| model.logits(g, &tree(word)));
    for error in [measured.unwrap_err(), predicted.unwrap_err()] {
        let message = error.to_string();
        assert!(
            message.starts_with("item 290: index 999 bound at ") && message.contains("model.rs"),
            "{message}"
        );
    }
}

#[test]
fn labels_beyond_the_classes_are_rejected_by_every_op_that_reads_them() {
    let (model, mut trainer) = trainer(1);
    let (before, items) = (bits(&trainer), data(1, 20));
    let losses: [for<'g> fn(&'g Graph, Value<'g>, u32) -> Value<'g>; 4] = [
        |_, logits, label| autobatch::nn::losses::nll(logits.log_softmax(), label),
        |_, logits, label| -logits.log_softmax().pick(label),
        |g, logits, label| (g.one_hot(label, 3) * logits.log_softmax()).sum(),
        |_, logits, label| logits.hinge(label, 1.0),
    ];
    for loss in losses {
        let step = trainer.step(0..20_usize, |g, number| {
            let (tree, class) = &items[number];
            loss(g, model.logits(g, tree), if number == 7 { 9 } else { *class })
        });
        says(step, &["item 7 of the minibatch", "index 9 bound at", "errors.rs", "below 3"]);
    }
    assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
}

#[test]
fn a_computed_index_out_of_range_fails_the_execution() {
    let mut m = ModuleBuilder::new("root");
    let table = m.table("words", [4, 2], Init::Uniform(1.0));
    let mut trainer = Trainer::new(m.build().unwrap(), Sgd::new(0.1)).unwrap();
    for threads in [1, 2] {
        let options = SessionOptions { threads, ..SessionOptions::default() };
        let weights = std::sync::Arc::clone(trainer.weights());
        let mut session = Session::with_options(trainer.module(), weights, options).unwrap();
        let error =
            session.predict([2, 0, 1], |g, word: u32| table.lookup(g, g.index(word) - 1.0)).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("4294967295") && message.contains("below 4"), "{message}");
        assert!(message.contains("item 1") && message.contains("errors.rs"), "{message}");
    }
    let step = trainer.step(0..3_u32, |g, word| table.lookup(g, g.index(word) + 2.0).sum());
    says(step, &["item 2 of the minibatch: index 4 computed for", "errors.rs", "below 4"]);
    // Passes merge the equal sums and drop the unused product, so later nodes have other numbers.
    let merged = trainer.session().predict([0, 3], |g, word: u32| {
        let [one, same] = [(); 2].map(|()| g.index(word) + 1.0);
        let _ = g.index(word) * 7.0;
        table.lookup(g, one) + table.lookup(g, same)
    });
    says(merged, &["item 1: index 4 computed for", "errors.rs", "below 4"]);
    let picked = trainer.session().predict([3], |g, at: u32| g.input(&[1.0, 2.0]).pick(g.index(at)));
    assert!(picked.unwrap_err().to_string().contains("index 3 bound at"));
    assert_eq!(trainer.steps(), 0);
}

#[test]
fn arguments_out_of_range_are_refused_where_they_are_given() {
    for init in [Init::Uniform(f32::NAN), Init::Normal(-1.0), Init::Glorot(f32::INFINITY)] {
        let mut m = ModuleBuilder::new("m");
        m.param("w", [2, 2], init);
        let message = m.build().unwrap_err().to_string();
        assert!(message.contains("@w") && message.contains("errors.rs"), "{message}");
    }
    let (_, mut trainer) = trainer(1);
    let normalised = trainer.session().predict([1.0], |g, x| g.input(&[x, 2.0]).layer_norm(-1.0));
    let message = normalised.unwrap_err().to_string();
    assert!(message.contains("an eps of at least 0, found -1"), "{message}");
}

#[test]
fn indices_and_truth_values_are_read_as_numbers() {
    let (_, mut trainer) = trainer(1);
    let items = [[1.0, 3.0, 2.0], [0.0, -1.0, 5.0]];
    let best = trainer.session().predict(items, |g, x| g.input(&x).argmax()).unwrap();
    assert_eq!((best[0][..].to_vec(), best[1][..].to_vec()), (vec![1.0], vec![2.0]));
    assert_eq!(best[1].words(), [2]);
    let low = trainer.session().predict(items, |g, x| g.input(&x).less(2.5)).unwrap();
    assert_eq!((low[0][..].to_vec(), low[1].words()), (vec![1.0, 0.0, 1.0], vec![1, 1, 0]));
    let mean = trainer.evaluate(items, |g, x| g.input(&x).argmax(), |_, row| row[0]).unwrap();
    assert_eq!(mean.mean(), 1.5);
    let g = trainer.session().graph();
    let shifted = g.input(&items[1]).argmax() + 1.0;
    assert_eq!(trainer.session().value(shifted).unwrap(), [3.0]);
    let negative = g.constant(-2.0).cast(autobatch::ir::types::DType::I32);
    assert_eq!(trainer.session().value(negative).unwrap(), [-2.0]);
    let graph = trainer.session().graph();
    let awaited =
        trainer.session().tasks(&graph, [async { Ok(graph.input(&items[1]).argmax().get().await?) }]);
    assert_eq!(awaited.unwrap(), [[2.0]]);
}

#[test]
fn a_step_with_constant_losses_changes_nothing() {
    let (model, mut trainer) = trainer(1);
    let before = bits(&trainer);
    let step = trainer.step([1.0, 3.0], |g, loss| g.constant(loss)).unwrap();
    assert_eq!((step.losses, step.loss), (vec![1.0, 3.0], 2.0));
    assert_eq!((bits(&trainer), trainer.steps()), (before.clone(), 1));
    // An item without parameters counts in the mean and does not change the gradients of the others.
    let items = data(1, 2);
    let step = trainer.step(0..2_usize, |g, number| match number {
        0 => g.input_shaped([], &[5.0]),
        _ => model.loss(g, &items[1]),
    });
    assert!(step.unwrap().losses[0] == 5.0 && bits(&trainer) != before);
}

#[test]
fn a_watched_step_rejects_a_finite_loss_with_a_non_finite_gradient() {
    let mut m = ModuleBuilder::new("root");
    let w = m.param("w", [2], Init::ZEROS);
    let mut trainer = Trainer::new(m.build().unwrap(), Sgd::new(0.1).clip_norm(1.0)).unwrap();
    trainer.session().set_watch(true);
    let step = trainer.step([1.0, 0.0], |g, x: f32| (g.param(w) + x).sqrt().sum());
    says(step, &["sqrt'", "made NaN or an infinity of finite numbers"]);
    assert_eq!((trainer.steps(), trainer.weights().by_name("w").unwrap()), (0, &[0.0; 2][..]));
    trainer.step([1.0], |g, x: f32| (g.param(w) + x).sqrt().sum()).unwrap();
}

/// A trainer of a parameter and of a table with sparse rows.
fn rooted(shards: usize) -> (Trainer, Param, Table) {
    let mut m = ModuleBuilder::new("root");
    let w = m.param("w", [2], Init::Constant(4.0));
    let table = m.table("words", [40, 3], Init::Constant(1.0));
    let trainer = Trainer::new(m.build().unwrap(), Adam::new(0.1).clip_norm(1.0)).unwrap();
    let trainer = if shards > 0 { trainer.shards(shards) } else { trainer };
    (trainer, w, table)
}

fn bits_of(trainer: &Trainer) -> Vec<u32> {
    trainer.weights().iter().flat_map(|weight| weight.values()).map(|x| x.to_bits()).collect()
}

#[test]
fn a_gradient_that_is_not_finite_names_its_parameter_and_changes_nothing() {
    for shards in [0, 1, 3] {
        let (mut trainer, w, table) = rooted(shards);
        let before = bits_of(&trainer);
        let step = trainer.step([1.0, 0.0, 1.0], |g, x: f32| {
            (g.param(w) * x).sqrt().sum() + table.lookup(g, 7).sum() * 2.0
        });
        says(step, &["step 0: expected finite gradients", "@w", "unchanged", "skip_non_finite"]);
        let step = trainer.step([1.0, 0.0], |g, x: f32| {
            let row = table.lookup(g, 3 + u32::from(x == 0.0)) * x;
            row.sqrt().sum() + g.param(w).sum()
        });
        says(step, &["@words"]);
        assert_eq!((bits_of(&trainer), trainer.steps()), (before.clone(), 0));
        let step = trainer.step([1.0, 2.0], |g, x: f32| (g.param(w) * x).sum()).unwrap();
        assert!((step.gradient_norm.unwrap() - 1.5 * 2f64.sqrt()).abs() < 1e-6 && !step.skipped, "{step:?}");
        assert!(bits_of(&trainer) != before && trainer.steps() == 1);
    }
}

#[test]
fn skipped_steps_are_counted_and_change_nothing() {
    for shards in [0, 2] {
        let (trainer, w, _) = rooted(shards);
        let mut trainer = trainer.skip_non_finite(true);
        let before = bits_of(&trainer);
        let step = trainer.step([1.0, 0.0], |g, x: f32| (g.param(w) * x).sqrt().sum()).unwrap();
        assert!(step.skipped && step.gradient_norm.is_none() && step.loss == 2.0, "{step:?}");
        let step = trainer.step([1.0, 0.0], |g, x: f32| (g.param(w).sum() * x).recip()).unwrap();
        assert!(step.skipped && step.loss.is_infinite(), "{step:?}");
        assert_eq!((bits_of(&trainer), trainer.steps(), trainer.skipped()), (before.clone(), 2, 2));
        let step = trainer.step([1.0], |g, x: f32| (g.param(w) * x).sum()).unwrap();
        assert!(!step.skipped && bits_of(&trainer) != before && trainer.skipped() == 2);
    }
}

#[test]
fn gradients_whose_squares_overflow_or_vanish_have_their_norm() {
    for size in [1e30, 1e-25] {
        let (mut trainer, w, _) = rooted(0);
        let step = trainer.step([1.0], |g, x: f32| (g.param(w) * (x * size)).sum()).unwrap();
        assert!(
            (step.gradient_norm.unwrap() / (f64::from(size) * 2f64.sqrt()) - 1.0).abs() < 1e-6,
            "{step:?}"
        );
    }
}

#[test]
fn an_update_refuses_gradients_that_are_not_finite() {
    let (mut trainer, w, _) = rooted(0);
    let before = bits_of(&trainer);
    let g = trainer.session().graph();
    let loss = (g.param(w) * 0.0).sqrt().sum();
    trainer.backward(&g, loss, &[]).unwrap();
    let error = trainer.update().unwrap_err().to_string();
    assert!(error.contains("@w") && bits_of(&trainer) == before && !trainer.has_gradients(), "{error}");
}

#[test]
fn logsumexp_of_all_minus_infinity_has_no_gradient() {
    let mut m = ModuleBuilder::new("crf");
    let w = m.param("w", [2, 3], Init::ZEROS);
    let mut trainer = Trainer::new(m.build().unwrap(), Sgd::new(1.0)).unwrap();
    let none = f32::NEG_INFINITY;
    let step = trainer.step([()], |g, ()| {
        let mask = g.input_shaped([2, 3], &[none, none, none, 0.0, none, 0.0]);
        (g.param(w) + mask).logsumexp().logsumexp()
    });
    step.unwrap();
    assert_eq!(trainer.weights().by_name("w"), Ok(&[0.0, 0.0, 0.0, -0.5, 0.0, -0.5][..]));
}

#[test]
fn a_non_finite_learning_rate_is_rejected_before_any_update() {
    let (model, mut trainer) = trainer(1);
    let (before, items) = (bits(&trainer), data(1, 4));
    // The schedule expects updates that count from 1; its rate is infinite for update 0.
    trainer.set_schedule(Schedule::custom(|t| (t as f64).powf(-0.5)));
    let step = trainer.step(&items, |g, item| model.loss(g, item));
    says(step, &["update 0: expected a finite learning rate, found inf", "for every update from 0 on"]);
    assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
    trainer.set_schedule(Schedule::Constant);
    trainer.step(&items, |g, item| model.loss(g, item)).unwrap();
    let (_, module) = Model::new();
    let refused =
        Trainer::new(module, Adam::new(0.1).betas(1.0, 0.9)).expect_err("1 is out of range").to_string();
    assert!(refused.contains("betas.0 1.0 of adam") && refused.contains("from 0 to below 1"), "{refused}");
}

/// Emits a scalar that depends on parameters.
trait ParamSum {
    fn param_sum(&self, model: &Model) -> Value<'_>;
}

impl ParamSum for Graph {
    fn param_sum(&self, model: &Model) -> Value<'_> {
        model.logits(self, &crate::model::Tree::Leaf(1)).sum()
    }
}

#[test]
fn an_emit_error_names_its_item_on_any_number_of_threads() {
    let items = data(1, 40);
    let mut errors = Vec::new();
    for threads in [1, 2, 5] {
        let (model, trainer) = trainer(1);
        let mut trainer = trainer.emit_threads(threads);
        let step = trainer.step(0..40_usize, |g, number| {
            let logits = model.logits(g, &items[number].0);
            let logits = if number >= 30 { logits + g.zeros([4]) } else { logits };
            logits.cross_entropy(items[number].1)
        });
        errors.push(step.unwrap_err().to_string());
    }
    assert!(errors[0].contains("in instance 30 (key 30)"), "{}", errors[0]);
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:#?}");
}

#[test]
fn a_trainer_without_parameters_to_train_is_an_error() {
    let empty = ModuleBuilder::new("empty").build().unwrap();
    let error = Trainer::new(empty, Sgd::new(0.1)).unwrap_err();
    assert!(matches!(error, Error::Train(TrainError::NothingToTrain { frozen: 0 })), "{error}");
    let (_, mut trainer) = trainer(1);
    let error = trainer.freeze("join.v").unwrap_err();
    assert!(error.to_string().contains("found \"join.v\""), "{error}");
    ["words", "join"].into_iter().for_each(|name| trainer.freeze(name).unwrap());
    let error = trainer.freeze("out").unwrap_err();
    assert!(error.to_string().contains("all 5 parameters are frozen"), "{error}");
}

#[test]
fn an_excessive_number_of_threads_is_rejected() {
    let (_, trainer) = trainer(1);
    let module = Arc::clone(trainer.module());
    let options = || SessionOptions { threads: 100_000, ..SessionOptions::default() };
    let expected = "expected at most 1024 threads, found 100000";
    let weights = Arc::new(Weights::init(&module, 0));
    let session = Session::with_options(&module, Arc::clone(&weights), options()).map(|_| ());
    let trainer = Trainer::with_options(module, Sgd::new(0.1), weights, options()).map(|_| ());
    for error in [session.unwrap_err(), trainer.unwrap_err()] {
        assert!(error.to_string().contains(expected), "{error}");
    }
}
