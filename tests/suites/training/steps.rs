//! Training steps: losses fall, with equal bits on every run and any number of threads.

use crate::model::{CLASSES, Model, Tree, bits, data, train, trainer};
use autobatch::prelude::*;
use autobatch_tests::work_of_an_item;
use std::collections::HashSet;
use std::sync::Mutex;

#[test]
fn training_on_generated_trees_ends_below_a_fixed_loss_with_the_same_bits_on_one_and_two_threads() {
    let train_data = data(1, 320);
    let mut ends = Vec::new();
    for (threads, emitting) in [(1, 1), (2, 2), (1, 3), (1, 1)] {
        let (model, trainer) = trainer(threads);
        let mut trainer = trainer.emit_threads(emitting);
        let losses = train(&model, &mut trainer, &train_data, 0..10);
        let last = &losses[losses.len() - 20..];
        let mean = last.iter().map(|&bits| f32::from_bits(bits)).sum::<f32>() / 20.0;
        assert!(mean < 0.45, "the mean loss of the last epoch is {mean}");
        ends.push((losses, bits(&trainer)));
    }
    assert!(ends.iter().all(|end| *end == ends[0]), "seed 1: runs differ");
}

#[test]
fn the_trained_model_generalises_to_unseen_trees() {
    let (model, mut trainer) = trainer(1);
    train(&model, &mut trainer, &data(1, 320), 0..10);
    let valid = data(2, 200);
    let right = trainer
        .evaluate(&valid, |g, (tree, _)| model.logits(g, tree), |(_, class), p| p.argmax() == *class as usize)
        .unwrap();
    assert_eq!(right.count(), 200);
    assert!(right.mean() > 0.8, "accuracy {}", right.mean());
}

#[test]
fn dropout_differs_from_step_to_step_and_is_off_in_evaluation() {
    let (model, mut trainer) = trainer(1);
    let item = data(1, 8).remove(5);
    let loss = |trainer: &mut Trainer| trainer.step([&item], |g, item| model.loss(g, item)).unwrap().loss;
    let weights = trainer.weights().clone();
    let mut losses = Vec::new();
    for _ in 0..4 {
        losses.push(loss(&mut trainer));
        trainer.set_weights(weights.clone()).unwrap();
    }
    losses.dedup();
    assert!(losses.len() > 1, "noise repeats: {losses:?}");
    let quiet =
        |trainer: &mut Trainer| trainer.session().predict([&item], |g, item| model.loss(g, item)).unwrap();
    assert_eq!(quiet(&mut trainer), quiet(&mut trainer));
}

#[test]
fn frozen_parameters_do_not_change() {
    let (model, mut trainer) = trainer(1);
    trainer.freeze("words").unwrap();
    trainer.freeze("out").unwrap();
    let before = trainer.weights().clone();
    train(&model, &mut trainer, &data(1, 64), 0..1);
    let changed: Vec<bool> =
        before.iter().zip(trainer.weights().iter()).map(|(before, after)| before != after).collect();
    let names: Vec<&str> = before.iter().map(|param| param.name()).collect();
    assert_eq!(names, ["words", "join.w", "join.b", "out.w", "out.b"]);
    assert_eq!(changed, [false, true, true, false, false]);
}

#[test]
fn a_replaced_schedule_continues_like_an_equal_one() {
    let items = data(1, 16);
    let steps = |trainer: &mut Trainer, model: &Model| {
        (0..4).for_each(|_| drop(trainer.step(&items, |g, item| model.loss(g, item)).unwrap()));
    };
    let (model, mut planned) = trainer(1);
    planned.set_schedule(Schedule::step(4, 0.1));
    let (other, mut lowered) = trainer(1);
    let rate = lowered.learning_rate();
    steps(&mut planned, &model);
    steps(&mut lowered, &other);
    lowered.set_schedule(Schedule::custom(|_| 0.1));
    assert_eq!((planned.learning_rate(), lowered.learning_rate()), (rate * 0.1, rate * 0.1));
    steps(&mut planned, &model);
    steps(&mut lowered, &other);
    assert_eq!(bits(&planned), bits(&lowered));
}

