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
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{AppId, SigId, ValueId};
use autobatch_ir::plan::Mode;
use std::collections::BTreeMap;

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
        row_order: RowOrder,
    ) -> Result<Self, LayoutError> {
        let mut order = Self { row_of: vec![NONE; graph.arena.values()], ..Self::default() };
        order.collect(graph, clusters, batches);
        order.number_rows(graph, storage);
        if row_order == RowOrder::Propagated {
            order.reorder(graph, storage)?;
            order.number_rows(graph, storage);
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
            write_rows(graph, storage, batch, &mut self.row_of);
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

    /// Gives rows away again after their last reader's wave.
    pub(crate) fn reuse_rows(&mut self, graph: &GraphData, storage: &Storage, wanted: &[ValueId]) {
        let waves = self.batches.last().map_or(0, |batch| batch.wave as usize + 1);
        let mut last_wave: Vec<Vec<u32>> =
            self.slab_rows.iter().map(|&rows| vec![0; rows as usize]).collect();
        for batch in &self.batches {
            for &app in &batch.lanes {
                for_each_read(graph, app, |value| {
                    let slab = storage.fields[field_of(graph, storage, value)].slab.index();
                    let last = &mut last_wave[slab][self.row_of[value.index()] as usize];
                    *last = (*last).max(batch.wave);
                });
            }
        }
        for &value in wanted {
            let slab = storage.fields[field_of(graph, storage, value)].slab.index();
            last_wave[slab][self.row_of[value.index()] as usize] = NONE;
        }
        let mut heaps: Vec<Heap> = self.slab_rows.iter().map(|_| Heap::new(waves)).collect();
        for batch in &mut self.batches {
            let lanes = batch.lanes.len() as u32;
            for (block, start) in storage.sigs[batch.sig.index()].blocks.iter().zip(&mut batch.rows) {
                let heap = &mut heaps[block.slab.index()];
                let old = *start;
                *start = heap.take(batch.wave, lanes);
                let lasts = &last_wave[block.slab.index()][old as usize..(old + lanes) as usize];
                for (lane, &last) in lasts.iter().enumerate() {
                    heap.release_after(last.max(batch.wave), *start + lane as u32);
                }
            }
            write_rows(graph, storage, batch, &mut self.row_of);
        }
        self.slab_rows.clear();
        self.slab_rows.extend(heaps.iter().map(|heap| heap.high));
    }
}

fn write_rows(graph: &GraphData, storage: &Storage, batch: &Batch, row_of: &mut [u32]) {
    let results = &storage.sigs[batch.sig.index()].results;
    for (lane, &app) in batch.lanes.iter().enumerate() {
        let first = graph.arena.app(app).results as usize;
        for (place, &(_, block)) in results.iter().enumerate() {
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

/// The rows of one slab over time: runs of free rows, and rows that become free after a wave.
struct Heap {
    /// Start and length of the free runs below `high`; no two touch.
    free: BTreeMap<u32, u32>,
    /// Rows to free once their wave is over.
    ending: Vec<Vec<u32>>,
    /// Waves already over.
    over: usize,
    high: u32,
}

impl Heap {
    fn new(waves: usize) -> Self {
        Self { free: BTreeMap::new(), ending: vec![Vec::new(); waves], over: 0, high: 0 }
    }

    /// The first of `rows` consecutive rows that nothing alive in `wave` holds.
    fn take(&mut self, wave: u32, rows: u32) -> u32 {
        while self.over < wave as usize {
            for row in std::mem::take(&mut self.ending[self.over]) {
                self.give(row);
            }
            self.over += 1;
        }
        let fit = self.free.iter().find(|&(_, &len)| len >= rows).map(|(&start, &len)| (start, len));
        if let Some((start, len)) = fit {
            self.free.remove(&start);
            if len > rows {
                self.free.insert(start + rows, len - rows);
            }
            return start;
        }
        // A free run that touches the end is extended rather than left behind.
        let start = match self.free.last_key_value() {
            Some((&start, &len)) if start + len == self.high => {
                self.free.remove(&start);
                start
            }
            _ => self.high,
        };
        self.high = start + rows;
        start
    }

    fn release_after(&mut self, wave: u32, row: u32) {
        if let Some(ending) = self.ending.get_mut(wave as usize) {
            ending.push(row);
        }
    }

    fn give(&mut self, row: u32) {
        let (mut start, mut len) = (row, 1);
        if let Some((&before, &run)) = self.free.range(..row).next_back()
            && before + run == row
        {
            self.free.remove(&before);
            (start, len) = (before, run + 1);
        }
        if let Some(run) = self.free.remove(&(row + 1)) {
            len += run;
        }
        self.free.insert(start, len);
    }
}

/// Whether memory is given away within the plan.
pub(crate) fn reuses_rows(mode: Mode) -> bool {
    mode == Mode::Infer
}
