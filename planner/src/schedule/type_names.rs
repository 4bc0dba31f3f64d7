//! Names of types: hashes that are the same in every graph and every process.
//!
//! Type numbers follow the order in which a graph first uses a type, so two graphs of one model number their types differently. A
//! name hashes the signature, with the bodies of cells, and the positions of bound operands. Tables of the policy `fsm` store
//! names. After a change of names, increment `NAMES` in `schedule/fsm/table.rs`, so that `fsm` rejects older tables.

use crate::cluster::Clusters;
use crate::kernels::{self, Tables};
use autobatch_ir::graph::GraphData;
use autobatch_ir::hash::StructureHash;
use autobatch_ir::id::NodeId;

/// Writes the name of each type.
pub(crate) fn type_names(graph: &GraphData, clusters: &Clusters, names: &mut Vec<u64>) {
    const NAMELESS: u64 = 0;
    names.clear();
    names.resize(clusters.types.len(), NAMELESS);
    for (&node, &ty) in clusters.jobs.iter().zip(&clusters.ty) {
        let own = &mut names[ty.index()];
        if *own == NAMELESS {
            *own = name(graph, node);
        }
    }
}

fn name(graph: &GraphData, node: NodeId) -> u64 {
    let content = kernels::content::of_signature(Tables::of(graph), graph.arena.node(node).sig);
    let mut hash = StructureHash::default();
    hash.push(content as u64);
    hash.push((content >> 64) as u64);
    for (index, operand) in (0..).zip(graph.arena.operands(node)) {
        if operand.as_value().is_none() {
            hash.push(index);
        }
    }
    hash.value() as u64
}
