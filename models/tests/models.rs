//! Every model of the catalogue at a small size: batching keeps the bits, losses are finite, options apply.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use autobatch::prelude::*;
use autobatch_models::catalogue::{ENTRIES, Entry, OpenError, OpenModel, Options, open};
use std::path::Path;
use std::sync::Arc;

fn small(entry: &Entry) -> OpenModel {
    let options = Options {
        seed: 3,
        count: Some(4),
        batch: Some(4),
        hidden: Some(6),
        embedding: (entry.embedding > 0).then_some(8),
        ..Options::default()
    };
    open(entry.name, &options).unwrap()
}

fn session(opened: &OpenModel, policy: Policy) -> Session {
    let weights = Arc::new(Weights::init(&opened.module, 0));
    let options = SessionOptions { policy: Some(policy), threads: 1, ..SessionOptions::default() };
    Session::with_options(&opened.module, weights, options).unwrap()
}

/// Returns the bits of all outputs of these instances, executed in one graph.
fn bits(session: &mut Session, opened: &OpenModel, instances: std::ops::Range<usize>) -> Vec<Vec<u32>> {
    let graph = session.graph();
    let mut outputs = Vec::new();
    for instance in instances {
        graph.instance(instance as u64);
        opened.workload.emit(&graph, instance, &mut outputs);
    }
    let run = session.run(&graph, &outputs).unwrap();
    outputs.iter().map(|&value| run[value].words()).collect()
}

#[test]
fn batched_instances_have_the_bits_of_single_instances() {
    for entry in &ENTRIES {
        let opened = small(entry);
        let count = opened.workload.instances();
        let together = bits(&mut session(&opened, Policy::default()), &opened, 0..count);
        let mut alone = session(&opened, Policy::None);
        let apart: Vec<_> = (0..count).flat_map(|k| bits(&mut alone, &opened, k..k + 1)).collect();
        assert_eq!(together, apart, "{}", entry.name);
        let different = together.iter().any(|output| *output != together[0]);
        assert!(count == 4 && different, "{}: instances must differ", entry.name);
    }
}

#[test]
fn losses_are_positive_scalars() {
    for entry in &ENTRIES {
        let opened = small(entry);
        let mut session = session(&opened, Policy::default());
        let count = opened.workload.instances();
        let losses = session.predict(0..count, |g, k| opened.workload.loss(g, k)).unwrap();
        for loss in losses {
            assert!(loss.len() == 1 && loss[0] > 0.0 && loss[0] < 1e3, "{}: {loss:?}", entry.name);
        }
    }
}

#[test]
fn numbers_without_an_instance_emit_nothing() {
    let opened = small(&ENTRIES[0]);
    let session = session(&opened, Policy::default());
    let (graph, mut outputs) = (session.graph(), Vec::new());
    opened.workload.emit(&graph, 4, &mut outputs);
    assert!(outputs.is_empty());
}

#[test]
fn the_parser_rejects_illegal_actions() {
    use autobatch_models::Model;
    use autobatch_models::parser::{Parser, Widths};
    let mut m = ModuleBuilder::new("parser");
    let parser = Parser::new(&mut m, 10, Widths { embedding: 4, action: 2, hidden: 4 });
    let module = m.build().unwrap();
    for actions in [vec![1], vec![0, 0, 0], vec![0, 1]] {
        let graph = Graph::new(&module);
        parser.emit(&graph, &(vec![3, 4], actions), &mut Vec::new());
        let error = graph.check().unwrap_err().to_string();
        assert!(error.contains("has no word or fewer than two phrases"), "{error}");
    }
}

#[test]
fn invalid_options_are_rejected() {
    let say = |name: &str, options: Options| open(name, &options).unwrap_err().to_string();
    let none = Options::default;
    assert_eq!(
        say("z", none()),
        "unknown model `z`: expected one of mnist, treelstm, similarity, tagger, chartagger, names, acceptor, treernn, parser, lattice, sentiment, transformer, translate, ggnn, gat, crf, lm"
    );
    assert_eq!(say("treelstm", Options { hidden: Some(0), ..none() }), "hidden must be 1 to 16384, found 0");
    assert_eq!(
        say("treelstm", Options { embedding: Some(9), ..none() }),
        "embedding must be left out: model `treelstm` has none of its own, found 9"
    );
    assert_eq!(
        say("names", Options { same: Some(9), ..none() }),
        "same must be left out: model `names` has no equal lengths, found 9"
    );
    assert_eq!(say("tagger", Options { same: Some(1001), ..none() }), "same must be 1 to 1000, found 1001");
    let file = Some(Path::new("missing.json").to_owned());
    assert_eq!(
        say("sentiment", Options { instances: file.clone(), ..none() }),
        "model `sentiment` has no JSON form of instances; name the folder of its corpus or generate instances"
    );
    assert!(matches!(open("treelstm", &Options { instances: file, ..none() }), Err(OpenError::Data(_))));
}
