//! A thread that panics while it emits an item, prepares the next minibatch or executes a plan changes nothing: the trainer goes on
//! with the bits of a run without the panic, and a checkpoint on disk stays whole.

use crate::model::{Model, bits, data, file, train, trainer};
use autobatch::prelude::*;
use autobatch::runtime_cpu::Interrupt;
use autobatch_tests::work_of_an_item;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_panicking_worker_changes_nothing() {
    let items = data(1, 32);
    let (model, mut whole) = trainer(1);
    train(&model, &mut whole, &items, 0..4);

    let path = file("panics.safetensors");
    let (model, trainer) = trainer(1);
    let mut trainer = trainer.emit_threads(2);
    train(&model, &mut trainer, &items, 0..2);
    trainer.save(&path).expect("the temporary folder exists");
    let before = bits(&trainer);
    for bad in [0, 7, 31] {
        let numbered: Vec<usize> = (0..items.len()).collect();
        let step = catch_unwind(AssertUnwindSafe(|| {
            trainer.step(&numbered, |g, &number| {
                assert!(number != bad, "the model panics at item {bad}");
                model.loss(g, &items[number])
            })
        }));
        assert!(step.is_err(), "the panic of item {bad} reaches the caller");
        assert_eq!(bits(&trainer), before, "after the panic of item {bad}");
    }
    train(&model, &mut trainer, &items, 2..4);
    assert_eq!(bits(&trainer), bits(&whole));
    let (_, mut loaded) = crate::model::trainer(1);
    loaded.load(&path).expect("the checkpoint is whole");
    assert_eq!(bits(&loaded), before);
}

#[test]
fn a_panic_while_a_plan_executes_changes_nothing() {
    let items = data(1, 32);
    for threads in [1, 2] {
        let (model, mut whole) = trainer(1);
        train(&model, &mut whole, &items, 0..2);
        let (model, module) = Model::new();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let interrupt = Interrupt::new(move || {
            // The runs of the first epoch, and the one behind the panic, go on.
            assert!(count.fetch_add(1, Ordering::Relaxed) != 5, "the program panics while a plan executes");
            false
        });
        let options =
            SessionOptions { threads, seed: 7, interrupt: Some(interrupt), ..SessionOptions::default() };
        let weights = Arc::new(Weights::init(&module, 7));
        let mut trainer = Trainer::with_options(module, Adam::new(0.02), weights, options).unwrap();
        let (mut panics, mut before) = (0, bits(&trainer));
        for epoch in 0..2 {
            for batch in items.batches(16).shuffled(epoch) {
                while catch_unwind(AssertUnwindSafe(|| {
                    trainer.step(batch.iter().copied(), |g, item| model.loss(g, item)).unwrap();
                }))
                .is_err()
                {
                    panics += 1;
                    assert_eq!(bits(&trainer), before, "the step did not end");
                }
                before = bits(&trainer);
            }
        }
        assert!(panics == 1 && asked.load(Ordering::Relaxed) > 6, "{panics} panics on {threads} threads");
        assert_eq!(bits(&trainer), bits(&whole), "{threads} threads");
    }
}

#[test]
fn a_panic_while_the_next_minibatch_is_prepared_reaches_the_caller_and_spoils_no_step() {
    let items = data(1, 96);
    let numbered: Vec<usize> = (0..items.len()).collect();
    let (model, mut whole) = trainer(1);
    let (model_of_pass, trainer_of_pass) = trainer(2);
    let mut trainer = trainer_of_pass.emit_threads(1);
    let mut steps = 0;
    let passed = catch_unwind(AssertUnwindSafe(|| {
        let batches = numbered.chunks(16).map(|batch| batch.iter().copied());
        for step in trainer.pass(batches, |g, number| {
            work_of_an_item();
            assert!(number != 70, "the model panics at item {number}");
            model_of_pass.loss(g, &items[number])
        }) {
            step.unwrap();
            steps += 1;
        }
    }));
    assert!(passed.is_err() && (3..=4).contains(&steps), "{steps} steps before the panic of minibatch 4");
    for batch in numbered.chunks(16).take(trainer.steps() as usize) {
        whole.step(batch.iter().copied(), |g, number| model.loss(g, &items[number])).unwrap();
    }
    assert_eq!(bits(&trainer), bits(&whole), "{steps} whole steps");
    for batch in numbered.chunks(16) {
        for (trainer, model) in [(&mut trainer, &model_of_pass), (&mut whole, &model)] {
            trainer.step(batch.iter().copied(), |g, number| model.loss(g, &items[number])).unwrap();
        }
    }
    assert_eq!(bits(&trainer), bits(&whole), "the trainer goes on");
}
