//! Maps an index out of range to the item and the line that gave it. Plans know only positions of bound words, and nodes.

use crate::error::Error;
use crate::train::error::TrainError;
use autobatch_ir::NodeId;
use autobatch_ir::graph::{GraphData, OperandKind};
use autobatch_ir::plan::BindError;
use autobatch_runtime_cpu::RunError;
#[cfg(feature = "gpu")]
use autobatch_runtime_wgpu::GpuError;
use std::borrow::Cow;

/// Adds the item to an error of executing this graph, where possible. `planned` returns the graph of the plan, which passes
/// may have made of this one.
pub(crate) fn explained<'g>(
    graph: &'g GraphData,
    planned: impl FnOnce() -> Option<Cow<'g, GraphData>>,
    error: Error,
) -> Error {
    let bound = |word: usize| Some((Cow::Borrowed(graph), reader(graph, word)?, false));
    let computed = |node: Option<NodeId>| Some((planned()?, node?, true));
    let (place, found, limit) = match &error {
        Error::Run(RunError::Input(BindError::Index { word, found, limit, .. })) => {
            (bound(*word), *found, *limit)
        }
        Error::Run(RunError::Index(fault)) => (computed(fault.node), fault.found, fault.limit),
        #[cfg(feature = "gpu")]
        Error::Gpu(GpuError::Input(BindError::Index { word, found, limit, .. })) => {
            (bound(*word), *found, *limit)
        }
        #[cfg(feature = "gpu")]
        Error::Gpu(GpuError::Index(fault)) => (computed(fault.node), fault.found, fault.limit),
        _ => return error,
    };
    let Some((graph, node, computed)) = place else { return error };
    let item = graph.cuts.iter().rev().find(|cut| cut.first as usize <= node.index()).and_then(|cut| cut.key);
    let site = graph.site(graph.arena.node(node).site).clone();
    TrainError::Index { item, of_minibatch: false, computed, site, found, limit }.into()
}

/// The node that reads a bound word.
fn reader(graph: &GraphData, word: usize) -> Option<NodeId> {
    // Words are bound in the order of the nodes that read them; one node may read several.
    let reads = |node| {
        let slots = graph.arena.operands(node).iter().filter_map(|operand| match operand.kind() {
            Some(OperandKind::Index(slot)) => Some(slot as usize),
            _ => None,
        });
        slots.min().is_some_and(|first| first <= word)
    };
    graph.arena.ids().rev().find(|&node| reads(node))
}

/// Marks an error as one of a step, whose items belong to its minibatch.
pub(crate) fn of_minibatch(mut error: Error) -> Error {
    if let Error::Train(TrainError::Index { of_minibatch, .. }) = &mut error {
        *of_minibatch = true;
    }
    error
}
