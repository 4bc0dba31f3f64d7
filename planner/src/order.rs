//! Waves and rows: in which order batches are played, and which row each result has.
//!
//! *Needs* batches from a scheduler and the storage of every signature. *Ensures* batches sorted
//! into waves (a batch's wave is one after the latest of those it reads), an order of lanes inside
//! each batch, and a row for every result, such that the blocks of rows that a step writes are
//! consecutive. In [`Mode::Infer`] a row is given away again after the last wave that reads it, so
//! memory follows what is alive, not what was computed.
//!
//! *Cost.* Linear in applications and operands, apart from the layout planner's own.

use crate::cluster::{Clusters, NONE};
use crate::layout::{self, LayoutError, Role, SlotSpec};
use crate::storage::{SigStorage, Storage};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{AppId, SigId, ValueId};
use autobatch_ir::plan::Mode;

/// One batch: applications of one type, in the order of their lanes.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) sig: SigId,
    pub(crate) lanes: Vec<AppId>,
    /// The wave it is played in; sources are wave 0.
    pub(crate) wave: u32,
    /// The first row of each of its signature's blocks.
    pub(crate) rows: Vec<u32>,
}

/// How rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// As the applications were emitted.
    Batch,
    /// As the consumers read, from the last batch to the first.
    #[default]
    Propagated,
}

/// Batches in playing order, with the row of every value.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) batches: Vec<Batch>,
    /// The row of each value, or [`NONE`].
    pub(crate) row_of: Vec<u32>,
    /// Rows of each slab.
    pub(crate) slab_rows: Vec<u32>,
}

impl Order {
    /// Sorts batches into waves and numbers their rows in that order.
    pub(crate) fn new(
        graph: &GraphData,
        clusters: &Clusters,
        storage: &Storage,
        batches: &crate::schedule::Batches,
        wanted: &[ValueId],
        request: (RowOrder, Mode),
    ) -> Result<Self, LayoutError> {
        let (row_order, mode) = request;
        let mut order = Self { row_of: vec![NONE; graph.arena.values()], ..Self::default() };
        order.collect(graph, clusters, batches);
        if row_order == RowOrder::Propagated {
            order.number_rows(graph, storage);
            order.reorder(graph, storage)?;
        }
        match mode {
            Mode::Infer => order.number_and_reuse_rows(graph, storage, wanted),
            Mode::Train | Mode::Grow => order.number_rows(graph, storage),
        }
        Ok(order)
    }

    fn collect(&mut self, graph: &GraphData, clusters: &Clusters, batches: &crate::schedule::Batches) {
        let source = |apps: &Vec<AppId>| Batch {
            sig: graph.arena.app(apps[0]).sig,
            lanes: apps.clone(),
            wave: 0,
            rows: Vec::new(),
        };
        self.batches.extend(clusters.sources.iter().map(source));
        let first_wave = u32::from(!clusters.sources.is_empty());
        let mut wave_of = vec![0u32; clusters.nodes.len()];
        for nodes in batches.iter() {
            let mut wave = first_wave;
            for &node in nodes {
                let (start, end) =
                    (clusters.operand_start[node as usize], clusters.operand_start[node as usize + 1]);
                for &operand in &clusters.operands[start as usize..end as usize] {
                    wave = wave.max(wave_of[operand as usize] + 1);
                }
            }
            nodes.iter().for_each(|&node| wave_of[node as usize] = wave);
            let lanes = nodes.iter().map(|&node| clusters.nodes[node as usize]).collect();
            let sig = clusters.types[clusters.ty[nodes[0] as usize] as usize];
            self.batches.push(Batch { sig, lanes, wave, rows: Vec::new() });
        }
        self.batches.sort_by_key(|batch| batch.wave);
    }

    /// Gives every batch the next rows of its slabs.
    fn number_rows(&mut self, graph: &GraphData, storage: &Storage) {
        self.slab_rows.clear();
        self.slab_rows.resize(storage.slabs.len(), 0);
        for batch in &mut self.batches {
            batch.rows.clear();
            for block in &storage.sigs[batch.sig.index()].blocks {
                let next = &mut self.slab_rows[block.slab.index()];
                batch.rows.push(*next);
                *next += batch.lanes.len() as u32;
            }
            write_rows_of(graph, &storage.sigs[batch.sig.index()], batch, &mut self.row_of);
        }
    }

