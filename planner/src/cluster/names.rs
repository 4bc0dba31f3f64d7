//! Names of types: numbers that mean the same in every graph and every process.
//!
//! Type numbers count types in the order in which a graph meets them, so two graphs of one model number them differently. A name
//! is the identity of the signature, bodies of cells included, with the places that are bound and not computed. Tables of `fsm` keep
//! names: who changes them counts `NAMES` up (`schedule/fsm/document.rs`), so that older tables are refused.

use super::Clusters;
use crate::compile::Tables;
use crate::content;
use autobatch_ir::graph::GraphData;
use autobatch_ir::hash::StructureHash;
use autobatch_ir::id::NodeId;

impl Clusters {
    /// The name of each type.
    pub(crate) fn names(&self, graph: &GraphData, names: &mut Vec<u64>) {
        const NAMELESS: u64 = 0;
        names.clear();
        names.resize(self.types().len(), NAMELESS);
        for (&node, &ty) in self.jobs.iter().zip(&self.ty) {
            let own = &mut names[ty as usize];
            if *own == NAMELESS {
                *own = name(graph, node);
            }
        }
    }
}

fn name(graph: &GraphData, node: NodeId) -> u64 {
    let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
    let content = content::of_signature(tables, graph.arena.node(node).sig);
    let mut hash = StructureHash::default();
    hash.push(content as u64);
    hash.push((content >> 64) as u64);
    for (place, operand) in (0..).zip(graph.arena.operands(node)) {
        if operand.as_value().is_none() {
            hash.push(place);
        }
    }
    hash.value() as u64
}

#[cfg(test)]
mod tests {
    use crate::Jobs;
    use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, f32};

    #[test]
    fn names_are_those_of_the_version_that_tables_tell() {
        let mut m = ModuleBuilder::new("names");
        let table = m.table("table", [5, 2], Init::ZEROS);
        let weight = m.param("weight", [2, 2], Init::ZEROS);
        let leaf = m.cell("leaf", [INDEX], |_, [word]| [table.row(word)]);
        let job = m.cell("node", [f32(2), f32(2)], |g, [a, b]| [(g.affine([a], weight, None) + b).tanh()]);
        let g = Graph::new(&m.build().expect("the model is well typed"));
        let [a] = g.call(leaf, 3);
        let [b] = g.call(job, [a, a.relu()]);
        g.output("loss", b.cross_entropy(1));
        let graph = g.finish().expect("the graph is well typed");
        let names: Vec<String> =
            Jobs::new(&graph, &[]).names.iter().map(|name| format!("{name:016x}")).collect();
        // Where these change, older tables of `fsm` know nothing: count `NAMES` up, and write the new ones here.
        assert_eq!(names, ["caae32b22a54edd9", "03c49f750ca227fd", "c523d1c359b884a4", "ac400cedbf7708c8"]);
    }
}
