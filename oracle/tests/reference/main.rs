//! Tests of the reference interpreter: every op against independently computed values, every
//! derivative against finite differences in f64, and its guarantees about order, noise,
//! indices and errors.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]

mod errors;
mod forward;
mod gradient;
mod models;
mod noise;
mod order;
mod weights;

use autobatch_ir::graph::{Callee, OperandKind};
use autobatch_ir::hash::split_mix;
use autobatch_ir::module::ModuleBuilder;
use autobatch_ir::numeric::Real;
use autobatch_ir::{Graph, GraphData, Module, Op, ParamId, Value, ValueId, Weights};
use autobatch_oracle::reference::{Evaluation, Noise};
use std::sync::Arc;

/// A SplitMix64 generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A number in `low..high`.
    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.bits() >> 40) as f32 / 16_777_216.0)
    }

    pub(crate) fn row(&mut self, length: usize, low: f32, high: f32) -> Vec<f32> {
        (0..length).map(|_| self.between(low, high)).collect()
    }
}

pub(crate) fn no_params() -> Arc<Module> {
    ModuleBuilder::new("none").build().unwrap()
}

/// A graph over a module, finished.
pub(crate) fn emit(module: &Arc<Module>, body: impl for<'g> FnOnce(&'g Graph)) -> GraphData {
    let g = Graph::new(module);
    body(&g);
    g.finish().unwrap_or_else(|error| panic!("{error}"))
}

/// The sum of a value's elements with random factors, so that a loss distinguishes all elements.
pub(crate) fn mixed<'g>(value: Value<'g>, random: &mut Random) -> Value<'g> {
    let g = value.graph();
    let coefficients = g.input_shaped(value.shape(), &random.row(value.shape().elements(), 0.3, 1.7));
    let products = value * coefficients;
    if products.shape().rank() == 0 { products } else { products.sum() }
}

/// The float inputs of a graph: the position of each in the pool, and its value.
fn inputs(graph: &GraphData) -> Vec<(usize, ValueId)> {
    let arena = &graph.arena;
    let input = |node| match (graph.signature(node).callee, arena.operands(node)[0].kind()) {
        (Callee::Op(Op::Input(_)), Some(OperandKind::Data(slot))) => {
            Some((slot as usize, ValueId::new(arena.results(node).start)))
        }
        _ => None,
    };
    arena.ids().filter(|&node| !arena.operands(node).is_empty()).filter_map(input).collect()
}

pub(crate) fn losses(graph: &GraphData) -> Vec<(ValueId, f32)> {
    graph.outputs.iter().map(|output| (output.value, 1.0)).collect()
}

/// Compares every derivative with respect to an input or parameter with central differences in f64, and the
/// gradients and values in f32 with those in f64.
///
/// Bounds: differences agree within 1e-6, f32 with f64 within 2e-4, of the larger of 1 and the
/// largest gradient or value of the same array.
pub(crate) fn check_gradients(name: &str, graph: &GraphData, weights: &Weights, mode: Noise) {
    let mut exact = Evaluation::<f64>::new(graph, weights, mode).unwrap();
    let losses = losses(graph);
    assert!(!losses.is_empty(), "{name}: the graph has no losses");
    let run = exact.forward().unwrap_or_else(|error| panic!("{name}: {error}"));
    let gradients = exact.reverse(&run, &losses).unwrap();
    let single = Evaluation::<f32>::new(graph, weights, mode).unwrap();
    let single_run = single.forward().unwrap();
    let single_gradients = single.reverse(&single_run, &losses).unwrap();
    for index in 0..graph.arena.values() {
        let id = ValueId::new(index);
        close(name, id, single_run.floats(id), run.floats(id));
        close(name, id, single_gradients.value(id), gradients.value(id));
    }
    let total = |exact: &Evaluation<'_, f64>| -> f64 {
        let run = exact.forward().unwrap();
        losses.iter().map(|&(loss, scale)| run.floats(loss).unwrap()[0] * f64::from(scale)).sum()
    };
    for (slot, id) in inputs(graph) {
        let Some(found) = gradients.value(id) else { continue };
        for (element, &found) in found.iter().enumerate() {
            let place = slot + element;
            let step = moved(&mut exact, total, |exact, by| exact.floats_mut()[place] += by);
            agree(name, &format!("{id}[{element}]"), found, step);
        }
    }
    for number in 0..weights.len() {
        let id = ParamId::new(number);
        close(name, id, single_gradients.param(id), gradients.param(id));
        let Some(found) = gradients.param(id) else { continue };
        for (element, &found) in found.iter().enumerate() {
            let step = moved(&mut exact, total, |exact, by| exact.param_mut(id)[element] += by);
            agree(name, &format!("{id}[{element}]"), found, step);
        }
    }
}

fn moved(
    exact: &mut Evaluation<'_, f64>,
    total: impl Fn(&Evaluation<'_, f64>) -> f64,
    shift: impl Fn(&mut Evaluation<'_, f64>, f64),
) -> f64 {
    let h = 1.0 / f64::from(1 << 17);
    shift(exact, h);
    let above = total(exact);
    shift(exact, -2.0 * h);
    let below = total(exact);
    shift(exact, h);
    (above - below) / (2.0 * h)
}

fn agree(name: &str, place: &str, found: f64, expected: f64) {
    let bound = 1e-6 * found.abs().max(1.0);
    assert!((found - expected).abs() <= bound, "{name}: {place}: rule {found}, difference {expected}");
}

fn close(name: &str, id: impl std::fmt::Display, single: Option<&[f32]>, exact: Option<&[f64]>) {
    let (Some(single), Some(exact)) = (single, exact) else {
        assert!(single.is_none() && exact.is_none(), "{name}: {id} must exist for both types");
        return;
    };
    assert_eq!(single.len(), exact.len(), "{name}: {id}");
    let bound =
        2e-4 * exact.iter().fold(1.0, |top: f64, x| if x.is_finite() { top.max(x.abs()) } else { top });
    for (&a, &b) in single.iter().zip(exact) {
        let (a, both_nan) = (a.to_f64(), a.is_nan() && b.is_nan());
        let same = (a - b).abs() <= bound || a == b || both_nan;
        assert!(same, "{name}: {id}: f32 {a}, f64 {b}");
    }
}
