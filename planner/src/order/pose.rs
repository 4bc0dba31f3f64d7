//! Poses the layout problem of batches whose waves are known: rows in batch order, and the rows that each operand reads.

use super::rows::{Columns, Copied, Gathered, Target, bound_number};
use super::{NONE, Order};
use crate::cluster::Clusters;
use crate::grow::Placed;
use crate::layout::{self, KnownSlot, LayoutError};
use crate::schedule::Batches;
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::SlabId;
use std::ops::Range;

/// Working memory of [`Order::pose`].
#[derive(Debug, Default)]
pub(super) struct Posing {
    /// Which rows that are there are read, ascending, a slab at a time: the slab, the row and its value.
    pub(super) reused: Vec<(u32, u32, ValueId)>,
    /// Per slab how many these are.
    pub(super) before: Vec<u32>,
    /// Per slab these rows and those of this plan.
    pub(super) sizes: Vec<u32>,
    /// The slots of a batch.
    results: Vec<KnownSlot>,
    operands: Vec<KnownSlot>,
    /// The rows of each slab.
    slabs: Vec<Range<u32>>,
    /// The operand places that take values, batch after batch, and the rows of the slabs that they read.
    places: Vec<(u32, Range<u32>)>,
    /// The same of operand places that take lists.
    lists: Vec<(u32, Range<u32>)>,
    /// The operand places that are bound, batch after batch.
    bound: Vec<u32>,
    /// The first rows of results, batch after batch.
    starts: Vec<u32>,
    targets: Vec<Target>,
}

impl Posing {
    /// Finds the rows that are there and read: of what was planned before, the problem has no others.
    fn meet_reused(&mut self, clusters: &Clusters, storage: &Storage, placed: &Placed) {
        let place = |&value: &ValueId| {
            let (field, row) = placed.get(value).expect("what is used again is there");
            (storage.fields[field.index()].slab.0, row, value)
        };
        self.reused.clear();
        self.reused.extend(clusters.reused().iter().map(place));
        self.reused.sort_unstable();
        self.reused.dedup();
        self.before.clear();
        self.before.resize(storage.slabs.len(), 0);
        self.reused.iter().for_each(|reused| self.before[reused.0 as usize] += 1);
    }
}

impl Order {
    /// Poses the layout problem: rows in batch order, and the rows that each operand reads.
    pub(super) fn pose(
        &mut self,
        graph: &GraphData,
        (clusters, batches): (&Clusters, &Batches),
        storage: &Storage,
        placed: &Placed,
    ) -> Result<(), LayoutError> {
        let mut posing = std::mem::take(&mut self.posing);
        self.count_slab_rows(storage)?;
        posing.meet_reused(clusters, storage, placed);
        posing.sizes.clear();
        let sizes = self.slab_rows.iter().zip(&storage.slabs).zip(&posing.before);
        posing.sizes.extend(sizes.map(|((rows, slab), before)| rows - slab.rows + before));
        self.problem.restart(&posing.sizes, &posing.before)?;
        posing.slabs.clear();
        let slabs = (0..storage.slabs.len()).map(|slab| layout::SlabId(slab as u32));
        posing.slabs.extend(slabs.map(|slab| self.problem.numbers(slab)));
        self.row_of.resize(graph.arena.values(), NONE);
        let mut next = 0;
        for (number, &(slab, _, value)) in posing.reused.iter().enumerate() {
            next = if number > 0 && posing.reused[number - 1].0 == slab { next + 1 } else { 0 };
            self.row_of[value.index()] = posing.slabs[slab as usize].start + next;
        }
        let first_job = |jobs: &Range<u32>| clusters.jobs[batches.items[jobs.start as usize] as usize];
        self.find_targets(graph, storage, first_job, &mut posing);
        let gathered = Gathered {
            graph,
            jobs: &clusters.jobs,
            items: &batches.items,
            places: &posing.places,
            lists: &posing.lists,
            bound: &posing.bound,
            starts: &posing.starts,
            copies: &self.copies,
        };
        let mut to = Columns {
            row_of: &mut self.row_of,
            nodes: &mut self.nodes,
            columns: self.problem.pool(),
            bound: &mut self.bound,
            lists: &mut self.lists,
            last_waves: &mut self.last_waves,
        };
        gathered.gather(&mut posing.targets, &mut to);
        self.problem.settle();
        self.posing = posing;
        Ok(())
    }

