//! Builds the layout problem of batches whose waves are known: provisional rows in batch order, and the rows of each operand.

use super::gather::{BatchTarget, Columns, CopiedRows, Gatherer, PortRead, binding_of};
use super::layout::{KnownSlot, LayoutError};
use super::rows::{Batch, Rows, StoredBatches};
use crate::cluster::Clusters;
use crate::context::Context;
use crate::ids::{BatchId, BlockId, ProvisionalRow, WaveId};
use crate::index_vec::IndexVec;
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{FieldId, SlabId};
use std::ops::Range;

/// The row of values that need none.
const NO_ROW: ProvisionalRow = ProvisionalRow(u32::MAX);

/// An existing row that a growing plan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReusedRow {
    pub(super) slab: u32,
    pub(super) row: u32,
    value: ValueId,
}

/// The inputs of the layout problem, batch after batch.
#[derive(Debug, Default)]
pub(super) struct LayoutInput {
    /// The existing rows that a growing plan reads, ascending.
    pub(super) reused: Vec<ReusedRow>,
    /// Per slab the number of these.
    pub(super) reused_rows: Vec<u32>,
    /// Per slab the number of rows in the problem.
    pub(super) slab_rows: Vec<u32>,
    /// The provisional rows of each slab.
    slabs: Vec<Range<ProvisionalRow>>,
    /// The operand ports that take values.
    ports: Vec<PortRead>,
    /// The operand ports that take lists.
    lists: Vec<PortRead>,
    /// The operand ports that take bindings.
    bound: Vec<u32>,
    /// The first rows of results.
    starts: Vec<ProvisionalRow>,
    targets: Vec<BatchTarget>,
    /// The rows of constants' copies besides the first.
    copies: Vec<CopiedRows>,
    /// The wave of each slot of the problem.
    pub(super) slot_waves: Vec<WaveId>,
    /// Per provisional row the last wave that reads it as an element of a list. May be shorter than the rows.
    pub(super) list_waves: IndexVec<ProvisionalRow, WaveId>,
    /// The slots of one batch.
    results: Vec<KnownSlot>,
    operands: Vec<KnownSlot>,
}

/// Builds the layout problem in `rows`.
pub(super) fn build_layout_problem(
    context: &Context<'_>,
    rows: &mut Rows,
    nodes: &mut [NodeId],
    input: &mut LayoutInput,
    stored: StoredBatches<'_>,
) -> Result<(), LayoutError> {
    let StoredBatches { clusters, batches, storage } = stored;
    rows.count_slab_rows(storage)?;
    input.find_reused(context, clusters, storage);
    let slabs = rows.slab_rows.iter().zip(storage.slabs.iter()).zip(&input.reused_rows);
    input.slab_rows.clear();
    input.slab_rows.extend(slabs.map(|((rows, slab), reused)| rows - slab.rows + reused));
    rows.problem.restart(&input.slab_rows, &input.reused_rows)?;
    input.slabs.clear();
    input.slabs.extend(storage.slabs.ids().map(|slab| rows.problem.rows_of(slab)));
    rows.row_of.resize(context.graph.arena.values(), NO_ROW);
    input.number_reused(&mut rows.row_of);
    let builder = Builder { graph: context.graph, storage, nodes, growing: context.existing.plan() };
    let first_job = |batch: &Batch| batches.items[batch.jobs.start as usize];
    builder.find_targets(rows, input, |batch| clusters.jobs[first_job(batch).index()]);
    let gatherer = Gatherer {
        graph: context.graph,
        jobs: &clusters.jobs,
        items: &batches.items,
        ports: &input.ports,
        lists: &input.lists,
        bound: &input.bound,
        starts: &input.starts,
        copies: &input.copies,
        is_growing: context.is_growing(),
    };
    let mut columns = Columns {
        row_of: &mut rows.row_of,
        nodes,
        rows: &mut rows.problem.pool,
        bound: &mut rows.bound,
        lists: &mut rows.lists,
    };
    gatherer.gather(&mut input.targets, &mut columns);
    if !context.is_growing() {
        rows.lists.raise_waves(&mut input.list_waves);
    }
    rows.problem.settle();
    Ok(())
}

