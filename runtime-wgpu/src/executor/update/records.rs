//! The records and dispatches of an update: one dispatch per operation, or several if arrays span several buffers.

use super::runs::{BufferRun, Segment, Stretch, stretches};
use super::sparse_rows::Listing;
use crate::compile::{MAX_THREADS, TILE_ELEMENTS, UpdateOp, Updates};
use crate::error::GpuError;
use autobatch_ir::numeric::store::BLOCK;
use autobatch_ir::plan::{StoreId, StoreKind, UpdatePlan};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of groups in a dimension.
const MAX_GROUPS: u64 = 65_535;
/// Elements of a block of a sum of squares.
const BLOCK_ELEMENTS: u64 = BLOCK as u64;
/// Lanes of a block's sum.
const LANES: u64 = 16;

/// A stretch in the record of a dispatch.
struct Entry {
    /// The groups that execute it. For sums of squares: groups of sixteen threads.
    groups: u64,
    /// Its words in the record after the first.
    words: Vec<u32>,
}

/// A program of an operation of the update.
#[derive(Clone, Copy)]
struct ProgramOf {
    op: usize,
    program: usize,
}

/// A dispatch of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UpdateDispatch {
    pub(super) op: usize,
    /// The program of the operation that it runs.
    pub(super) program: usize,
    /// The first word of its record.
    pub(super) record: u32,
    /// The number of groups that have work.
    pub(super) groups_with_work: u32,
    /// Groups in both dimensions.
    pub(super) groups: [u32; 2],
    /// The buffers of gradients, parameters and states.
    pub(super) buffers: [usize; 3],
}

/// The locations of all arrays.
pub(super) struct ArrayLocations<'a> {
    pub(super) plan: &'a UpdatePlan,
    pub(super) updates: &'a Updates,
    pub(super) listing: &'a Listing,
    /// For each parameter the runs of its gradient, its value and its states.
    pub(super) runs: &'a [[BufferRun; 3]],
}

#[derive(Default)]
pub(super) struct Records {
    pub(super) words: Vec<u32>,
    pub(super) dispatches: Vec<UpdateDispatch>,
    /// Words of floats, scalars and sums.
    pub(super) numbers: u64,
}

impl Records {
    pub(super) fn new(at: &ArrayLocations<'_>) -> Result<Self, GpuError> {
        let numbers = u64::from(at.updates.floats) + u64::from(at.updates.scalars);
        let mut records = Self { numbers, ..Self::default() };
        for (number, op) in at.updates.ops.iter().enumerate() {
            match op {
                UpdateOp::Sumsq { stores, scalar } => records.sumsq(at, number, stores, *scalar)?,
                UpdateOp::Scalars { record, .. } => {
                    records.dispatch(ProgramOf { op: number, program: 0 }, record.words(), 1, [0; 3])?;
                }
                UpdateOp::Apply { .. } => records.apply(at, number, op)?,
            }
        }
        Ok(records)
    }

    fn dispatch(
        &mut self,
        ProgramOf { op, program }: ProgramOf,
        record: &[u32],
        groups: u64,
        buffers: [usize; 3],
    ) -> Result<(), GpuError> {
        let (across, down) = (groups.min(MAX_GROUPS), groups.div_ceil(MAX_GROUPS));
        if groups > MAX_THREADS / TILE_ELEMENTS || down > MAX_GROUPS {
            let (needed, limit) = (groups * TILE_ELEMENTS, MAX_THREADS);
            return Err(GpuError::TooLarge { what: "the elements of an update", needed, limit });
        }
        let end = self.words.len() as u64;
        let at =
            u32::try_from(end).map_err(|_| GpuError::beyond_addresses("the records of an update", end))?;
        self.words.extend_from_slice(record);
        self.dispatches.push(UpdateDispatch {
            op,
            program,
            record: at,
            groups_with_work: groups as u32,
            groups: [across as u32, down as u32],
            buffers,
        });
        Ok(())
    }

