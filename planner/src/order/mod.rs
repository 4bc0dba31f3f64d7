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

mod gather;
mod heaps;
mod layout_input;
mod print;
mod reuse;
mod waves;

use crate::PlanError;
use crate::cluster::Clusters;
use crate::ids::{RowId, WaveId};
use crate::layout::{self, Access, Layout};
use crate::pipeline::Context;
use crate::schedule::Batches;
use crate::storage::Storage;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::Mode;
use gather::Lists;
use heaps::Heaps;
use layout_input::LayoutInput;
use std::ops::Range;

/// No row, no wave.
const NONE: u32 = u32::MAX;

/// One batch: nodes of one type.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) sig: SigId,
    /// Its lanes among those of all batches.
    pub(crate) lanes: Range<u32>,
    /// The wave that executes it. Sources are wave 0.
    pub(crate) wave: WaveId,
    /// Which copy of a constant it writes; see [`SigStorage::extra_fields`](crate::storage::SigStorage::extra_fields).
    pub(crate) copy: u32,
    /// Its jobs as a range of the scheduler's items; empty for sources.
    jobs: Range<u32>,
    /// The first column of its bindings.
    bound: u32,
    /// The first column of its lists.
    lists: u32,
}

impl Batch {
    fn span(&self) -> Range<usize> {
        self.lanes.start as usize..self.lanes.end as usize
    }
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
    nodes: Vec<NodeId>,
    /// The number of rows of each slab.
    pub(crate) slab_rows: Vec<u32>,
    /// Batches as the layout sees them, with provisional rows in batch order.
    problem: layout::Problem,
    /// The provisional row of each needed value; of a constant, that of its first copy.
    row_of: Vec<u32>,
    /// The final row of each provisional row.
    rows: Vec<u32>,
    /// Per lane in execution order its number in the layout problem, counted inside its batch.
    lane_order: Vec<u32>,
    /// The bindings of operands, column after column, batch after batch, as the problem numbers lanes.
    bound: Vec<u32>,
    /// The lists that operands are.
    lists: Lists,
}

/// Scratch memory of [`order_rows`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Nodes as the problem numbers lanes.
    nodes: Vec<NodeId>,
    wave_of_job: Vec<u32>,
    input: LayoutInput,
    layout: layout::Memory,
    access: Vec<Access>,
    heaps: Heaps,
    spare: Rows,
}

impl Memory {
    /// Takes back the memory of rows.
    pub(crate) fn recycle(&mut self, rows: Rows) {
        self.spare = rows;
    }
}

/// Sorts batches into waves, orders their lanes and numbers their rows.
pub(crate) fn order_rows(
    context: &Context<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    batches: &Batches,
    storage: &Storage,
) -> Result<Rows, PlanError> {
    let mut rows = std::mem::take(&mut memory.spare);
    waves::list_batches(&mut rows, memory, clusters, storage, batches);
    layout_input::build_layout_problem(context, &mut rows, memory, clusters, storage, batches)
        .map_err(|_| PlanError::TooLarge)?;
    memory.layout.forget();
    match context.request.rows {
        RowOrder::Batch => rows.stay_in_batch_order(memory),
        RowOrder::Propagated => rows.propagate(memory),
    }
    match context.request.mode {
        Mode::Infer => reuse::reuse_rows(context, &mut rows, memory, storage),
        Mode::Train => {}
        Mode::Grow => rows.append_to_existing(&memory.input, storage),
    }
    Ok(rows)
}

impl Rows {
    fn stay_in_batch_order(&mut self, memory: &Memory) {
        self.lane_order.clear();
        self.batches.iter().for_each(|batch| self.lane_order.extend(0..batch.lanes.len() as u32));
        self.nodes.clone_from(&memory.nodes);
        self.rows.clear();
        memory.input.slab_rows.iter().for_each(|&rows| self.rows.extend(0..rows));
    }

