//! Names of types: numbers that mean the same in every graph and every process.
//!
//! Type numbers count types in the order in which a graph meets them, so two graphs of one model number them differently. A name
//! is the identity of the signature, bodies of cells included, with the places that are bound and not computed.

use super::Clusters;
use crate::compile::Tables;
use crate::content;
use autobatch_ir::graph::GraphData;
use autobatch_ir::hash::StructureHash;
use autobatch_ir::id::AppId;

impl Clusters {
    /// The name of each type.
    pub(crate) fn names(&self, graph: &GraphData, names: &mut Vec<u64>) {
        const NAMELESS: u64 = 0;
        names.clear();
        names.resize(self.types().len(), NAMELESS);
        for (&app, &ty) in self.nodes.iter().zip(&self.ty) {
            let own = &mut names[ty as usize];
            if *own == NAMELESS {
                *own = name(graph, app);
            }
        }
    }
}

fn name(graph: &GraphData, app: AppId) -> u64 {
    let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
    let content = content::of_signature(tables, graph.arena.app(app).sig);
    let mut hash = StructureHash::default();
    hash.push(content as u64);
    hash.push((content >> 64) as u64);
    for (place, operand) in (0..).zip(graph.arena.operands(app)) {
        if operand.as_value().is_none() {
            hash.push(place);
        }
    }
    hash.value() as u64
}
