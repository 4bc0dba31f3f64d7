//! Lists and facts that the tests of several crates share.

use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::types::DType;

/// The names of all policies that need no file.
pub const POLICIES: [&str; 7] = ["none", "depth", "agenda", "agenda:remaining", "ratio", "beam:4", "auto"];

/// Policies of each kind: none, by level, greedy, and a search. For tests that cost much.
pub const FEW_POLICIES: [&str; 4] = ["none", "depth", "agenda", "auto"];

/// Returns whether a value is a float and no list.
#[must_use]
pub fn is_float(graph: &GraphData, value: ValueId) -> bool {
    let ty = graph.type_of(value);
    ty.dtype == DType::F32 && !ty.is_list
}

/// Returns the losses of a graph with different factors. A graph without losses has its float outputs instead.
#[must_use]
pub fn losses(graph: &GraphData) -> Vec<(ValueId, f32)> {
    const FACTORS: [f32; 3] = [1.0, 0.5, -2.0];
    let has_loss = graph.outputs.iter().any(|output| output.kind == OutputKind::Loss);
    let of_kind = graph.outputs.iter().filter(|output| !has_loss || output.kind == OutputKind::Loss);
    let floats = of_kind.map(|output| output.value).filter(|&value| is_float(graph, value));
    floats.enumerate().map(|(number, value)| (value, FACTORS[number % FACTORS.len()])).collect()
}

/// Returns whether two numbers are equal. Zeros of both signs are equal, and so are all NaNs.
#[must_use]
pub fn same_number(a: f32, b: f32) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}
