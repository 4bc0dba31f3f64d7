//! Finds the recurrent calls of a graph and their free operands.

use crate::rewrite::pass::marked;
use autobatch_ir::graph::{Callee, GraphData};
use autobatch_ir::id::{NodeId, SigId};

/// Largest number of examined signatures. Further signatures are never hoisted.
const MAX_SIGNATURES: usize = 64;

/// A recurrent call.
#[derive(Clone, Debug)]
pub(super) struct Recurrent {
    pub(super) sig: SigId,
    /// For each operand whether none of its values depends on a node of the signature.
    pub(super) free: Vec<bool>,
    /// Number of nodes.
    pub(super) applied: usize,
    /// The most nodes on one path, which is the least number of batches.
    pub(super) longest: usize,
}

/// The recurrent calls of cells, by first node.
pub(super) fn recurrent(graph: &GraphData) -> Vec<Recurrent> {
    let mut number: Vec<Option<usize>> = vec![None; graph.sigs.items().len()];
    let mut found = calls(graph, &mut number);
    if found.is_empty() {
        return found;
    }
    // For each value the set of found signatures that it depends on.
    let mut reached = vec![0u64; graph.arena.values()];
    for node in graph.arena.ids() {
        let own = number[graph.arena.node(node).sig.index()];
        let mut all = own.map_or(0, |own| 1 << own);
        for (place, operand) in graph.arena.operands(node).iter().enumerate() {
            let from = operand.as_value().map_or(0, |value| reached[value.index()]);
            all |= from;
            if let Some(own) = own.filter(|own| from >> own & 1 == 1) {
                found[own].free[place] = false;
            }
        }
        reached[graph.arena.results(node)].fill(all);
    }
    let mut is_unmarked = vec![true; graph.sigs.items().len()];
    for (at, _) in marked(graph).iter().enumerate().filter(|(_, marked)| **marked) {
        is_unmarked[graph.arena.node(NodeId::new(at)).sig.index()] = false;
    }
    let is_recurrence = |found: &Recurrent| {
        let mixed = found.free.contains(&true) && found.free.contains(&false);
        mixed && is_unmarked[found.sig.index()]
    };
    found.retain(is_recurrence);
    found.iter_mut().for_each(|found| found.longest = longest(graph, found.sig));
    found
}

/// The called signatures without noise, all operands free. `number` gets the position of each signature.
fn calls(graph: &GraphData, number: &mut [Option<usize>]) -> Vec<Recurrent> {
    let mut found: Vec<Recurrent> = Vec::new();
    for node in graph.arena.nodes() {
        let signature = graph.sigs.get(node.sig);
        let Callee::Cell(_) = signature.callee else { continue };
        if graph.module.noise_ports(signature) > 0 {
            continue;
        }
        match number[node.sig.index()] {
            Some(known) => found[known].applied += 1,
            None if found.len() < MAX_SIGNATURES => {
                number[node.sig.index()] = Some(found.len());
                let free = vec![true; signature.operands.len()];
                found.push(Recurrent { sig: node.sig, free, applied: 1, longest: 0 });
            }
            None => {}
        }
    }
    found
}

/// The most nodes of a signature on one path.
fn longest(graph: &GraphData, sig: SigId) -> usize {
    let mut depth = vec![0u32; graph.arena.values()];
    let mut most = 0;
    for node in graph.arena.ids() {
        let values = graph.arena.operands(node).iter().filter_map(|operand| operand.as_value());
        let before = values.map(|value| depth[value.index()]).max().unwrap_or(0);
        let own = before + u32::from(graph.arena.node(node).sig == sig);
        most = most.max(own);
        depth[graph.arena.results(node)].fill(own);
    }
    most as usize
}
