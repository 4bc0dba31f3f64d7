//! Waves and rows: in which order batches are executed, and which row each result has.
//!
//! *Needs* batches from a scheduler and the storage of every signature. *Ensures* batches sorted
//! into waves (a batch's wave is one after the latest of those it reads), an order of lanes inside
//! each batch, and a row for every result. In [`Mode::Infer`] a row is given away again after the
//! last wave that reads it, so memory follows what is alive, not what was computed.
//!
//! *How.* Rows are numbered twice. First in batch order: that is the layout problem, and the one
//! walk through the operands of the arena. Whoever asks later which row a lane reads asks the
//! problem, whose columns lie as lanes do, and looks up the final row of that row.
//!
//! *Cost.* Linear in nodes and operands, apart from the layout planner's own; a second use
//! of a size allocates nothing.

mod pose;
mod rows;

use crate::cluster::{Clusters, NONE};
use crate::grow::Placed;
use crate::heap::Heaps;
use crate::layout::{self, Access, LayoutError, Memory};
use crate::schedule::Batches;
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::Mode;
use pose::Posing;
use rows::{Copied, Lists};
use std::ops::Range;

/// One batch: nodes of one type.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) sig: SigId,
    /// Its lanes among those of all batches.
    pub(crate) lanes: Range<u32>,
    /// The wave it is executed in; sources are wave 0.
    pub(crate) wave: u32,
    /// Which home of a constant with several it writes, see [`SigStorage::homes`].
    pub(crate) home: u32,
    /// Its jobs as a range of the scheduler's items; none of sources.
    jobs: Range<u32>,
    /// Where the columns of its bound numbers begin.
    bound: u32,
    /// Where the columns of its lists begin.
    lists: u32,
}

/// How rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// As the nodes were emitted.
    Batch,
    /// As the consumers read, from the last batch to the first.
    #[default]
    Propagated,
}

/// Batches in executing order, with the row of every value. Memory is kept from one use to the next.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) batches: Vec<Batch>,
    /// The lanes of all batches, one after the other, in the order in which they run.
    pub(crate) lanes: Vec<NodeId>,
    /// Rows of each slab.
    pub(crate) slab_rows: Vec<u32>,
    /// Batches as the layout planner sees them; rows are numbered in batch order.
    problem: layout::Problem,
    /// The row of each needed value in the problem.
    row_of: Vec<u32>,
    /// Where constants have homes besides their first.
    copies: Vec<Copied>,
    /// The bound numbers that operands are, column after column of batch after batch, as the problem numbers lanes.
    bound: Vec<u32>,
    /// The lists that operands are.
    lists: Lists,
    /// The row that each row of the problem has in the plan.
    rows: Vec<u32>,
    /// Per lane of all batches its number in the problem.
    lane_order: Vec<u32>,
    /// The rest of the layout, for its memory.
    access: Vec<Access>,
    /// Nodes as the problem numbers lanes.
    nodes: Vec<NodeId>,
    wave_of_job: Vec<u32>,
    /// The wave of each slot of the problem.
    slot_waves: Vec<u32>,
    /// Per row of the problem the last wave that reads it as an element of a list.
    last_waves: Vec<u32>,
    heaps: Heaps,
    memory: Memory,
    posing: Posing,
}

impl Order {
    /// Sorts batches into waves, orders their lanes and numbers their rows.
    pub(crate) fn fill(
        &mut self,
        graph: &GraphData,
        clusters: &Clusters,
        storage: &Storage,
        batches: &Batches,
        (wanted, placed): (&[ValueId], &Placed),
        (row_order, mode): (RowOrder, Mode),
    ) -> Result<(), LayoutError> {
        self.collect(clusters, storage, batches);
        self.pose(graph, (clusters, batches), storage, placed)?;
        self.memory.forget();
        if row_order == RowOrder::Batch {
            self.lane_order.clear();
            self.batches.iter().for_each(|batch| self.lane_order.extend(0..batch.lanes.len() as u32));
            self.lanes.clone_from(&self.nodes);
            self.rows.clear();
            self.posing.sizes.iter().for_each(|&rows| self.rows.extend(0..rows));
        } else {
            let access = std::mem::take(&mut self.access);
            let parts = (std::mem::take(&mut self.rows), std::mem::take(&mut self.lane_order), access);
            self.memory.recycle(parts);
            let layout = layout::propagated_with(&self.problem, &mut self.memory);
            self.take(layout);
        }
        if mode == Mode::Infer {
            self.reuse_rows(storage, wanted);
        }
        if mode == Mode::Grow {
            self.put_behind(storage);
        }
        Ok(())
    }

