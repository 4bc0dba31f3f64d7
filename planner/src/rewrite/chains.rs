//! Another order of the nodes of a graph, in which chains are contiguous.
//!
//! A frontend that applies one op to all rows of a sequence after the other emits all rows of the first op, then all rows of the
//! second. Outlining finds runs of contiguous nodes. In this order each node stands directly behind the one whose result made
//! it ready, and the chain of one row behind that of another.

use autobatch_ir::graph::rebuild::{Rebuild, Renaming};
use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::NodeId;

/// The graph with contiguous chains, behind its inputs, constants and parameters in their order.
#[must_use]
pub fn in_chains(graph: &GraphData) -> (GraphData, Renaming) {
    let count = graph.arena.len();
    // The reads of values that each node waits for, and the readers of each node.
    let mut waits = vec![0u32; count];
    let mut readers: Vec<Vec<NodeId>> = vec![Vec::new(); count];
    for node in graph.arena.ids() {
        for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
            waits[node.index()] += 1;
            readers[graph.arena.producer(value).index()].push(node);
        }
    }
    let mut rebuild = Rebuild::new(graph);
    let mut is_there = vec![false; count];
    for node in graph.arena.ids().filter(|node| waits[node.index()] == 0).collect::<Vec<_>>() {
        rebuild.copy(node);
        is_there[node.index()] = true;
        readers[node.index()].iter().for_each(|reader| waits[reader.index()] -= 1);
    }
    let mut ready = Vec::new();
    for first in graph.arena.ids() {
        ready.push(first);
        while let Some(node) = ready.pop() {
            // In the order of the graph, all operands of a node come before it.
            if is_there[node.index()] || waits[node.index()] > 0 {
                continue;
            }
            rebuild.copy(node);
            is_there[node.index()] = true;
            for &reader in readers[node.index()].iter().rev() {
                waits[reader.index()] -= 1;
                // A list waits for chains of several rows, so it ends none.
                if waits[reader.index()] == 0 && graph.signature(reader).callee != Callee::Op(Op::List) {
                    ready.push(reader);
                }
            }
        }
    }
    rebuild.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::Graph;
    use autobatch_ir::module::{Init, ModuleBuilder};

    #[test]
    fn rows_come_one_after_the_other() {
        let mut m = ModuleBuilder::new("m");
        let w = m.param("w", [3, 3], Init::ZEROS);
        let module = m.build().expect("no fault");
        let g = Graph::new(&module);
        let rows: Vec<_> = (0..3).map(|row| g.input(&[row as f32; 3])).collect();
        let products: Vec<_> = rows.iter().map(|row| row.affine(w, None)).collect();
        let tanhs: Vec<_> = products.iter().map(|product| product.tanh()).collect();
        let mean = g.list(&tanhs).mean();
        let last: Vec<_> = tanhs.iter().map(|row| *row + mean).collect();
        g.output("last", last[2]);
        let data = g.finish().expect("no fault");
        let (chained, renaming) = in_chains(&data);
        assert!(chained.verify().is_ok());
        let names: Vec<_> = chained
            .arena
            .ids()
            .map(|node| chained.module.callee_name(chained.signature(node).callee))
            .collect();
        let expected = "input input input affine tanh affine tanh affine tanh list list_mean add add add";
        assert_eq!(names.join(" "), expected);
        assert_eq!(renaming.pairs().count(), data.arena.values());
    }
}
