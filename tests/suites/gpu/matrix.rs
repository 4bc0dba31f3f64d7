//! Products on matrix units: near what they are without, alike in all batches, and only where they are asked for.

mod counts;
mod forms;

use crate::batches::{bits, cells};
use crate::common::{bound, executor, inferring, skipped, training, weights};
use crate::models;
use autobatch::prelude::*;
use autobatch_ir::id::ValueId;
use autobatch_ir::types::f32;
use autobatch_models::catalogue::ENTRIES;
use autobatch_runtime_wgpu::{Budget, Executor, Options, Terms, self_test};
use std::sync::Arc;

/// An executor that makes products on matrix units, or nothing where there are none and none are required.
pub(crate) fn with_units(terms: Terms) -> Option<Executor> {
    let executor = executor(Options { terms, ..Options::default() })?;
    let gpu = executor.gpu().expect("open");
    if gpu.matrix().is_none() {
        let required = std::env::var_os("AUTOBATCH_REQUIRE_MATRIX").is_some_and(|value| value == "1");
        assert!(!required, "AUTOBATCH_REQUIRE_MATRIX is 1: {} has no matrix units", gpu.facts().name);
        skipped(&format!("{} has no matrix units", gpu.facts().name));
        return None;
    }
    Some(executor)
}

/// The largest difference, as a share of the largest element of its row.
fn off(found: &[Vec<u32>], expected: &[Vec<u32>]) -> f32 {
    let float = |bits: &u32| f32::from_bits(*bits);
    let of_row = |(found, expected): (&Vec<u32>, &Vec<u32>)| {
        let largest = expected.iter().map(float).fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let pairs = found.iter().map(float).zip(expected.iter().map(float));
        pairs.map(|(a, b)| (a - b).abs() / largest).fold(0.0, f32::max)
    };
    found.iter().zip(expected).map(of_row).fold(0.0, f32::max)
}

#[test]
fn products_are_near_and_a_row_has_the_same_bits_in_a_batch_of_any_size() {
    let Some(mut whole) = executor(Options::default()) else { return };
    for (terms, within) in [(Terms::Pairs, 2e-6), (Terms::Halves, 2e-3)] {
        let Some(mut units) = with_units(terms) else { return };
        for width in [16, 37, 70] {
            let (graph, values) = cells(1, width);
            let alone = bits(&mut units, &graph, &values)[0].clone();
            for instances in [1, 2, 9, 17, 70, 300] {
                let (graph, values) = cells(instances, width);
                let together = bits(&mut units, &graph, &values);
                assert_eq!(together[0], alone, "{terms:?}, width {width}, {instances} instances");
                let off = off(&together, &bits(&mut whole, &graph, &values));
                assert!(off < within, "{terms:?}, width {width}, {instances} instances: off by {off:e}");
            }
        }
    }
}

#[test]
fn every_model_has_nearly_the_losses_that_it_has_of_whole_numbers() {
    let Some(mut whole) = executor(Options::default()) else { return };
    for (terms, within) in [(Terms::Pairs, 1e-5), (Terms::Halves, 1e-2)] {
        let Some(mut units) = with_units(terms) else { return };
        for entry in &ENTRIES {
            let (graph, losses) = models::sized(entry, 20);
            let wanted: Vec<ValueId> = losses.iter().map(|loss| loss.0).collect();
            let (found, expected) = (bits(&mut units, &graph, &wanted), bits(&mut whole, &graph, &wanted));
            let off = off(&found, &expected);
            assert!(off < within, "{terms:?}, {}: off by {off:e}", entry.name);
        }
    }
}

#[test]
fn rows_of_pieces_of_steps_have_the_same_bits_and_weights_become_halves_once() {
    let Some(mut units) = with_units(Terms::Halves) else { return };
    let budget = Budget { scratch: Some(64 << 10), ..Budget::default() };
    let Some(mut small) = executor(Options { terms: Terms::Halves, budget, ..Options::default() }) else {
        return;
    };
    let (graph, values) = cells(300, 37);
    let expected = bits(&mut units, &graph, &values);
    let dispatches = units.counters().dispatches;
    assert_eq!(bits(&mut small, &graph, &values), expected);
    assert!(small.counters().dispatches > dispatches, "{dispatches}: it was to be executed in pieces");
    // Of the same plan, once more.
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(&graph, &values);
    for turn in 0..2 {
        units.execute(&plan, &weights, bound(&graph, false)).expect("executes");
        assert_eq!(
            units.counters().dispatches,
            dispatches - turn,
            "one dispatch makes halves of all weights"
        );
    }
}

#[test]
fn plans_with_gradients_are_made_of_whole_numbers() {
    let Some(mut units) = with_units(Terms::Halves) else { return };
    let Some(mut whole) = executor(Options::default()) else { return };
    let entry = &ENTRIES[0];
    let (graph, losses) = models::sized(entry, 20);
    let plan = training(&graph, &losses);
    let losses_of = |executor: &mut Executor| {
        executor.execute(&plan, &weights(&graph), bound(&graph, true)).expect("executes");
        executor.output(0).to_vec()
    };
    assert_eq!(losses_of(&mut units), losses_of(&mut whole));
}

/// The tanh of an affine map of one input, with products made so.
fn tanh(terms: Terms) -> autobatch::Result<Vec<f32>> {
    let mut m = ModuleBuilder::new("tanh");
    let w = m.param("w", [32, 32], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([32])], |g, [x]| [g.affine([x], w, None).tanh()]);
    let module = m.build()?;
    let options = SessionOptions { device: "gpu".parse()?, terms, ..SessionOptions::default() };
    let mut session = Session::with_options(&module, Arc::new(Weights::init(&module, 3)), options)?;
    let graph = session.graph();
    let input: Vec<f32> = (0..32u8).map(|i| (f32::from(i) * 0.37).sin()).collect();
    let [y] = graph.call(cell, graph.input(&input));
    Ok(session.value(y)?.to_vec())
}

#[test]
fn terms_have_names_and_sessions_take_them() {
    for terms in [Terms::Whole, Terms::Pairs, Terms::Halves] {
        assert_eq!(terms.to_string().parse(), Ok(terms));
    }
    let error = "half".parse::<Terms>().expect_err("it is no name").to_string();
    assert!(error.contains("\"half\"") && error.contains("whole, pairs or halves"), "{error}");
    if with_units(Terms::Halves).is_none() {
        return;
    }
    let [whole, pairs, halves] =
        [Terms::Whole, Terms::Pairs, Terms::Halves].map(|terms| tanh(terms).expect("executes"));
    let off = |found: &[f32]| found.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off(&halves) > 1e-6 && off(&halves) < 2e-3, "off by {:e}", off(&halves));
    assert!(off(&pairs) < 2e-6, "off by {:e}", off(&pairs));
}

#[test]
fn the_self_test_finds_healthy_units() {
    for terms in [Terms::Pairs, Terms::Halves] {
        if with_units(terms).is_none() {
            return;
        }
        let found = self_test(Options { terms, ..Options::default() }).expect("executes");
        assert!(found.is_healthy() && !found.same_bits, "{found:?}");
    }
}