#[test]
fn a_step_does_not_change_weights_that_a_caller_holds() {
    let (model, mut trainer) = trainer(1);
    let held = trainer.weights().clone();
    let copy = (*held).clone();
    train(&model, &mut trainer, &data(1, 32), 0..1);
    assert_eq!(*held, copy);
    assert_ne!(**trainer.weights(), copy);
}

#[test]
fn a_pass_prepares_its_minibatches_ahead_with_the_bits_of_single_steps() {
    let items = data(1, 400);
    let mut bad = items[3].clone();
    bad.1 = CLASSES;
    let none: Vec<&(Tree, u32)> = Vec::new();
    let mut batches: Vec<Vec<&(Tree, u32)>> = items.chunks(80).map(|batch| batch.iter().collect()).collect();
    batches.insert(2, vec![&items[0], &bad]);
    batches.insert(4, none);
    let loss =
        |step: autobatch::Result<Step>| step.map(|step| step.loss.to_bits()).map_err(|e| e.to_string());
    let (model, mut stepwise) = trainer(1);
    let expected: Vec<_> = batches
        .iter()
        .map(|batch| loss(stepwise.step(batch.iter().copied(), |g, item| model.loss(g, item))))
        .collect();
    assert_eq!(expected.iter().filter(|step| step.is_err()).count(), 2);
    for threads in [1, 2] {
        let (model, trainer) = trainer(threads);
        let mut trainer = trainer.emit_threads(1);
        let emitting = Mutex::new(HashSet::new());
        let own = std::thread::current().id();
        let steps = trainer.pass(batches.iter().map(|batch| batch.iter().copied()), |g, item| {
            emitting.lock().unwrap().insert(std::thread::current().id());
            work_of_an_item();
            model.loss(g, item)
        });
        let found: Vec<_> = steps.map(loss).collect();
        assert_eq!(found, expected, "{threads} threads");
        assert_eq!(bits(&trainer), bits(&stepwise), "{threads} threads");
        let others = emitting.into_inner().unwrap().into_iter().filter(|&id| id != own).count();
        assert_eq!(others > 0, threads > 1, "{threads} threads, {others} additional threads emitted");
    }
}

#[test]
fn a_pass_ends_with_its_minibatches_with_and_without_threads() {
    let items = data(1, 240);
    for threads in [1, 2] {
        let (model, trainer) = trainer(threads);
        let mut trainer = trainer.emit_threads(1);
        // The iterator ends after three minibatches and would continue after a further call.
        let mut asked = 0;
        let batches = std::iter::from_fn(|| {
            asked += 1;
            (asked != 4).then(|| items[..80].iter())
        });
        let steps = trainer.pass(batches.take(8), |g, item| {
            work_of_an_item();
            model.loss(g, item)
        });
        assert_eq!(steps.count(), 3, "{threads} threads");
    }
}

#[test]
fn a_trainer_is_unchanged_after_a_panic_in_any_closure() {
    let items = data(1, 64);
    let (model, mut untouched) = trainer(1);
    let expected = train(&model, &mut untouched, &items, 0..2);
    for threads in [1, 2] {
        let (model, trainer) = trainer(threads);
        let mut trainer = trainer.emit_threads(threads);
        let caught = |run: &mut dyn FnMut()| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("it panics");
        };
        let falls = |number: usize| assert!(number != 50, "the user's own");
        caught(&mut || {
            drop(trainer.step(items.iter().enumerate(), |g, (number, item)| {
                falls(number);
                model.loss(g, item)
            }));
        });
        caught(&mut || {
            drop(trainer.step(Minibatch::new(items.iter().enumerate()).in_parts(20), |g, (number, item)| {
                falls(number);
                model.loss(g, item)
            }));
        });
        caught(&mut || {
            drop(trainer.step_tasks(items.iter().enumerate(), async |g, (number, item)| {
                let loss = model.loss(g, item);
                loss.get().await?;
                falls(number);
                Ok(loss)
            }));
        });
        caught(&mut || {
            let batches = [items[..4].iter().enumerate().collect::<Vec<_>>(), vec![(50, &items[5])]];
            let steps = trainer.pass(batches, |g, (number, item)| {
                falls(number);
                model.loss(g, item) * g.constant(f32::NAN)
            });
            steps.for_each(drop);
        });
        caught(&mut || {
            let metric = |_: &(Tree, u32), _: &Row| -> f64 { panic!("the user's own") };
            drop(trainer.evaluate(&items, |g, (tree, _)| model.logits(g, tree), metric));
        });
        assert_eq!(train(&model, &mut trainer, &items, 0..2), expected, "{threads} threads");
        assert_eq!(bits(&trainer), bits(&untouched), "{threads} threads");
    }
}

