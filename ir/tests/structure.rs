//! The structural hash agrees with the structure: it is equal exactly for equal structures, over a
//! hundred thousand pairs of small graphs that are equal or nearly equal.

use autobatch_ir::graph::OutputKind;
use autobatch_ir::{Cell, Graph, GraphData, INDEX, Init, Module, ModuleBuilder, f32};
use std::collections::BTreeMap;
use std::sync::Arc;

const GRAPHS: usize = 460;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 33) as usize % end
    }
}

fn model() -> (Arc<Module>, Cell<1, 2>, Cell<4, 2>) {
    let mut m = ModuleBuilder::new("structure");
    let table = m.table("table", [64, 2], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [table.row(word), g.zeros([2])]);
    let node = m.cell("node", [f32([2]); 4], |_, [a, b, c, d]| [a + c, b * d]);
    (m.build().expect("the model is well-typed"), leaf, node)
}

/// A graph of few nodes of few kinds, so that equal structures are frequent.
fn graph(module: &Arc<Module>, leaf: Cell<1, 2>, node: Cell<4, 2>, random: &mut Random) -> GraphData {
    let g = Graph::new(module);
    let mut values = g.call(leaf, random.below(64) as u32).to_vec();
    for _ in 0..random.below(4) {
        let [a, b, c, d] = [(); 4].map(|()| values[random.below(2)]);
        match random.below(6) {
            0 => g.instance(random.below(9) as u64),
            1 => values.push(a + b),
            2 => values.push(g.list([a, b, c, d].iter().take(random.below(5)).chain([&a])).sum()),
            3 => values[1] = g.call(node, [a, b, c, d])[1],
            4 => values[0] = a.tanh().shared(),
            _ => values[0] = g.call(leaf, random.below(64) as u32)[0],
        }
    }
    g.output("last", values[values.len() - 1]);
    g.finish().expect("the graph is well-typed")
}

/// The complete structure as text.
fn spelled(graph: &GraphData) -> String {
    let types = |ids: &[_]| ids.iter().map(|&id| graph.ty(id).to_string()).collect::<Vec<_>>();
    let nodes = graph.arena.ids().map(|id| {
        let signature = graph.signature(id);
        let operands: Vec<u32> = graph.arena.operands(id).iter().map(|operand| operand.word()).collect();
        let types = (types(&signature.operands), types(&signature.results));
        format!("{:?} {types:?} {:?} {operands:?}", signature.callee, signature.params)
    });
    let nodes: Vec<String> = nodes.collect();
    let cuts: Vec<u32> = graph.cuts.iter().map(|cut| cut.first).collect();
    let outputs = graph.outputs.iter().map(|output| (output.value, output.kind == OutputKind::Loss));
    let outputs: Vec<_> = outputs.collect();
    format!("{nodes:?} {cuts:?} {outputs:?} {:?} {:?}", graph.shared, graph.alone)
}

#[test]
fn hashes_are_equal_exactly_for_equal_structures() {
    let (module, leaf, node) = model();
    let mut random = Random(11);
    let graphs: Vec<(String, u128)> = (0..GRAPHS)
        .map(|_| graph(&module, leaf, node, &mut random))
        .map(|graph| (spelled(&graph), graph.structure()))
        .collect();
    let (mut pairs, mut equal) = (0, 0);
    for (number, (one, hash)) in graphs.iter().enumerate() {
        for (other, other_hash) in &graphs[..number] {
            assert_eq!(one == other, hash == other_hash, "{one}\n{other}");
            pairs += 1;
            equal += usize::from(one == other);
        }
    }
    assert!(pairs >= 100_000 && equal >= 100, "{pairs} pairs, {equal} of them equal");
    let by_hash: BTreeMap<u128, &str> = graphs.iter().map(|(text, hash)| (*hash, text.as_str())).collect();
    assert!(by_hash.len() >= 100, "only {} different structures", by_hash.len());
}
