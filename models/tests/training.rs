//! Trains every model on generated instances for about a minute: half the usual epochs, on one thread and again on
//! two. The mean losses of the last epoch stay below fixed values, and both runs have the same bits.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use autobatch::prelude::*;
use autobatch_models::catalogue::{ENTRIES, Entry, Options};
use autobatch_models::lessons::{self, Lesson};
use std::sync::Arc;

/// The upper bound of the mean loss of the last epoch: a third of the way from the reached loss to the first one.
const BELOW: [(&str, f32); ENTRIES.len()] = [
    ("mnist", 0.5),
    ("treelstm", 0.9),
    ("similarity", 0.92),
    ("tagger", 16.6),
    ("chartagger", 25.0),
    ("names", 1.19),
    ("acceptor", 1.37),
    ("treernn", 1.18),
    ("parser", 23.6),
    ("lattice", 129.0),
    ("sentiment", 50.7),
    ("transformer", 10.9),
    ("translate", 26.9),
    ("ggnn", 0.3),
    ("gat", 0.45),
    ("crf", 20.0),
    ("lm", 45.0),
];

fn lesson(entry: &Entry) -> Lesson {
    let options = Options { seed: 1, ..Options::default() };
    lessons::open(entry.name, &options).unwrap()
}

/// Trains with the usual options. Returns the losses of all steps, the number of steps per epoch, and the parameters.
fn train(lesson: &Lesson, threads: usize) -> (Vec<f32>, usize, Arc<Weights>) {
    let habits = lesson.habits;
    let options = SessionOptions { threads, seed: 1, ..SessionOptions::default() };
    let weights = Arc::new(Weights::init(&lesson.module, 1));
    let optimizer = Adam::new(habits.learning_rate).clip_norm(5.0);
    let mut trainer = Trainer::with_options(&lesson.module, optimizer, weights, options).unwrap();
    let (items, mut losses) = (lesson.train(), Vec::new());
    for epoch in 0..habits.epochs.div_ceil(2) {
        for batch in items.batches(habits.batch).shuffled(epoch) {
            let step = trainer.step(batch, |g, &instance| lesson.workload.loss(g, instance)).unwrap();
            losses.push(step.loss);
        }
    }
    (losses, items.len().div_ceil(habits.batch), Arc::clone(trainer.weights()))
}

fn mean(losses: &[f32]) -> f32 {
    losses.iter().sum::<f32>() / losses.len() as f32
}

#[test]
fn every_model_ends_below_a_fixed_loss_with_the_same_bits_on_one_and_two_threads() {
    for (entry, (name, below)) in ENTRIES.iter().zip(BELOW) {
        let lesson = lesson(entry);
        let (losses, epoch, weights) = train(&lesson, 1);
        let (first, last) = (mean(&losses[..epoch]), mean(&losses[losses.len() - epoch..]));
        println!("{name}: from {first} to {last}");
        let bits = |losses: &[f32]| losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
        let (again, _, other) = train(&lesson, 2);
        assert_eq!(bits(&losses), bits(&again), "{name}: losses on two threads");
        assert_eq!(weights, other, "{name}: parameters on two threads");
        assert!(name == entry.name && last < below, "{name}: {last}, expected below {below}");
    }
}