#[test]
fn a_step_in_parts_has_the_losses_of_one_step_and_nearly_the_same_update() {
    let batch = data(1, 24);
    let (model, mut whole) = trainer(1);
    let once = whole.step(&batch, |g, item| model.loss(g, item)).unwrap();
    // Handles belong to their module, so every trainer has its own model.
    let (other, mut trainer) = trainer(1);
    let step = trainer.step(Minibatch::new(&batch).in_parts(7), |g, item| other.loss(g, item)).unwrap();
    assert_eq!(step.losses, once.losses);
    assert!(step.batches > once.batches);
    for (a, b) in whole.weights().iter().zip(trainer.weights().iter()) {
        let far = a.values().iter().zip(b.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-4, "{}: {far}", a.name());
    }
}

#[test]
fn a_free_step_may_sum_over_pairs_and_name_outputs() {
    let (model, mut trainer) = trainer(1);
    let items = data(1, 4);
    let g = trainer.session().graph();
    let logits: Vec<Value<'_>> = items.iter().map(|(tree, _)| model.logits(&g, tree)).collect();
    let apart = logits[0] - logits[1];
    g.output("apart", apart);
    let loss = apart.square().sum() + (logits[2] - logits[3]).square().sum();
    let step = trainer.step_graph(&g, [loss]).unwrap();
    assert_eq!((step.number, step.instances()), (0, 1));
    assert_eq!(step.output("apart").map(<[f32]>::len), Some(3));
    assert_eq!(step.output("nothing"), None);
    assert!(step.loss > 0.0 && step.bound <= step.batches);
}

/// Steps on two experts, of which each minibatch chooses one, and returns the weights after each step.
fn expert_steps(mut trainer: Trainer, experts: [Param; 2]) -> Vec<Vec<f32>> {
    let steps = [1, 0, 0, 1, 0].map(|chosen: usize| {
        let step = trainer.step([1.0, 3.0], |g, x: f32| g.param(experts[chosen]) * x);
        step.unwrap();
        trainer.weights().iter().map(|weight| weight.values()[0]).collect()
    });
    steps.into()
}

#[test]
fn parameters_that_a_minibatch_does_not_use_stay_as_they_are() {
    let make = |optimizer: Optimizer| {
        let mut m = ModuleBuilder::new("experts");
        let experts = ["a", "b"].map(|name| m.param(name, [], Init::Constant(1.0)));
        (Trainer::new(m.build().unwrap(), optimizer).unwrap(), experts)
    };
    let optimizers: [fn() -> Optimizer; 3] =
        [|| Adam::new(0.1).into(), || AdamW::new(0.1).into(), || Momentum::new(0.1, 0.9).into()];
    for optimizer in optimizers {
        let (trainer, experts) = make(optimizer());
        let whole = expert_steps(trainer, experts);
        // b is used in steps 0 and 3, a in the others.
        assert_eq!((whole[0][0], whole[1][1], whole[2][1]), (1.0, whole[0][1], whole[0][1]));
        assert_eq!(whole[3][0], whole[2][0]);
        assert!(whole[3][1] != whole[2][1] && whole[4][0] != whole[3][0]);
        for shards in [1, 2] {
            let (trainer, experts) = make(optimizer());
            assert_eq!(expert_steps(trainer.shards(shards), experts), whole, "{shards} shards");
        }
        let (trainer, experts) = make(optimizer());
        let all = expert_steps(trainer.update_unused(true), experts);
        assert!(all[1][1] != all[0][1], "the moments of b move it on");
    }
}
