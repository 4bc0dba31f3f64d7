//! A run that is stopped changes nothing, and the next one has the bits of a run that nothing preceded.

use autobatch::nn::Linear;
use autobatch::prelude::*;
use autobatch::runtime_cpu::{Interrupt, RunError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const WIDTH: usize = 64;

/// A trainer of a chain of products, whose runs stop at a question with this number, counted over all runs.
fn trainer(threads: usize, stops_at: usize) -> (Linear, Trainer, Arc<AtomicUsize>) {
    let mut m = ModuleBuilder::new("chain");
    let layer = Linear::new(&mut m, "layer", WIDTH, WIDTH);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let interrupt = Interrupt::new(move || count.fetch_add(1, Ordering::Relaxed) + 1 == stops_at);
    let options = SessionOptions { threads, interrupt: Some(interrupt), ..SessionOptions::default() };
    let module = m.build().unwrap();
    let weights = Arc::new(Weights::init(&module, 3));
    (layer, Trainer::with_options(module, Adam::new(0.01), weights, options).unwrap(), asked)
}

/// The loss of a long chain: some hundred million operations for the items of a step.
fn loss<'g>(layer: &Linear, g: &'g Graph, number: u32) -> Value<'g> {
    let start = g.input(&[number as f32 / 100.0; WIDTH]);
    (0..60).fold(start, |value, _| layer.on(value).tanh()).square().mean()
}

fn step(layer: &Linear, trainer: &mut Trainer) -> autobatch::Result<Step> {
    trainer.step(0..600_u32, |g, number| loss(layer, g, number))
}

#[test]
fn a_step_stops_at_any_question_and_the_next_one_has_the_bits_of_a_first_step() {
    for threads in 1..=2 {
        let (layer, mut whole, asked) = trainer(threads, usize::MAX);
        let expected = step(&layer, &mut whole).unwrap();
        let questions = asked.load(Ordering::Relaxed);
        assert!(questions > 3, "a long step asks several times: in its waves and before its sums");
        for stops_at in 1..=questions {
            let (layer, mut trainer, asked) = trainer(threads, stops_at);
            let before = trainer.weights().clone();
            let error = step(&layer, &mut trainer).unwrap_err();
            assert!(matches!(error, Error::Run(RunError::Stopped)), "{error}");
            assert_eq!(asked.load(Ordering::Relaxed), stops_at, "nothing asks behind the stop");
            assert_eq!((trainer.weights(), trainer.steps()), (&before, 0));
            let again = step(&layer, &mut trainer).unwrap();
            assert_eq!(again.loss.to_bits(), expected.loss.to_bits());
            assert_eq!(trainer.weights(), whole.weights(), "{threads} threads, question {stops_at}");
        }
    }
}

#[test]
fn a_stopped_part_of_a_step_spoils_no_later_step() {
    let (layer, mut whole, _) = trainer(1, usize::MAX);
    step(&layer, &mut whole).unwrap();
    for stops_at in [2, 5] {
        let (layer, mut trainer, _) = trainer(1, stops_at);
        let mut open = trainer.begin_step(600.0).unwrap();
        let parts = (0..3).try_for_each(|part| {
            let graph = open.graph();
            let losses: Vec<_> = (0..200).map(|item| loss(&layer, &graph, 200 * part + item)).collect();
            open.part(&graph, losses, 200.0)
        });
        assert!(matches!(parts.unwrap_err(), Error::Run(RunError::Stopped)));
        step(&layer, &mut trainer).unwrap();
        assert_eq!(trainer.weights(), whole.weights());
    }
}

#[test]
fn a_growing_graph_goes_on_after_a_stop() {
    let chains = |stops_at: usize| {
        let (layer, mut trainer, _) = trainer(1, stops_at);
        let graph = trainer.session().graph();
        let mut growing = trainer.session().growing(&graph);
        let mut value_of = |items: std::ops::Range<u32>| {
            let losses: Vec<_> = items.map(|number| loss(&layer, &graph, number)).collect();
            let mean = graph.list(losses).mean();
            growing.value(mean).or_else(|error| {
                assert!(matches!(error, Error::Run(RunError::Stopped)), "{error}");
                growing.value(mean)
            })
        };
        [value_of(0..400).unwrap(), value_of(400..800).unwrap()]
    };
    let whole = chains(usize::MAX);
    for stops_at in 1..=4 {
        assert_eq!(chains(stops_at), whole, "question {stops_at}");
    }
}
