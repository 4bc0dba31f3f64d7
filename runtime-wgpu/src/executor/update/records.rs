//! What an update plan executes, once it is known where everything is: a record and a dispatch for each deed,
//! or several where arrays lie in several buffers.

use super::runs::{Run, Stretch, stretches};
use super::sparse_rows::Listing;
use crate::compile::{Deed, MAX_THREADS, TILE_ELEMENTS, Updates};
use crate::error::GpuError;
use autobatch_ir::numeric::store::BLOCK;
use autobatch_ir::plan::{StoreId, StoreKind, UpdatePlan};
use std::collections::BTreeMap;
use std::ops::Range;

/// Groups of a dimension.
const MOST_GROUPS: u64 = 65_535;
/// Elements of a block of a sum of squares.
const SUMMED: u64 = BLOCK as u64;
/// Lanes of a block's sum.
const LANES: u64 = 16;

/// Groups (of sums, sixteens) that execute a stretch, and its words of the record but the first.
type Part = (u64, Vec<u32>);

/// A dispatch of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UpdateDispatch {
    /// Which deed it is of.
    pub(super) deed: usize,
    /// Which of the deed's programs it runs.
    pub(super) program: usize,
    /// Where its record begins.
    pub(super) record: u32,
    /// How many groups have work.
    pub(super) live: u32,
    /// Groups in both dimensions.
    pub(super) groups: [u32; 2],
    /// The buffers of gradients, parameters and states.
    pub(super) buffers: [usize; 3],
}

/// Where the arrays are.
pub(super) struct Whereabouts<'a> {
    pub(super) plan: &'a UpdatePlan,
    pub(super) updates: &'a Updates,
    pub(super) touched: &'a Listing,
    /// Of each parameter the runs of its gradient, itself and its states.
    pub(super) runs: &'a [[Run; 3]],
}

/// Records and dispatches.
#[derive(Default)]
pub(super) struct Records {
    pub(super) words: Vec<u32>,
    pub(super) dispatches: Vec<UpdateDispatch>,
    /// Words of floats, scalars and sums.
    pub(super) numbers: u64,
}

impl Records {
    pub(super) fn new(at: &Whereabouts<'_>) -> Result<Self, GpuError> {
        let numbers = u64::from(at.updates.floats) + u64::from(at.updates.scalars);
        let mut records = Self { numbers, ..Self::default() };
        for (number, deed) in at.updates.deeds.iter().enumerate() {
            match deed {
                Deed::Sumsq { stores, scalar } => records.sumsq(at, number, stores, *scalar)?,
                Deed::Scalars { record, .. } => {
                    records.dispatch((number, 0), record.words(), 1, [0; 3])?;
                }
                Deed::Apply { record, touched, params, gradients, .. } => {
                    records.apply(at, number, record.words(), (*touched, *gradients), params)?;
                }
            }
        }
        Ok(records)
    }

    fn dispatch(
        &mut self,
        (deed, program): (usize, usize),
        record: &[u32],
        live: u64,
        buffers: [usize; 3],
    ) -> Result<(), GpuError> {
        let (across, down) = (live.min(MOST_GROUPS), live.div_ceil(MOST_GROUPS));
        if live > MAX_THREADS / TILE_ELEMENTS || down > MOST_GROUPS {
            let (needed, limit) = (live * TILE_ELEMENTS, MAX_THREADS);
            return Err(GpuError::TooLarge { what: "the elements of an update", needed, limit });
        }
        let at = u32::try_from(self.words.len()).map_err(|_| GpuError::TooLarge {
            what: "the records of an update",
            needed: self.words.len() as u64 * 4,
            limit: u64::from(u32::MAX) * 4,
        })?;
        self.words.extend_from_slice(record);
        self.dispatches.push(UpdateDispatch {
            deed,
            program,
            record: at,
            live: live as u32,
            groups: [across as u32, down as u32],
            buffers,
        });
        Ok(())
    }

    /// The dispatch of some stretches, each the words of its record without the first.
    fn of_stretches(
        &mut self,
        program: (usize, usize),
        head: &[u32],
        buffers: [usize; 3],
        all: &[Part],
    ) -> Result<(), GpuError> {
        let mut record = head.to_vec();
        (record[0], record[1]) = (all.len() as u32, head.len() as u32);
        let mut groups = 0;
        for (own, words) in all {
            groups += own;
            record.push(groups as u32);
            record.extend_from_slice(words);
        }
        match groups {
            0 => Ok(()),
            _ => self.dispatch(program, &record, groups, buffers),
        }
    }

    /// Updates of parameters: of all that lie in the same buffers at once.
    fn apply(
        &mut self,
        at: &Whereabouts<'_>,
        deed: usize,
        head: &[u32],
        (touched, gradients): (bool, bool),
        params: &[StoreId],
    ) -> Result<(), GpuError> {
        let mut by_buffers: BTreeMap<(usize, [usize; 3]), Vec<Part>> = BTreeMap::new();
        let none = Run::new();
        for &param in params {
            let elements = at.plan.stores[param.index()].ty.shape.elements() as u64;
            let [gradient, value, states] = &at.runs[param.index()];
            let gradient = if gradients { gradient } else { &none };
            // Without a list, all rows count as touched.
            let lookups = at.touched.lookups(param).filter(|_| touched);
            for stretch in stretches(elements, [gradient, value, states]) {
                let all = by_buffers.entry((usize::from(lookups.is_some()), stretch.buffers)).or_default();
                match lookups {
                    None => whole(&stretch, all),
                    Some(lookups) => at.rows(param, &stretch, lookups, all),
                }
            }
        }
        for ((program, buffers), all) in by_buffers {
            // As many at once as threads can be counted.
            let mut rest = all.as_slice();
            while !rest.is_empty() {
                let mut groups = 0;
                let fits = |(own, _): &&Part| {
                    groups += own;
                    groups <= MAX_THREADS / TILE_ELEMENTS
                };
                let count = rest.iter().take_while(fits).count().max(1);
                self.of_stretches((deed, program), head, buffers, &rest[..count])?;
                rest = &rest[count..];
            }
        }
        Ok(())
    }