    /// Lists batches wave after wave, sources first, and writes the lanes of sources.
    fn collect(&mut self, clusters: &Clusters, storage: &Storage, batches: &Batches) {
        self.batches.clear();
        self.nodes.clear();
        for (sig, source) in clusters.sources() {
            for home in 0..storage.sigs[sig.index()].source_batches() {
                let first = self.nodes.len() as u32;
                self.nodes.extend_from_slice(source);
                let lanes = first..self.nodes.len() as u32;
                self.batches.push(Batch { sig, lanes, wave: 0, home, jobs: 0..0, bound: 0, lists: 0 });
            }
        }
        let sources = self.batches.len();
        // The latest wave that a batch can be in, so that one operand of the wave before settles it.
        let mut latest = u32::from(sources > 0);
        let first_wave = latest;
        self.wave_of_job.resize(clusters.jobs.len(), 0);
        let mut sorted = true;
        for (number, jobs) in batches.iter().enumerate() {
            let mut wave = first_wave;
            for &job in jobs {
                if wave == latest {
                    break;
                }
                let operands = clusters.operand_start[job as usize]..clusters.operand_start[job as usize + 1];
                for &operand in &clusters.operands[operands.start as usize..operands.end as usize] {
                    wave = wave.max(self.wave_of_job[operand as usize] + 1);
                }
            }
            sorted &= wave + 1 >= latest;
            latest = latest.max(wave + 1);
            jobs.iter().for_each(|&job| self.wave_of_job[job as usize] = wave);
            let sig = clusters.types()[clusters.ty[jobs[0] as usize] as usize];
            let jobs = batches.start[number]..batches.start[number + 1];
            self.batches.push(Batch { sig, lanes: 0..0, wave, home: 0, jobs, bound: 0, lists: 0 });
        }
        let own = &mut self.batches[sources..];
        if !sorted {
            // By jobs, too: so batches of a wave keep their order though the sort needs no memory.
            own.sort_unstable_by_key(|batch| (batch.wave, batch.jobs.start));
        }
        let mut first = self.nodes.len() as u32;
        for batch in own {
            batch.lanes = first..first + batch.jobs.len() as u32;
            first = batch.lanes.end;
        }
        // Gathering writes who they are.
        self.nodes.resize(first as usize, NodeId::new(0));
    }

    /// Takes lanes and rows as the layout says.
    fn take(&mut self, layout: layout::Layout) {
        (self.rows, self.lane_order, self.access) = layout.into_parts();
        self.lanes.clear();
        for batch in &self.batches {
            let span = batch.lanes.start as usize..batch.lanes.end as usize;
            let nodes = &self.nodes[span.clone()];
            self.lanes.extend(self.lane_order[span].iter().map(|&lane| nodes[lane as usize]));
        }
    }

    /// Puts the rows of a plan that grows behind those that are there, and those that it reads of these where they are.
    fn put_behind(&mut self, storage: &Storage) {
        let mut reused = self.posing.reused.iter();
        for (number, slab) in storage.slabs.iter().enumerate() {
            let own = self.problem.numbers(layout::SlabId(number as u32));
            let own = &mut self.rows[own.start as usize..own.end as usize];
            let (read, new) = own.split_at_mut(self.posing.before[number] as usize);
            let behind = slab.rows - read.len() as u32;
            read.iter_mut().zip(&mut reused).for_each(|(row, reused)| *row = reused.1);
            new.iter_mut().for_each(|row| *row += behind);
        }
    }