    /// Updates parameters: one dispatch per combination of buffers, or several if 32 bits cannot count the threads.
    fn apply(&mut self, at: &ArrayLocations<'_>, number: usize, op: &UpdateOp) -> Result<(), GpuError> {
        let UpdateOp::Apply { record, sparse, params, gradients, .. } = op else { return Ok(()) };
        let mut by_buffers: BTreeMap<(usize, [usize; 3]), Vec<Entry>> = BTreeMap::new();
        let none = BufferRun::new();
        for &param in params {
            let elements = at.plan.stores[param.index()].ty.shape.elements() as u64;
            let [gradient, value, states] = &at.runs[param.index()];
            let gradient = if *gradients { gradient } else { &none };
            // Without a list, the update visits all rows.
            let lookups = at.listing.lookups(param).filter(|_| *sparse);
            for stretch in stretches(elements, [gradient, value, states]) {
                let entries =
                    by_buffers.entry((usize::from(lookups.is_some()), stretch.buffers)).or_default();
                match lookups {
                    None => add_whole(&stretch, entries),
                    Some(lookups) => at.add_rows(param, &stretch, lookups, entries),
                }
            }
        }
        for ((program, buffers), entries) in by_buffers {
            let mut rest = entries.as_slice();
            while !rest.is_empty() {
                let mut groups = 0;
                let fits = |entry: &&Entry| {
                    groups += entry.groups;
                    groups <= MAX_THREADS / TILE_ELEMENTS
                };
                let count = rest.iter().take_while(fits).count().max(1);
                let mut words = record.words().to_vec();
                (words[0], words[1]) = (count as u32, record.words().len() as u32);
                let groups = write_entries(&mut words, &rest[..count]);
                if groups > 0 {
                    self.dispatch(ProgramOf { op: number, program }, &words, groups, buffers)?;
                }
                rest = &rest[count..];
            }
        }
        Ok(())
    }

    /// Sums squares: first the blocks, by the buffers that hold them, then all blocks.
    fn sumsq(
        &mut self,
        at: &ArrayLocations<'_>,
        op: usize,
        stores: &[StoreId],
        scalar: u32,
    ) -> Result<(), GpuError> {
        let mut by_buffers: BTreeMap<[usize; 3], Vec<Entry>> = BTreeMap::new();
        let mut join = vec![stores.len() as u32, at.updates.floats + scalar];
        for &store in stores {
            let mut summed = at.summed(store, self.numbers);
            let blocks = summed.elements.div_ceil(BLOCK_ELEMENTS);
            join.extend([self.numbers as u32, blocks as u32]);
            self.numbers += blocks + 2 * LANES;
            for segment in summed.run {
                let mut buffers = [0; 3];
                buffers[summed.role] = segment.buffer;
                summed.add(segment, by_buffers.entry(buffers).or_default());
            }
        }
        for (buffers, entries) in by_buffers {
            let mut record = vec![entries.len() as u32, 3, 0];
            let sixteens = write_entries(&mut record, &entries);
            record[2] = sixteens as u32;
            let groups = sixteens.div_ceil(TILE_ELEMENTS / LANES);
            self.dispatch(ProgramOf { op, program: 0 }, &record, groups, buffers)?;
        }
        self.dispatch(ProgramOf { op, program: 1 }, &join, 1, [0; 3])
    }
}

/// Writes entries, each behind the number of groups up to its end. Returns the groups of all.
fn write_entries(record: &mut Vec<u32>, entries: &[Entry]) -> u64 {
    let mut groups = 0;
    for entry in entries {
        groups += entry.groups;
        record.push(groups as u32);
        record.extend_from_slice(&entry.words);
    }
    groups
}

/// A store whose squares are summed, segment by segment.
struct SummedStore<'a> {
    elements: u64,
    /// 0 for a gradient, 1 for a parameter, 2 for a state.
    role: usize,
    run: &'a BufferRun,
    /// The offset that is added to the bases of its segments.
    base: u32,
    /// Words of a tile of states.
    tile: u32,
    /// The first word of the sums of its blocks.
    sums: u64,
    /// A block that spans two buffers hands its lanes to the next dispatch, alternately through these two places.
    handover: [u64; 2],
    next_handover: usize,
    /// The first element that is not summed yet.
    first: u64,
}

