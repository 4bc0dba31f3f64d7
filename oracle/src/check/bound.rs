//! The path-sum bound, recomputed.
//!
//! Nodes of one kind on one path need one batch each, and a batch has one kind. So the sum over kinds of the most nodes
//! on any path bounds the number of batches from below. A node that is marked to stand alone is a batch of its own
//! kind. A kind is a signature and, for each operand, whether it is a value, words or floats.

use crate::needed;
use autobatch_ir::graph::{GraphData, OperandKind};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use std::collections::BTreeMap;

/// The number of kinds that one walk over the graph counts.
const LANES: usize = 8;

/// The bound for the nodes that the given values depend on.
pub(super) fn path_sum(graph: &GraphData, values: &[ValueId]) -> u64 {
    let needed = needed(&graph.arena, values);
    let alone = alone(graph);
    let mut kinds: BTreeMap<(SigId, Vec<u8>), u32> = BTreeMap::new();
    let mut kind_of = vec![u32::MAX; graph.arena.len()];
    let mut counts: Vec<u32> = Vec::new();
    let mut total = 0;
    for id in graph.arena.ids().filter(|id| needed[id.index()]) {
        let signature = graph.signature(id);
        if signature.callee.is_source() || signature.is_list() {
            continue;
        }
        if alone[id.index()] {
            total += 1;
            continue;
        }
        let kind = kind(graph, id);
        let next = kinds.len() as u32;
        let kind = *kinds.entry(kind).or_insert(next);
        counts.resize(kinds.len(), 0);
        counts[kind as usize] += 1;
        kind_of[id.index()] = kind;
    }
    // A kind with one node needs no walk.
    total += counts.iter().filter(|&&count| count == 1).count() as u64;
    let many: Vec<u32> = (0..counts.len() as u32).filter(|&kind| counts[kind as usize] > 1).collect();
    let mut lane_of = vec![usize::MAX; counts.len()];
    for kinds in many.chunks(LANES) {
        lane_of.fill(usize::MAX);
        kinds.iter().enumerate().for_each(|(lane, &kind)| lane_of[kind as usize] = lane);
        total +=
            longest(graph, &needed, &kind_of, &lane_of).iter().map(|&count| u64::from(count)).sum::<u64>();
    }
    total
}

/// For each node, whether it must be a batch of its own. Sources and lists are no batches, so their marks have no effect.
pub(super) fn alone(graph: &GraphData) -> Vec<bool> {
    let mut alone = vec![false; graph.arena.len()];
    for id in graph.alone.iter().filter(|id| id.index() < graph.arena.len()) {
        let signature = graph.signature(*id);
        alone[id.index()] = !signature.callee.is_source() && !signature.is_list();
    }
    alone
}

fn kind(graph: &GraphData, id: NodeId) -> (SigId, Vec<u8>) {
    let letters = graph.arena.operands(id).iter().map(|operand| match operand.kind() {
        Some(OperandKind::Value(_)) | None => 0,
        Some(OperandKind::Index(_)) => 1,
        Some(OperandKind::Data(_)) => 2,
    });
    (graph.arena.node(id).sig, letters.collect())
}

/// For each kind the maximum number of its nodes on any path.
fn longest(graph: &GraphData, needed: &[bool], kind_of: &[u32], lane_of: &[usize]) -> [u32; LANES] {
    let mut longest = [0; LANES];
    let mut counts = vec![[0u32; LANES]; graph.arena.len()];
    for id in graph.arena.ids().filter(|id| needed[id.index()]) {
        let mut own = [0; LANES];
        for value in graph.arena.operands(id).iter().filter_map(|operand| operand.as_value()) {
            let before = counts[graph.arena.producer(value).index()];
            own.iter_mut().zip(before).for_each(|(own, before)| *own = before.max(*own));
        }
        if let Some(&lane) = lane_of.get(kind_of[id.index()] as usize)
            && lane < LANES
        {
            own[lane] += 1;
            longest[lane] = longest[lane].max(own[lane]);
        }
        counts[id.index()] = own;
    }
    longest
}