    /// Gives rows to the results of all batches, room to their operands, and rows to the values of sources.
    fn find_targets(
        &mut self,
        graph: &GraphData,
        storage: &Storage,
        first_job: impl Fn(&Range<u32>) -> NodeId,
        posing: &mut Posing,
    ) {
        let Posing { results, operands, slabs, places, lists, bound, starts, targets, .. } = posing;
        self.slot_waves.clear();
        self.last_waves.clear();
        self.copies.clear();
        places.clear();
        lists.clear();
        bound.clear();
        starts.clear();
        targets.clear();
        let (mut numbers, mut list_count) = (0, 0);
        for batch in &mut self.batches {
            let is_source = batch.jobs.is_empty();
            let any = if is_source { self.nodes[batch.lanes.start as usize] } else { first_job(&batch.jobs) };
            let own = &storage.sigs[batch.sig.index()];
            let firsts = [places.len() as u32, starts.len() as u32, bound.len() as u32];
            let first_list = lists.len() as u32;
            results.clear();
            results
                .extend(own.blocks_of(batch.home).iter().map(|block| known_slot(storage, block.slab, None)));
            operands.clear();
            for (place, operand) in graph.arena.operands(any).iter().enumerate() {
                let Some(value) = operand.as_value() else {
                    bound.push(place as u32);
                    continue;
                };
                let field = storage.fields.get(storage.place_field(batch.sig, place).index());
                if graph.arena.is_list(value, &graph.sigs) {
                    // There is no field where all lists are empty.
                    let slab = field.map_or(0..0, |field| slabs[field.slab.index()].clone());
                    lists.push((place as u32, slab));
                    self.last_waves.resize(self.problem.rows() as usize, 0);
                    continue;
                }
                let field = field.expect("values that are read have a field");
                operands.push(known_slot(storage, field.slab, Some(field.width())));
                places.push((place as u32, slabs[field.slab.index()].clone()));
            }
            let lanes = batch.lanes.len() as u32;
            let columns = self.problem.add_known(lanes, results, operands);
            self.slot_waves.resize(self.problem.slot_count() as usize, batch.wave);
            if batch.home > 0 {
                let first = self.row_of[graph.arena.node(any).results as usize];
                self.copies.push(Copied { first: first..first + lanes, start: self.problem.first_row(0) });
            } else {
                starts.extend(own.results.iter().map(|&(_, block)| self.problem.first_row(block)));
            }
            let own_bound = firsts[2]..bound.len() as u32;
            batch.bound = numbers;
            numbers += lanes * own_bound.len() as u32;
            // What it held before is written before it is read.
            self.bound.resize(self.bound.len().max(numbers as usize), 0);
            let own_lists = first_list..lists.len() as u32;
            batch.lists = list_count;
            list_count += lanes * own_lists.len() as u32;
            if is_source {
                let nodes = &self.nodes[batch.lanes.start as usize..batch.lanes.end as usize];
                for (lane, &node) in (0..).zip(nodes) {
                    let results = &mut self.row_of[graph.arena.node(node).results as usize..];
                    let own = results.iter_mut().zip(&starts[firsts[1] as usize..]);
                    own.for_each(|(row, start)| *row = start + lane);
                    let columns = (batch.bound + lane..).step_by(lanes as usize);
                    for (at, &place) in columns.zip(&bound[firsts[2] as usize..]) {
                        self.bound[at as usize] = bound_number(graph.arena.operands(node)[place as usize]);
                    }
                }
            }
            targets.push(Target {
                jobs: batch.jobs.clone(),
                next: batch.lanes.start,
                done: 0,
                lanes,
                columns,
                wave: batch.wave,
                places: firsts[0]..places.len() as u32,
                lists: own_lists,
                list_columns: batch.lists,
                bound: own_bound,
                bound_columns: batch.bound,
                starts: firsts[1]..starts.len() as u32,
            });
        }
        self.lists.restart(list_count as usize);
    }

    fn count_slab_rows(&mut self, storage: &Storage) -> Result<(), LayoutError> {
        self.slab_rows.clear();
        self.slab_rows.extend(storage.slabs.iter().map(|slab| slab.rows));
        for batch in &self.batches {
            for block in storage.sigs[batch.sig.index()].blocks_of(batch.home) {
                let rows = &mut self.slab_rows[block.slab.index()];
                *rows = rows.checked_add(batch.lanes.len() as u32).ok_or(LayoutError::TooLarge)?;
            }
        }
        Ok(())
    }
}

/// A slot of a slab; of all fields of it if `width` does not say how many elements are read.
fn known_slot(storage: &Storage, slab: SlabId, width: Option<u32>) -> KnownSlot {
    let bytes = match width {
        Some(width) => width * 4,
        None => {
            let fields = storage.slabs[slab.index()].fields.clone();
            let fields = &storage.fields[fields.start as usize..fields.end as usize];
            fields.iter().map(|field| field.width() * 4).sum()
        }
    };
    (layout::SlabId(slab.0), bytes)
}