    /// Lets consumers decide the order of lanes.
    fn reorder(&mut self, graph: &GraphData, storage: &Storage) -> Result<(), LayoutError> {
        let mut problem = layout::Problem::new();
        for &rows in &self.slab_rows {
            problem.add_slab(rows)?;
        }
        let mut rows: Vec<u32> = Vec::new();
        let mut spans: Vec<(Role, layout::SlabId, u32)> = Vec::new();
        for batch in &self.batches {
            rows.clear();
            spans.clear();
            let lanes = batch.lanes.len() as u32;
            for (block, &start) in storage.sigs[batch.sig.index()].blocks.iter().zip(&batch.rows) {
                rows.extend(start..start + lanes);
                spans.push((Role::Result, layout::SlabId(block.slab.0), block_bytes(storage, block.slab)));
            }
            let signature = graph.sigs.get(batch.sig);
            for place in 0..signature.operands.len() {
                let first = graph.arena.operands(batch.lanes[0])[place].as_value();
                let Some(first) = first.filter(|&value| !graph.arena.is_list(value, &graph.sigs)) else {
                    continue;
                };
                let field = field_of(graph, storage, first);
                rows.extend(batch.lanes.iter().map(|&app| {
                    let value = graph.arena.operands(app)[place].as_value();
                    value.map_or(NONE, |value| self.row_of[value.index()])
                }));
                let field = &storage.fields[field];
                spans.push((Role::Operand, layout::SlabId(field.slab.0), field.width() * 4));
            }
            let slots: Vec<SlotSpec<'_>> = spans
                .iter()
                .zip(rows.chunks(lanes as usize))
                .map(|(&(role, slab, bytes), rows)| SlotSpec { role, slab, bytes, rows })
                .collect();
            problem.add_batch(lanes, &slots)?;
        }
        let layout = layout::propagated(&problem);
        for (number, batch) in self.batches.iter_mut().enumerate() {
            let lanes = layout.lanes(&problem, layout::BatchId(number as u32));
            batch.lanes = lanes.iter().map(|&lane| batch.lanes[lane as usize]).collect();
        }
        Ok(())
    }

    /// Gives every batch rows that nothing alive holds, and takes them back after the last wave that
    /// reads them.
    fn number_and_reuse_rows(&mut self, graph: &GraphData, storage: &Storage, wanted: &[ValueId]) {
        let last_wave = self.last_waves(graph, wanted);
        let waves = self.batches.last().map_or(0, |batch| batch.wave as usize + 1);
        let mut heaps: Vec<Heap> = storage.slabs.iter().map(|_| Heap::new(waves)).collect();
        for batch in &mut self.batches {
            batch.rows.clear();
            let storage = &storage.sigs[batch.sig.index()];
            let lanes = batch.lanes.len() as u32;
            for (number, block) in storage.blocks.iter().enumerate() {
                let heap = &mut heaps[block.slab.index()];
                let start = heap.take(batch.wave, lanes);
                batch.rows.push(start);
                for (lane, &app) in batch.lanes.iter().enumerate() {
                    let first = graph.arena.app(app).results as usize;
                    let results = storage.results.iter().enumerate();
                    let held = results.filter(|(_, result)| result.1 as usize == number);
                    let last = held.map(|(place, _)| last_wave[first + place]).max().unwrap_or(0);
                    heap.release_after(last.max(batch.wave), start + lane as u32);
                }
            }
            write_rows_of(graph, storage, batch, &mut self.row_of);
        }
        self.slab_rows.clear();
        self.slab_rows.extend(heaps.iter().map(|heap| heap.high));
    }

    /// The last wave that reads each value; wanted values are never given away.
    fn last_waves(&self, graph: &GraphData, wanted: &[ValueId]) -> Vec<u32> {
        let mut last = vec![0; graph.arena.values()];
        for batch in &self.batches {
            for &app in &batch.lanes {
                for_each_read(graph, app, |value| last[value.index()] = batch.wave);
            }
        }
        wanted.iter().for_each(|&value| last[value.index()] = NONE);
        last
    }
}

fn write_rows_of(graph: &GraphData, storage: &SigStorage, batch: &Batch, row_of: &mut [u32]) {
    for (lane, &app) in batch.lanes.iter().enumerate() {
        let first = graph.arena.app(app).results as usize;
        for (place, &(_, block)) in storage.results.iter().enumerate() {
            row_of[first + place] = batch.rows[block as usize] + lane as u32;
        }
    }
}