    fn propagate(&mut self, memory: &mut Memory) {
        let Memory { layout, access, nodes, .. } = memory;
        let [rows, lane_order] = [&mut self.rows, &mut self.lane_order].map(std::mem::take);
        layout.recycle((rows, lane_order, std::mem::take(access)));
        let layout: Layout = layout::propagated_with(&self.problem, layout);
        (self.rows, self.lane_order, *access) = layout.into_parts();
        self.nodes.clear();
        for batch in &self.batches {
            let own = &nodes[batch.span()];
            self.nodes.extend(self.lane_order[batch.span()].iter().map(|&lane| own[lane as usize]));
        }
    }

    /// Appends the new rows of a growing plan to the existing ones, and maps rows that it reuses to where they are.
    fn append_to_existing(&mut self, input: &LayoutInput, storage: &Storage) {
        let mut reused = input.reused.iter();
        for (number, slab) in storage.slabs.iter().enumerate() {
            let own = self.problem.numbers(layout::SlabId(number as u32));
            let own = &mut self.rows[own.start as usize..own.end as usize];
            let (read, new) = own.split_at_mut(input.reused_rows[number] as usize);
            let offset = slab.rows - read.len() as u32;
            read.iter_mut().zip(&mut reused).for_each(|(row, reused)| *row = reused.row);
            new.iter_mut().for_each(|row| *row += offset);
        }
    }

    /// The nodes of a batch in execution order.
    pub(crate) fn nodes(&self, batch: &Batch) -> &[NodeId] {
        &self.nodes[batch.span()]
    }

    /// The row of a needed value that is no list; of a constant, that of its first copy.
    pub(crate) fn row(&self, value: ValueId) -> RowId {
        RowId(self.rows[self.row_of[value.index()] as usize])
    }

    /// The slots of a batch: one for each block that it writes, then one for each operand that is a value and no list.
    pub(crate) fn slots(&self, batch: usize) -> Range<usize> {
        let batch = &self.problem.all_batches()[batch];
        batch.first_slot as usize..batch.end_slot as usize
    }

    /// The numbers that the lanes of a batch, in execution order, bind to the `nth` of its bound operands.
    pub(crate) fn bound(&self, batch: &Batch, nth: usize) -> impl Iterator<Item = u32> + Clone {
        let lanes = &self.lane_order[batch.span()];
        let column = &self.bound[batch.bound as usize + nth * lanes.len()..][..lanes.len()];
        lanes.iter().map(|&lane| column[lane as usize])
    }

    /// The rows that the lanes of a batch, in execution order, read at the `nth` of its operands that are lists.
    pub(crate) fn lists(&self, batch: &Batch, nth: usize) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        let lanes = &self.lane_order[batch.span()];
        let column = batch.lists as usize + nth * lanes.len();
        let items = lanes.iter().map(move |&lane| self.lists.items(column + lane as usize));
        items.map(|items| items.iter().map(|&row| self.rows[row as usize]))
    }

    /// The earlier slot of the batch that names the same rows, if there is one.
    pub(crate) fn twin(&self, slot: usize) -> Option<usize> {
        let same = self.problem.slot(slot).same_as.0 as usize;
        (same != slot).then_some(same)
    }

    /// The first row of a result slot. Its rows are consecutive in execution order.
    pub(crate) fn result_start(&self, batch: &Batch, slot: usize) -> u32 {
        let mut rows = self.slot_rows(batch, slot);
        debug_assert!(rows.clone().zip(rows.clone().skip(1)).all(|(a, b)| a + 1 == b));
        rows.next().expect("a batch has lanes")
    }

    /// The rows that the lanes of a batch, in execution order, name at a slot.
    pub(crate) fn slot_rows(&self, batch: &Batch, slot: usize) -> impl Iterator<Item = u32> + Clone {
        let lanes = &self.lane_order[batch.span()];
        let named = self.problem.slot_rows(self.problem.slot(slot), lanes.len() as u32);
        lanes.iter().map(|&lane| self.rows[named[lane as usize] as usize])
    }
}