impl LayoutInput {
    /// Finds the existing rows that are read. The problem holds no other existing rows.
    fn find_reused(&mut self, context: &Context<'_>, clusters: &Clusters, storage: &Storage) {
        let reused = |&value: &ValueId| {
            let (field, row) = context.existing.get(value).expect("a reused value exists");
            ReusedRow { slab: storage.fields[field].slab.0, row: row.0, value }
        };
        self.reused.clear();
        self.reused.extend(clusters.reused.iter().map(reused));
        // A list that grew gives a run of descending rows, which a stable sort merges.
        self.reused.sort();
        self.reused.dedup();
        self.reused_rows.clear();
        self.reused_rows.resize(storage.slabs.len(), 0);
        self.reused.iter().for_each(|reused| self.reused_rows[reused.slab as usize] += 1);
    }

    /// Numbers the existing rows: they come first in their slabs.
    fn number_reused(&self, row_of: &mut [ProvisionalRow]) {
        let mut next = 0;
        for (number, reused) in self.reused.iter().enumerate() {
            let is_same_slab = number > 0 && self.reused[number - 1].slab == reused.slab;
            next = if is_same_slab { next + 1 } else { 0 };
            let first = self.slabs[reused.slab as usize].start;
            row_of[reused.value.index()] = ProvisionalRow(first.0 + next);
        }
    }

    fn clear_batches(&mut self) {
        self.ports.clear();
        self.lists.clear();
        self.bound.clear();
        self.starts.clear();
        self.targets.clear();
        self.copies.clear();
        self.slot_waves.clear();
        self.list_waves.clear();
    }
}

impl Rows {
    fn count_slab_rows(&mut self, storage: &Storage) -> Result<(), LayoutError> {
        self.slab_rows.clear();
        self.slab_rows.extend(storage.slabs.iter().map(|slab| slab.rows));
        for batch in &self.batches {
            for block in storage.sigs[batch.sig].blocks_of(batch.copy) {
                let rows = &mut self.slab_rows[block.slab.index()];
                *rows = rows.checked_add(batch.lanes.len() as u32).ok_or(LayoutError::TooLarge)?;
            }
        }
        Ok(())
    }
}

/// Adds batches to the problem.
struct Builder<'a> {
    graph: &'a GraphData,
    storage: &'a Storage,
    /// Nodes as the problem numbers lanes; at first those of sources.
    nodes: &'a [NodeId],
    /// The number of the growing plan, if it is one.
    growing: Option<u64>,
}

