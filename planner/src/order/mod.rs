//! Waves and rows: the execution order of batches, the order of lanes, and the row of each result.
//!
//! *Needs* batches from a scheduler and the storage of every signature. *Ensures* batches sorted into waves (the wave of a batch
//! is one after the latest wave that it reads), an order of lanes inside each batch, and a row for every result. In
//! [`Mode::Infer`] a row is reused after the last wave that reads it, so memory follows the live values.
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
mod layout_input;
mod lists;
mod reuse;
mod waves;

use crate::PlanError;
use crate::cluster::Clusters;
use crate::ids::WaveId;
use crate::layout;
use crate::pipeline::Context;
use crate::schedule::{Batches, ListMaxima};
use crate::storage::Storage;
use autobatch_ir::id::{NodeId, SigId};
use autobatch_ir::plan::Mode;
use heaps::Heaps;
use layout_input::LayoutInput;
pub(crate) use lists::Lists;
use std::ops::Range;

/// No row, no wave.
const NONE: u32 = u32::MAX;

/// One batch: nodes of one type.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) sig: SigId,
    /// Its lanes among those of all batches.
    pub(crate) lanes: Range<usize>,
    /// The wave that executes it. Sources are wave 0.
    pub(crate) wave: WaveId,
    /// Which copy of a constant it writes; see [`SigStorage::extra_fields`](crate::storage::SigStorage::extra_fields).
    pub(crate) copy: u32,
    /// Its jobs as a range of the scheduler's items; empty for sources.
    jobs: Range<u32>,
    /// The first column of its bindings.
    pub(crate) bound: u32,
    /// The first column of its lists.
    pub(crate) lists: u32,
}

/// How the planner orders rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// In the order of the nodes.
    Batch,
    /// In the order in which consumers read, from the last batch to the first.
    #[default]
    Propagated,
}

/// Batches in execution order, with the row of every value.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) batches: Vec<Batch>,
    /// The nodes of all lanes, batch after batch, in execution order.
    pub(crate) nodes: Vec<NodeId>,
    /// The number of rows of each slab.
    pub(crate) slab_rows: Vec<u32>,
    /// Batches as the layout sees them, with provisional rows in batch order.
    pub(crate) problem: layout::Problem,
    /// The provisional row of each needed value; of a constant, that of its first copy.
    pub(crate) row_of: Vec<u32>,
    /// The final row of each provisional row.
    pub(crate) rows: Vec<u32>,
    /// Per lane in execution order its number in the layout problem, counted inside its batch.
    pub(crate) lane_order: Vec<u32>,
    /// The bindings of operands, column after column, batch after batch, as the problem numbers lanes.
    pub(crate) bound: Vec<u32>,
    /// The lists that operands are.
    pub(crate) lists: Lists,
}

/// The batches of a graph's jobs, with the storage of their results.
#[derive(Clone, Copy)]
pub(crate) struct StoredBatches<'a> {
    pub(crate) clusters: &'a Clusters,
    pub(crate) batches: &'a Batches,
    pub(crate) storage: &'a Storage,
}

/// Scratch memory of [`order_rows`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Nodes as the problem numbers lanes.
    nodes: Vec<NodeId>,
    wave_of_job: Vec<u32>,
    list_waves: ListMaxima,
    input: LayoutInput,
    layout: layout::Memory,
    heaps: Heaps,
    /// The memory of the last product.
    pub(crate) spare: Rows,
}

/// Sorts batches into waves, orders their lanes and numbers their rows.
pub(crate) fn order_rows(
    context: &Context<'_>,
    memory: &mut Memory,
    stored: StoredBatches<'_>,
) -> Result<Rows, PlanError> {
    let storage = stored.storage;
    let mut rows = std::mem::take(&mut memory.spare);
    waves::list_batches(&mut rows, memory, stored);
    layout_input::build_layout_problem(context, &mut rows, memory, stored)
        .map_err(|_| PlanError::TooLarge)?;
    lanes::order_lanes(context, &mut rows, memory);
    match context.request.mode {
        Mode::Infer => reuse::reuse_rows(context, &mut rows, memory, storage),
        Mode::Train => {}
        Mode::Grow => append::append_to_existing(&mut rows, &memory.input, storage),
    }
    Ok(rows)
}
