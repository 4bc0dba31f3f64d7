//! The order of lanes inside each batch.

use super::{Memory, Rows};
use crate::layout::{self, Layout};

/// Keeps lanes and rows in the order of the nodes.
pub(super) fn keep_batch_order(rows: &mut Rows, memory: &Memory) {
    rows.lane_order.clear();
    rows.batches.iter().for_each(|batch| rows.lane_order.extend(0..batch.lanes.len() as u32));
    rows.nodes.clone_from(&memory.nodes);
    rows.rows.clear();
    memory.input.slab_rows.iter().for_each(|&count| rows.rows.extend(0..count));
}

/// Orders lanes and rows as consumers read them.
pub(super) fn propagate(rows: &mut Rows, memory: &mut Memory) {
    let Memory { layout, access, nodes, .. } = memory;
    let [old_rows, old_order] = [&mut rows.rows, &mut rows.lane_order].map(std::mem::take);
    layout.recycle((old_rows, old_order, std::mem::take(access)));
    let layout: Layout = layout::propagated_with(&rows.problem, layout);
    (rows.rows, rows.lane_order, *access) = layout.into_parts();
    rows.nodes.clear();
    for batch in &rows.batches {
        let own = &nodes[batch.lanes.clone()];
        rows.nodes.extend(rows.lane_order[batch.lanes.clone()].iter().map(|&lane| own[lane as usize]));
    }
}