impl Builder<'_> {
    /// Gives rows to the results of all batches and columns to their operands, and writes those of sources.
    fn find_targets(&self, rows: &mut Rows, input: &mut LayoutInput, first_job: impl Fn(&Batch) -> NodeId) {
        input.clear_batches();
        let (mut bound_columns, mut list_columns) = (0, 0);
        for id in rows.batches.ids() {
            let batch = &mut rows.batches[id];
            (batch.bound, batch.lists) = (bound_columns, list_columns);
            let is_source = batch.jobs.is_empty();
            let any = if is_source { self.nodes[batch.lanes.start] } else { first_job(batch) };
            let target = self.find_target(id, any, rows, input);
            bound_columns += target.lanes * target.bound.len() as u32;
            list_columns += target.lanes * target.lists.len() as u32;
            // Gathering writes the new part before anyone reads it.
            rows.bound.resize(rows.bound.len().max(bound_columns as usize), 0);
            if is_source {
                self.write_source(&target, rows, input);
            }
            input.targets.push(target);
        }
        rows.lists.restart(list_columns as usize, self.graph.arena.values(), self.growing);
    }

    /// Adds a batch, one node of which is `any`, to the problem.
    fn find_target(&self, id: BatchId, any: NodeId, rows: &mut Rows, input: &mut LayoutInput) -> BatchTarget {
        let batch = &rows.batches[id];
        let own = &self.storage.sigs[batch.sig];
        let first = [&input.ports, &input.lists].map(|ports| ports.len() as u32);
        let (first_bound, first_start) = (input.bound.len() as u32, input.starts.len() as u32);
        let result = |slab: SlabId| known_slot(self.storage, slab, None);
        input.results.clear();
        input.results.extend(own.blocks_of(batch.copy).iter().map(|block| result(block.slab)));
        self.find_ports(batch, any, input);
        if input.lists.len() as u32 > first[1] {
            input.list_waves.resize(rows.problem.rows as usize, WaveId(0));
        }
        let lanes = batch.lanes.len() as u32;
        let columns = rows.problem.add_known(lanes, &input.results, &input.operands);
        input.slot_waves.resize(rows.problem.slots.len(), batch.wave);
        if batch.copy > BlockId(0) {
            let first = rows.row_of[self.graph.arena.node(any).results as usize];
            let start = rows.problem.first_row(BlockId(0));
            input.copies.push(CopiedRows { first: first..ProvisionalRow(first.0 + lanes), start });
        } else {
            input.starts.extend(own.results.iter().map(|&(_, block)| rows.problem.first_row(block)));
        }
        BatchTarget {
            jobs: batch.jobs.clone(),
            next: batch.lanes.start as u32,
            done: 0,
            lanes,
            columns,
            wave: batch.wave,
            ports: first[0]..input.ports.len() as u32,
            lists: first[1]..input.lists.len() as u32,
            list_columns: batch.lists,
            bound: first_bound..input.bound.len() as u32,
            bound_columns: batch.bound,
            starts: first_start..input.starts.len() as u32,
        }
    }

    /// Lists the operand ports of a batch, and a slot for each port of values.
    fn find_ports(&self, batch: &Batch, any: NodeId, input: &mut LayoutInput) {
        let LayoutInput { slabs, ports, lists, bound, operands, .. } = input;
        operands.clear();
        for (port, operand) in (0..).zip(self.graph.arena.operands(any)) {
            let Some(value) = operand.as_value() else {
                bound.push(port);
                continue;
            };
            let field = self.storage.fields.get(self.storage.port_field(batch.sig, port as usize));
            if self.graph.arena.is_list(value, &self.graph.sigs) {
                // There is no field if all lists are empty.
                let slab = field.map_or(NO_ROW..NO_ROW, |field| slabs[field.slab.index()].clone());
                lists.push(PortRead { port, slab });
                continue;
            }
            let field = field.expect("values that are read have a field");
            operands.push(known_slot(self.storage, field.slab, Some(field.width())));
            ports.push(PortRead { port, slab: slabs[field.slab.index()].clone() });
        }
    }

    /// Writes the rows of a source batch and the numbers that its lanes bind. Copies of constants keep the rows of the first.
    fn write_source(&self, target: &BatchTarget, rows: &mut Rows, input: &LayoutInput) {
        let starts = &input.starts[target.starts.start as usize..target.starts.end as usize];
        let bound = &input.bound[target.bound.start as usize..target.bound.end as usize];
        let first = target.next as usize;
        for (lane, &node) in (0..).zip(&self.nodes[first..first + target.lanes as usize]) {
            let results = &mut rows.row_of[self.graph.arena.node(node).results as usize..];
            results.iter_mut().zip(starts).for_each(|(row, start)| *row = ProvisionalRow(start.0 + lane));
            let columns = (target.bound_columns + lane..).step_by(target.lanes as usize);
            for (at, &port) in columns.zip(bound) {
                rows.bound[at as usize] = binding_of(self.graph.arena.operands(node)[port as usize]);
            }
        }
    }
}

/// A slot of a slab. `width` is the number of elements that are read; without it, all fields of the slab count.
fn known_slot(storage: &Storage, slab: SlabId, width: Option<u32>) -> KnownSlot {
    let bytes = match width {
        Some(width) => width * 4,
        None => {
            let fields = storage.slabs[slab].fields.clone();
            let fields = &storage.fields[FieldId(fields.start)..FieldId(fields.end)];
            fields.iter().map(|field| field.width() * 4).sum()
        }
    };
    (slab, bytes)
}
