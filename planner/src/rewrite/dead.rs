//! Dead code: nodes that no wanted value depends on go.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every wanted value, and that every
//! node left is needed. *Cost.* One walk backwards, and a copy if anything goes.
//! *Refuses* nothing: a mark does not make a node needed.
//!
//! Clustering marks what is needed by itself, for every graph, at a cost below that of a copy, so
//! this pass changes no plan and is off by default. It is for readers: `--print-after=dead` shows
//! what is planned, and for graphs that are stored after passes ran.
//!
//! ```text
//! %2 = tanh(%0)   %3 = sigmoid(%0)   output "y" %3
//! %2 = sigmoid(%0)                   output "y" %2
//! ```

use super::{Change, Context, count};
use autobatch_ir::graph::GraphData;
use autobatch_ir::graph::rebuild::Rebuild;

/// Drops what nothing needs.
pub(crate) fn dead(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let arena = &graph.arena;
    let mut needed = vec![false; arena.len()];
    context.kept(graph).for_each(|value| needed[arena.producer(value).index()] = true);
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
