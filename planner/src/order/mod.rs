//! Waves and rows: the execution order of batches, the order of lanes, and the row of each result.
//!
//! *Needs* batches from a scheduler and the storage of every signature. *Ensures* batches sorted into waves, an order of lanes inside each
//! batch, and a row for every result. The wave of a batch is one after the latest wave that it reads. In [`Mode::Infer`] a row is
//! reused after the last wave that reads it, so memory follows the live values. A batch that reads a value with `.shared()` reads it
//! in every lane.
//!
//! *How.* Rows get numbers twice. The first pass numbers them in batch order and builds the layout problem; it is the only pass
//! over the operands. The layout then permutes the rows. Later lookups ("which row does this lane read?") take the provisional
//! row from the layout problem and map it through that permutation.
//!
//! *Cost.* Linear in nodes and operands, apart from the layout's own cost.

mod append;
mod gather;
mod heaps;
mod lanes;
mod layout;
mod layout_input;
mod lists;
mod reuse;
mod rows;
mod shared;
mod waves;

pub(crate) use lists::Lists;
pub(crate) use rows::{Batch, Rows, StoredBatches};

use crate::context::Context;
use crate::error::PlanError;
use autobatch_ir::id::NodeId;
use autobatch_ir::plan::Mode;
use heaps::Heaps;
use layout_input::LayoutInput;
use reuse::Reuse;

/// Scratch memory of [`order_rows`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Nodes as the problem numbers lanes.
    nodes: Vec<NodeId>,
    waves: waves::Memory,
    input: LayoutInput,
    layout: layout::Memory,
    heaps: Heaps,
    shared: shared::Memory,
}

/// Sorts batches into waves, orders their lanes and numbers their rows.
pub(crate) fn order_rows(
    context: &Context<'_>,
    memory: &mut Memory,
    stored: StoredBatches<'_>,
    rows: &mut Rows,
) -> Result<(), PlanError> {
    let Memory { nodes, waves, input, layout, heaps, shared } = memory;
    waves::list_batches(rows, nodes, waves, stored);
    layout_input::build_layout_problem(context, rows, nodes, input, stored)
        .map_err(|_| PlanError::TooLarge)?;
    lanes::order_lanes(context, rows, nodes, layout);
    let storage = stored.storage;
    match context.request.mode {
        Mode::Infer => Reuse { storage, nodes, input, layout, heaps }.reuse_rows(context, rows),
        Mode::Train => {}
        Mode::Grow => append::append_to_existing(rows, input, storage),
    }
    shared::check_shared(context, shared, rows)
}