impl SummedStore<'_> {
    /// Adds the entries of a segment: the rest of an open block, whole blocks, and the start of the next block.
    fn add(&mut self, segment: &Segment, entries: &mut Vec<Entry>) {
        let end = segment.end.min(self.elements);
        if !self.first.is_multiple_of(BLOCK_ELEMENTS) && self.first < end {
            let block_end = self.first.next_multiple_of(BLOCK_ELEMENTS).min(self.elements);
            let continues = block_end > end;
            self.add_entry(segment, block_end.min(end), continues, entries);
            self.next_handover = if continues { self.next_handover } else { 1 - self.next_handover };
        }
        let whole = if end == self.elements { end } else { end - end % BLOCK_ELEMENTS };
        if self.first < whole {
            self.add_entry(segment, whole, false, entries);
        }
        if self.first < end {
            self.add_entry(segment, end, true, entries);
        }
    }

    fn add_entry(&mut self, segment: &Segment, end: u64, continues: bool, entries: &mut Vec<Entry>) {
        let first = self.first;
        let words = vec![
            first as u32,
            end as u32,
            segment.base.wrapping_add(self.base),
            self.role as u32,
            self.tile,
            (self.sums + first / BLOCK_ELEMENTS) as u32,
            self.handover[self.next_handover] as u32,
            u32::from(!first.is_multiple_of(BLOCK_ELEMENTS)),
            u32::from(continues),
        ];
        entries.push(Entry { groups: (end - first).div_ceil(BLOCK_ELEMENTS), words });
        self.first = end;
    }
}

/// Adds a stretch of a whole array, in entries whose threads can be counted.
fn add_whole(stretch: &Stretch, entries: &mut Vec<Entry>) {
    let mut first = stretch.first;
    while first < stretch.end {
        let end = stretch.end.min(first + MAX_THREADS);
        let mut words = vec![first as u32, end as u32];
        words.extend(stretch.bases);
        entries.push(Entry { groups: (end - first).div_ceil(TILE_ELEMENTS), words });
        first = end;
    }
}

impl ArrayLocations<'_> {
    /// The squares of a store, with sums from the word `sums` on.
    fn summed(&self, store: StoreId, sums: u64) -> SummedStore<'_> {
        let plan_store = &self.plan.stores[store.index()];
        let elements = plan_store.ty.shape.elements() as u64;
        let (param, role) = match plan_store.kind {
            StoreKind::Grad(of) => (of, 0),
            StoreKind::Param(_) => (store, 1),
            StoreKind::State(of) => (of, 2),
        };
        let states = self.updates.states.get(param.index()).map_or(&[][..], Vec::as_slice);
        let number = states.iter().position(|&state| state == store).unwrap_or(0) as u64;
        let blocks_end = sums + elements.div_ceil(BLOCK_ELEMENTS);
        SummedStore {
            elements,
            role,
            run: &self.runs[param.index()][role],
            base: (number * TILE_ELEMENTS) as u32,
            tile: (states.len() as u64 * TILE_ELEMENTS) as u32,
            sums,
            handover: [blocks_end, blocks_end + LANES],
            next_handover: 0,
            first: 0,
        }
    }

    /// Adds the sparse rows of a table that lie in a stretch.
    fn add_rows(&self, param: StoreId, stretch: &Stretch, lookups: &[Range<u32>], entries: &mut Vec<Entry>) {
        let shape = self.plan.stores[param.index()].ty.shape;
        let width = shape.elements() as u64 / u64::from(shape.dims().first().copied().unwrap_or(1).max(1));
        for lookups in lookups {
            let mut first = u64::from(lookups.start);
            while first < u64::from(lookups.end) {
                let end = u64::from(lookups.end).min(first + (MAX_THREADS / width).max(1));
                let mut words = vec![stretch.first as u32, stretch.end as u32];
                words.extend(stretch.bases);
                words.extend([self.listing.list_at(), self.listing.owners_at(param)]);
                words.extend([first as u32, end as u32, width as u32]);
                let groups = ((end - first) * width).div_ceil(TILE_ELEMENTS);
                entries.push(Entry { groups, words });
                first = end;
            }
        }
    }
}
