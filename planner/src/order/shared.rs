//! Checks the promise of `.shared()`: all rows of a batch that reads a shared value read it.

use super::rows::Rows;
use crate::context::Context;
use crate::error::PlanError;
use autobatch_ir::id::NodeId;

/// Scratch memory of [`check_shared`].
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Per value whether it is shared.
    shared: Vec<bool>,
}

/// Checks every batch.
pub(super) fn check_shared(context: &Context<'_>, memory: &mut Memory, rows: &Rows) -> Result<(), PlanError> {
    let (graph, shared) = (context.graph, &mut memory.shared);
    if graph.shared.is_empty() {
        return Ok(());
    }
    shared.clear();
    shared.resize(graph.arena.values(), false);
    graph.shared.iter().for_each(|value| shared[value.index()] = true);
    for batch in &rows.batches {
        let nodes = &rows.nodes[batch.lanes.clone()];
        for port in 0..graph.sigs.get(batch.sig).operands.len() {
            let read = |node: NodeId| graph.arena.operands(node)[port].as_value();
            let mut values = nodes.iter().filter_map(|&node| read(node));
            let Some(value) = values.find(|value| shared[value.index()]) else { continue };
            if let Some(&node) = nodes.iter().find(|&&node| read(node) != Some(value)) {
                let callee = graph.callee_name(batch.sig);
                return Err(PlanError::NotShared { value, other: read(node), callee });
            }
        }
    }
    Ok(())
}
