//! Maps a bound word to the item and the line that bound it. Plans know only the word's position.

use crate::error::Error;
use crate::train::error::TrainError;
use autobatch_ir::graph::{GraphData, OperandKind};
use autobatch_ir::plan::BindError;
use autobatch_runtime_cpu::RunError;

/// Adds the item to an error of executing this graph, where possible.
pub(crate) fn explained(graph: &GraphData, error: Error) -> Error {
    let misfit = match &error {
        Error::Run(RunError::Bound(misfit)) => misfit,
        #[cfg(feature = "gpu")]
        Error::Gpu(autobatch_runtime_wgpu::GpuError::Bound(misfit)) => misfit,
        _ => return error,
    };
    let &BindError::Index { word, found, limit, .. } = misfit else { return error };
    // Words are bound in the order of the nodes that read them; one node may read several.
    let reads = |node| {
        let slots = graph.arena.operands(node).iter().filter_map(|operand| match operand.kind() {
            Some(OperandKind::Index(slot)) => Some(slot as usize),
            _ => None,
        });
        slots.min().is_some_and(|first| first <= word)
    };
    let Some(node) = graph.arena.ids().rev().find(|&node| reads(node)) else { return error };
    let item = graph.cuts.iter().rev().find(|cut| cut.first as usize <= node.index()).and_then(|cut| cut.key);
    let site = graph.site(graph.arena.node(node).site).clone();
    TrainError::Index { item, of_minibatch: false, site, found, limit }.into()
}

/// Marks an error as one of a step, whose items belong to its minibatch.
pub(crate) fn of_minibatch(mut error: Error) -> Error {
    if let Error::Train(TrainError::Index { of_minibatch, .. }) = &mut error {
        *of_minibatch = true;
    }
    error
}
