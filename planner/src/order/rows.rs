//! The product of the stage: batches in execution order, with the row of every value.

use super::layout::{self, Role};
use super::lists::Lists;
use crate::cluster::Clusters;
use crate::ids::{BatchId, BlockId, Lane, ProvisionalRow, SlotId, WaveId};
use crate::index_vec::IndexVec;
use crate::schedule::Batches;
use crate::stage::{Product, Stage};
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use std::fmt::{self, Write};
use std::ops::Range;

/// One batch: nodes of one type.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) sig: SigId,
    /// Its lanes among those of all batches.
    pub(crate) lanes: Range<usize>,
    /// The wave that executes it. Sources are wave 0.
    pub(crate) wave: WaveId,
    /// Which copy of a constant it writes; see [`SigStorage::extra_fields`](crate::storage::SigStorage::extra_fields).
    pub(crate) copy: BlockId,
    /// Its jobs as a range of the scheduler's items; empty for sources.
    pub(super) jobs: Range<u32>,
    /// The first column of its bindings.
    pub(crate) bound: u32,
    /// The first column of its lists.
    pub(crate) lists: u32,
}

/// Batches in execution order, with the row of every value.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) batches: IndexVec<BatchId, Batch>,
    /// The nodes of all lanes, batch after batch, in execution order.
    pub(crate) nodes: Vec<NodeId>,
    /// The number of rows of each slab.
    pub(crate) slab_rows: Vec<u32>,
    /// Batches as the layout sees them, with provisional rows in batch order.
    pub(crate) problem: layout::LayoutProblem,
    /// The provisional row of each needed value; of a constant, that of its first copy.
    pub(crate) row_of: Vec<ProvisionalRow>,
    /// The final row of each provisional row.
    pub(crate) rows: IndexVec<ProvisionalRow, u32>,
    /// Per lane in execution order its number in the layout problem, counted inside its batch.
    pub(crate) lane_order: Vec<Lane>,
    /// The bindings of operands, column after column, batch after batch, as the problem numbers lanes.
    pub(crate) bound: Vec<u32>,
    /// The lists that operands are.
    pub(crate) lists: Lists,
}

impl Rows {
    /// The final row of a needed value; of a constant, that of its first copy.
    pub(crate) fn row(&self, value: ValueId) -> u32 {
        self.rows[self.row_of[value.index()]]
    }
}

/// The batches of a graph's jobs, with the storage of their results.
#[derive(Clone, Copy)]
pub(crate) struct StoredBatches<'a> {
    pub(crate) clusters: &'a Clusters,
    pub(crate) batches: &'a Batches,
    pub(crate) storage: &'a Storage,
}

impl Rows {
    /// The slots of a batch: one for each block that it writes, then one for each operand that is a value and no list.
    pub(crate) fn slots(&self, batch: BatchId) -> impl Iterator<Item = SlotId> + use<> {
        let batch = &self.problem.batches[batch];
        (batch.first_slot.0..batch.end_slot.0).map(SlotId)
    }

    /// The rows that the lanes of a batch name at a slot.
    pub(crate) fn slot_rows(&self, batch: &Batch, slot: SlotId) -> impl Iterator<Item = u32> + Clone {
        let lanes = &self.lane_order[batch.lanes.clone()];
        let named = self.problem.slot_rows(&self.problem.slots[slot], lanes.len() as u32);
        lanes.iter().map(|&lane| self.rows[named[lane.index()]])
    }
}

/// Prints batches in execution order, each with its wave, its nodes, and the rows of its slots.
impl Product for Rows {
    type After = Storage;
    const STAGE: Stage = Stage {
        name: "order",
        turns: "batches and fields -> waves and rows",
        what: "Sorts batches into waves, orders lanes as their consumers read, and reuses rows after their last reader.",
    };

    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (id, batch) in self.batches.entries() {
            write!(out, "{} {}:", batch.wave, graph.callee_name(batch.sig))?;
            self.nodes[batch.lanes.clone()].iter().try_for_each(|node| write!(out, " {node}"))?;
            out.push('\n');
            for slot in self.slots(id) {
                let of = &self.problem.slots[slot];
                let verb = if of.role == Role::Result { "writes" } else { "reads" };
                write!(out, "  {verb} s{}:", of.slab.0)?;
                self.slot_rows(batch, slot).try_for_each(|row| write!(out, " {row}"))?;
                out.push('\n');
            }
        }
        for (slab, rows) in self.slab_rows.iter().enumerate() {
            writeln!(out, "slab s{slab} has {rows} rows")?;
        }
        Ok(())
    }
}
