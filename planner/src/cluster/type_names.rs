//! Names of types: hashes that are the same in every graph and every process.
//!
//! Type numbers follow the order in which a graph first uses a type, so two graphs of one model number their types differently. A
//! name hashes the signature, with the bodies of cells, and the positions of bound operands. Tables of the policy `fsm` store
//! names. After a change of names, increment `NAMES` in `schedule/fsm/document.rs`, so that `fsm` rejects older tables.

use super::Clusters;
use crate::kernels::{self, Tables};
use autobatch_ir::graph::GraphData;
use autobatch_ir::hash::StructureHash;
use autobatch_ir::id::NodeId;

impl Clusters {
    /// Writes the name of each type.
    pub(crate) fn type_names(&self, graph: &GraphData, names: &mut Vec<u64>) {
        const NAMELESS: u64 = 0;
        names.clear();
        names.resize(self.types.len(), NAMELESS);
        for (&node, &ty) in self.jobs.iter().zip(&self.ty) {
            let own = &mut names[ty as usize];
            if *own == NAMELESS {
                *own = name(graph, node);
            }
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

#[cfg(test)]
mod tests {
    use crate::Jobs;
    use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, f32};

    #[test]
    fn names_match_the_version_in_fsm_tables() {
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
        // If these change, older tables of `fsm` no longer match: increment `NAMES` and update the names here.
        assert_eq!(names, ["78852b2254ed7130", "03c49f750ca227fd", "c523d1c359b884a4", "ac400cedbf7708c8"]);
    }
}