fn block_bytes(storage: &Storage, slab: autobatch_ir::plan::SlabId) -> u32 {
    let fields = storage.slabs[slab.index()].fields.clone();
    storage.fields[fields.start as usize..fields.end as usize].iter().map(|field| field.width() * 4).sum()
}

/// The field that holds a value.
pub(crate) fn field_of(graph: &GraphData, storage: &Storage, value: ValueId) -> usize {
    let app = graph.arena.app(graph.arena.producer(value));
    storage.sigs[app.sig.index()].results[value.index() - app.results as usize].0.index()
}

/// Calls `read` for every value that an application reads, elements of lists included.
pub(crate) fn for_each_read(graph: &GraphData, app: AppId, mut read: impl FnMut(ValueId)) {
    for value in graph.arena.operands(app).iter().filter_map(|operand| operand.as_value()) {
        if graph.arena.is_list(value, &graph.sigs) {
            let items = graph.arena.operands(graph.arena.producer(value));
            items.iter().filter_map(|item| item.as_value()).for_each(&mut read);
        } else {
            read(value);
        }
    }
}

/// How many free runs are looked at for one that is long enough.
const LOOK: usize = 256;

/// The rows of one slab over time: runs of free rows, and rows that become free after a wave.
struct Heap {
    /// Start and length of the free runs below `high`, ascending; no two touch.
    free: Vec<(u32, u32)>,
    /// Rows to free once their wave is over.
    ending: Vec<Vec<u32>>,
    /// Waves already over.
    over: usize,
    high: u32,
}

impl Heap {
    fn new(waves: usize) -> Self {
        Self { free: Vec::new(), ending: vec![Vec::new(); waves], over: 0, high: 0 }
    }

    /// The first of `rows` consecutive rows that nothing alive in `wave` holds.
    fn take(&mut self, wave: u32, rows: u32) -> u32 {
        while self.over < wave as usize {
            let ended = std::mem::take(&mut self.ending[self.over]);
            self.give(ended);
            self.over += 1;
        }
        if let Some(at) = self.free.iter().take(LOOK).position(|&(_, len)| len >= rows) {
            let (start, len) = self.free[at];
            if len > rows {
                self.free[at] = (start + rows, len - rows);
            } else {
                self.free.remove(at);
            }
            return start;
        }
        // A free run that touches the end is extended rather than left behind.
        let start = match self.free.last() {
            Some(&(start, len)) if start + len == self.high => {
                self.free.pop();
                start
            }
            _ => self.high,
        };
        self.high = self.high.max(start + rows);
        if start + rows < self.high {
            self.free.push((start + rows, self.high - start - rows));
        }
        start
    }

    fn release_after(&mut self, wave: u32, row: u32) {
        if let Some(ending) = self.ending.get_mut(wave as usize) {
            ending.push(row);
        }
    }

    /// Merges rows into the free runs.
    fn give(&mut self, mut rows: Vec<u32>) {
        if rows.is_empty() {
            return;
        }
        rows.sort_unstable();
        let given = rows.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len() as u32));
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(self.free.len() + 8);
        let mut old = std::mem::take(&mut self.free).into_iter().peekable();
        for run in given {
            while let Some(before) = old.next_if(|before| before.0 < run.0) {
                append(&mut merged, before);
            }
            append(&mut merged, run);
        }
        old.for_each(|run| append(&mut merged, run));
        self.free = merged;
    }
}

fn append(runs: &mut Vec<(u32, u32)>, run: (u32, u32)) {
    match runs.last_mut() {
        Some(last) if last.0 + last.1 == run.0 => last.1 += run.1,
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_after_the_wave_that_reads_them_last() {
        let mut heap = Heap::new(4);
        assert_eq!(heap.take(0, 3), 0);
        [(0, 1), (1, 2), (2, 1)].into_iter().for_each(|(row, wave)| heap.release_after(wave, row));
        assert_eq!(heap.take(1, 2), 3, "nothing is free while wave 1 reads");
        assert_eq!(heap.take(2, 1), 0);
        assert_eq!(heap.take(3, 2), 1, "rows 1 and 2 have joined");
        assert_eq!(heap.high, 5);
    }

    #[test]
    fn a_free_run_at_the_end_is_extended() {
        let mut heap = Heap::new(2);
        heap.take(0, 2);
        [0, 1].into_iter().for_each(|row| heap.release_after(0, row));
        assert_eq!(heap.take(1, 5), 0);
        assert_eq!(heap.high, 5);
    }
}
