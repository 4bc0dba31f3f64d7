//! A rejected step changes nothing and reports the reason.

use crate::model::{Model, bits, data, trainer};
use autobatch::prelude::*;
use autobatch::train::TrainError;
use std::sync::Arc;

#[track_caller]
fn says(result: autobatch::Result<Step>, words: &[&str]) {
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
    let free = trainer.step_with(|g| g.constant(f32::NAN) * g.param_sum(&model));
    says(free, &["step 0: expected a finite loss, found NaN"]);
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
    trainer.session().set_watch(false);
    let step = trainer.step_with(|g| (g.param(w) * 0.0).sqrt().sum()).unwrap();
    assert!(
        step.loss == 0.0 && trainer.weights().by_name("w").unwrap()[0].is_nan(),
        "without the watch the step succeeds"
    );
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
