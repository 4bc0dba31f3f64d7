//! The order of lanes inside each batch, and of their rows.

use super::layout::{self, RowLayout};
use super::rows::Rows;
use crate::context::Context;
use crate::request::RowOrder;
use autobatch_ir::id::NodeId;

/// Orders the lanes and rows of the layout problem as the request asks.
pub(super) fn order_lanes(
    context: &Context<'_>,
    rows: &mut Rows,
    nodes: &[NodeId],
    layout: &mut layout::Memory,
) {
    let (places, lanes) = (std::mem::take(&mut rows.rows), std::mem::take(&mut rows.lane_order));
    layout.recycle(RowLayout { places, lanes });
    let chosen = match context.request.rows {
        RowOrder::Batch => layout::batch_order(&rows.problem, layout),
        RowOrder::Propagated => layout::propagated(&rows.problem, layout),
    };
    (rows.rows, rows.lane_order) = (chosen.places, chosen.lanes);
    rows.nodes.clear();
    for batch in &rows.batches {
        let own = &nodes[batch.lanes.clone()];
        rows.nodes.extend(rows.lane_order[batch.lanes.clone()].iter().map(|&lane| own[lane.index()]));
    }
}