    /// Gives every batch rows that nothing alive holds, and takes them back after the last wave that
    /// reads them; wanted values are never given away.
    fn reuse_rows(&mut self, storage: &Storage, wanted: &[ValueId]) {
        self.last_waves.resize(self.problem.rows() as usize, 0);
        for value in wanted {
            self.last_waves[self.row_of[value.index()] as usize] = NONE;
        }
        let waves = self.batches.last().map_or(0, |batch| batch.wave as usize + 1);
        self.heaps.restart(storage.slabs.len(), waves);
        let Self {
            batches,
            problem,
            rows,
            lane_order,
            slot_waves,
            last_waves,
            heaps,
            memory,
            nodes,
            lanes,
            ..
        } = self;
        let slot_waves = slot_waves.as_slice();
        // Those that nobody reads, descending, as far as they were not met yet.
        let mut unread = memory.unread().len();
        for (number, (batch, posed)) in (0..).zip(batches.iter().zip(problem.all_batches())) {
            let span = batch.lanes.start as usize..batch.lanes.end as usize;
            let is_unread = memory.unread()[..unread].last() == Some(&number);
            unread -= usize::from(is_unread);
            if is_unread && let Some(slot) = layout::widest(problem, posed) {
                // Rows that were used twice may stand elsewhere than in the layout.
                let read = problem.slot_rows(slot, posed.lanes);
                let place = |lane: u32| rows[read[lane as usize] as usize];
                if !lane_order[span.clone()].is_sorted_by_key(|&lane| place(lane)) {
                    // The slot repeats no row, so no two lanes have one place.
                    memory.sort_by_place(&mut lane_order[span.clone()], place);
                    let (own, order) = (&nodes[span.clone()], &lane_order[span.clone()]);
                    let moved = lanes[span.clone()].iter_mut().zip(order);
                    moved.for_each(|(node, &lane)| *node = own[lane as usize]);
                }
            }
            let lanes = &lane_order[span];
            let blocks = storage.sigs[batch.sig.index()].blocks_of(batch.home).iter();
            for (block, slot) in blocks.zip(problem.batch_slots(posed)) {
                let slab = block.slab.index();
                // In the problem, the rows of a result follow each other as its lanes do.
                let first = problem.slot_rows(slot, posed.lanes)[0] as usize;
                let own = first..first + posed.lanes as usize;
                let (readers, listed) = (&problem.last_readers()[own.clone()], &last_waves[own.clone()]);
                let rows = &mut rows[own];
                let start = heaps.take(batch.wave, slab, posed.lanes);
                // Rows that follow each other often end with one wave.
                let mut ending = (batch.wave, start);
                for (row, &lane) in (start..).zip(lanes) {
                    let lane = lane as usize;
                    rows[lane] = row;
                    let read = slot_waves.get(readers[lane] as usize).copied().unwrap_or(0);
                    let wave = listed[lane].max(read).max(batch.wave);
                    if wave != ending.0 {
                        heaps.release_after(ending.0, slab, ending.1..row);
                        ending = (wave, row);
                    }
                }
                heaps.release_after(ending.0, slab, ending.1..start + posed.lanes);
            }
        }
        self.slab_rows.clear();
        self.slab_rows.extend(heaps.highs());
    }

    /// The nodes of a batch in the order in which they run.
    pub(crate) fn nodes(&self, batch: &Batch) -> &[NodeId] {
        &self.lanes[batch.lanes.start as usize..batch.lanes.end as usize]
    }

    /// The row of a needed value that is no list, in its first home.
    pub(crate) fn row(&self, value: ValueId) -> u32 {
        self.rows[self.row_of[value.index()] as usize]
    }

    /// The slots of a batch: first one for each block that it writes, then one for each operand
    /// that is a value and no list.
    pub(crate) fn slots(&self, batch: usize) -> Range<usize> {
        let batch = &self.problem.all_batches()[batch];
        batch.first_slot as usize..batch.end_slot as usize
    }

    /// The numbers that the lanes of a batch, as they run, are bound to at the `nth` of its operands that are bound.
    pub(crate) fn bound(&self, batch: &Batch, nth: usize) -> impl Iterator<Item = u32> + Clone {
        let lanes = &self.lane_order[batch.lanes.start as usize..batch.lanes.end as usize];
        let column = &self.bound[batch.bound as usize + nth * lanes.len()..][..lanes.len()];
        lanes.iter().map(|&lane| column[lane as usize])
    }

    /// The rows of the lists that the lanes of a batch, as they run, read at the `nth` of its operands that are lists.
    pub(crate) fn listed(
        &self,
        batch: &Batch,
        nth: usize,
    ) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        let lanes = &self.lane_order[batch.lanes.start as usize..batch.lanes.end as usize];
        let column = batch.lists as usize + nth * lanes.len();
        let items = lanes.iter().map(move |&lane| self.lists.items(column + lane as usize));
        items.map(|items| items.iter().map(|&row| self.rows[row as usize]))
    }

    /// The earlier slot of the batch that names the same rows, if there is one.
    pub(crate) fn twin(&self, slot: usize) -> Option<usize> {
        let same = self.problem.slot(slot).same_as.0 as usize;
        (same != slot).then_some(same)
    }

    /// The first row of a result slot: its rows follow each other as the lanes run.
    pub(crate) fn result_start(&self, batch: &Batch, slot: usize) -> u32 {
        let mut rows = self.slot_rows(batch, slot);
        debug_assert!(rows.clone().zip(rows.clone().skip(1)).all(|(a, b)| a + 1 == b));
        rows.next().expect("a batch has lanes")
    }

    /// The rows that the lanes of a batch, as they run, name at a slot.
    pub(crate) fn slot_rows(&self, batch: &Batch, slot: usize) -> impl Iterator<Item = u32> + Clone {
        let lanes = &self.lane_order[batch.lanes.start as usize..batch.lanes.end as usize];
        let named = self.problem.slot_rows(self.problem.slot(slot), lanes.len() as u32);
        lanes.iter().map(|&lane| self.rows[named[lane as usize] as usize])
    }
}

/// The field that holds a value.
pub(crate) fn field_of(graph: &GraphData, storage: &Storage, value: ValueId) -> usize {
    let node = graph.arena.node(graph.arena.producer(value));
    storage.sigs[node.sig.index()].results[value.index() - node.results as usize].0.index()
}
