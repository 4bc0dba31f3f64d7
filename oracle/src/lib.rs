//! The oracle: independent definitions of the meaning of graphs and plans, and proofs against them.
//!
//! * [`mod@reference`] evaluates a graph one op at a time, forward and in reverse, in f32 and f64.
//! * [`naive`] executes a plan one lane at a time.
//! * [`check`] proves that a plan computes its graph.
//! * [`equivalent`] proves that two graphs compute the same values.
//!
//! The crate shares no code with the planner or a runtime, so it detects faults in both.

#![forbid(unsafe_code)]

pub mod check;
pub mod equivalent;
pub mod naive;
pub mod reference;

use autobatch_ir::graph::Arena;
use autobatch_ir::id::ValueId;

/// For each node, whether one of the values depends on it.
fn needed(arena: &Arena, values: &[ValueId]) -> Vec<bool> {
    let mut needed = vec![false; arena.len()];
    values.iter().for_each(|&value| needed[arena.producer(value).index()] = true);
    for node in arena.ids().rev() {
        if needed[node.index()] {
            for value in arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                needed[arena.producer(value).index()] = true;
            }
        }
    }
    needed
}
