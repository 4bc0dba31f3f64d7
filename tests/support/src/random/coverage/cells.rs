//! Coverage of cells: their operands, their results and their calls.

use super::note;
use autobatch_ir::graph::{Callee, Op};
use autobatch_ir::module::Body;
use autobatch_ir::{DType, GraphData, INDEX, NodeId};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn of_body(graph: &GraphData, body: &Body, seen: &mut BTreeSet<&'static str>) {
    let own = body.ports - if body.noise { 2 } else { 0 };
    note(seen, own == 0, "a cell without ports");
    let words = body.port_types().map(|ty| graph.ty(ty)).any(|ty| ty.dtype != DType::F32 && ty != INDEX);
    note(seen, words, "a port of words");
    let results: BTreeSet<_> = body.results.iter().collect();
    note(seen, results.len() < body.results.len(), "a cell that returns a value twice");
    for &result in &body.results {
        let producer = graph.sigs.get(body.arena.node(body.arena.producer(result)).sig).callee;
        note(seen, matches!(producer, Callee::Op(Op::Port(_))), "a cell that returns a port");
        note(seen, matches!(producer, Callee::Op(Op::Reshape(_))), "a cell that returns a reshaped value");
        let ty = graph.ty(body.arena.type_of(result));
        note(seen, ty.dtype != DType::F32, "a cell that returns words");
    }
}

pub(super) fn of_graph(graph: &GraphData, seen: &mut BTreeSet<&'static str>) {
    let mut callers: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
    for (number, (key, nodes)) in graph.stretches().enumerate() {
        for id in nodes.map(NodeId::new) {
            let Callee::Cell(cell) = graph.signature(id).callee else { continue };
            if key.is_some() {
                callers.entry(cell).or_default().insert(number);
            }
            let lists: Vec<_> =
                graph.arena.operands(id).iter().filter_map(|operand| operand.as_value()).collect();
            let lists: Vec<_> = lists.into_iter().filter(|&value| graph.type_of(value).is_list).collect();
            let distinct: BTreeSet<_> = lists.iter().collect();
            note(seen, distinct.len() < lists.len(), "one list in two places of a call");
            let empty = lists.iter().any(|&list| graph.arena.operands(graph.arena.producer(list)).is_empty());
            note(seen, empty, "an empty list given to a cell");
        }
    }
    note(seen, callers.values().any(|instances| instances.len() > 2), "calls of one cell in three instances");
}