    /// A sum of squares: blocks by the buffer in which they are, then all of them.
    fn sumsq(
        &mut self,
        at: &Whereabouts<'_>,
        deed: usize,
        stores: &[StoreId],
        scalar: u32,
    ) -> Result<(), GpuError> {
        let mut by_buffers: BTreeMap<[usize; 3], Vec<Part>> = BTreeMap::new();
        let mut join = vec![stores.len() as u32, at.updates.floats + scalar];
        for &store in stores {
            let elements = at.plan.stores[store.index()].ty.shape.elements() as u64;
            let sums = self.numbers;
            let blocks = elements.div_ceil(SUMMED);
            // Blocks that go on in the next buffer take turns with two places for their lanes.
            let turns = [sums + blocks, sums + blocks + LANES];
            self.numbers += blocks + 2 * LANES;
            join.extend([sums as u32, blocks as u32]);
            let (role, run, base) = at.summed(store);
            let (mut first, mut turn) = (0u64, 0);
            for piece in run {
                let mut buffers = [0; 3];
                buffers[role] = piece.buffer;
                let all = by_buffers.entry(buffers).or_default();
                let mut add = |first: u64, end: u64, turn: usize, goes_on: bool| {
                    let tile = at.updates.states.get(at.param(store).index()).map_or(0, Vec::len) as u64;
                    let handed = u32::from(!first.is_multiple_of(SUMMED));
                    let words = vec![
                        first as u32,
                        end as u32,
                        piece.base.wrapping_add(base),
                        role as u32,
                        (tile * TILE_ELEMENTS) as u32,
                        (sums + first / SUMMED) as u32,
                        turns[turn] as u32,
                        handed,
                        u32::from(goes_on),
                    ];
                    all.push(((end - first).div_ceil(SUMMED), words));
                };
                let end = piece.end.min(elements);
                // What is left of a block that began in another buffer.
                if !first.is_multiple_of(SUMMED) && first < end {
                    let of_block = first.next_multiple_of(SUMMED).min(elements);
                    add(first, of_block.min(end), turn, of_block > end);
                    turn = if of_block > end { turn } else { 1 - turn };
                    first = of_block.min(end);
                }
                let whole = if end == elements { end } else { end - end % SUMMED };
                if first < whole {
                    add(first, whole, turn, false);
                    first = whole;
                }
                if first < end {
                    add(first, end, turn, true);
                    first = end;
                }
            }
        }
        for (buffers, all) in by_buffers {
            let sixteens: u64 = all.iter().map(|(own, _)| own).sum();
            let mut record = vec![all.len() as u32, 3, sixteens as u32];
            let mut before = 0;
            for (own, words) in all {
                before += own;
                record.push(before as u32);
                record.extend(words);
            }
            self.dispatch((deed, 0), &record, sixteens.div_ceil(TILE_ELEMENTS / LANES), buffers)?;
        }
        self.dispatch((deed, 1), &join, 1, [0; 3])
    }
}

/// A stretch of a whole array.
fn whole(stretch: &Stretch, all: &mut Vec<Part>) {
    let mut first = stretch.first;
    while first < stretch.end {
        // As many elements as threads can be counted.
        let end = stretch.end.min(first + MAX_THREADS);
        let mut words = vec![first as u32, end as u32];
        words.extend(stretch.bases);
        all.push(((end - first).div_ceil(TILE_ELEMENTS), words));
        first = end;
    }
}

impl Whereabouts<'_> {
    /// The parameter that a store belongs to.
    fn param(&self, store: StoreId) -> StoreId {
        match self.plan.stores[store.index()].kind {
            StoreKind::Param(_) => store,
            StoreKind::State(of) | StoreKind::Grad(of) => of,
        }
    }

    /// What a sum of squares reads: the role, the run, and what is added to its bases.
    fn summed(&self, store: StoreId) -> (usize, &Run, u32) {
        let param = self.param(store);
        let runs = &self.runs[param.index()];
        match self.plan.stores[store.index()].kind {
            StoreKind::Grad(_) => (0, &runs[0], 0),
            StoreKind::Param(_) => (1, &runs[1], 0),
            StoreKind::State(_) => {
                let own = &self.updates.states[param.index()];
                let number = own.iter().position(|&state| state == store).unwrap_or(0);
                (2, &runs[2], (number as u64 * TILE_ELEMENTS) as u32)
            }
        }
    }

    /// The sparse rows of a table, as far as they lie in a stretch.
    fn rows(&self, param: StoreId, stretch: &Stretch, lookups: &[Range<u32>], all: &mut Vec<Part>) {
        let shape = self.plan.stores[param.index()].ty.shape;
        let width = shape.elements() as u64 / u64::from(shape.dims().first().copied().unwrap_or(1).max(1));
        for lookups in lookups {
            let mut first = u64::from(lookups.start);
            while first < u64::from(lookups.end) {
                let end = u64::from(lookups.end).min(first + (MAX_THREADS / width).max(1));
                let mut words = vec![stretch.first as u32, stretch.end as u32];
                words.extend(stretch.bases);
                words.extend([self.touched.list_at(), self.touched.owners_at(param)]);
                words.extend([first as u32, end as u32, width as u32]);
                all.push((((end - first) * width).div_ceil(TILE_ELEMENTS), words));
                first = end;
            }
        }
    }
}
