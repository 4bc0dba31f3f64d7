//! Dead code elimination: removes nodes that no requested value depends on.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every requested value; every remaining node is needed. An `alone` or
//! `shared` mark does not make a node needed. *Cost.* One backward walk, and a copy if a node is removed.
//!
//! Clustering skips unneeded nodes at less than the cost of a copy, so this pass changes no plan and is off by default. It serves
//! readers: `--print-after=dead` shows the planned graph, and a graph that is stored after passes becomes smaller.
//!
//! ```text
//! %2 = tanh(%0)   %3 = sigmoid(%0)   output "y" %3
//! %2 = sigmoid(%0)                   output "y" %2
//! ```

use super::pass::{Change, Context, count};
use autobatch_ir::graph::GraphData;
use autobatch_ir::graph::rebuild::Rebuild;

/// Removes unneeded nodes.
pub(crate) fn dead(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let arena = &graph.arena;
    let mut needed = vec![false; arena.len()];
    context.requested(graph).for_each(|value| needed[arena.producer(value).index()] = true);
    for node in arena.ids().rev() {
        if needed[node.index()] {
            for value in arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                needed[arena.producer(value).index()] = true;
            }
        }
    }
    let gone = needed.iter().filter(|&&needed| !needed).count();
    if gone == 0 {
        return None;
    }
    let mut rebuild = Rebuild::new(graph);
    for node in arena.ids().filter(|node| needed[node.index()]) {
        rebuild.copy(node);
    }
    let (graph, renaming) = rebuild.finish();
    Some(Change { graph, renaming, note: format!("{} dropped", count(gone, "node")) })
}
