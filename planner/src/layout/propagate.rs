//! Order propagation: the default layout.
//!
//! Results of a batch lie side by side in lane order, batch after batch. The layout only chooses lane orders. The pass
//! [`lanes_by_first_reader`] walks from the last batch to the first and orders the lanes of a batch as the first reader of its
//! results reads them, so that this reader finds an ascending run. For sequences of unequal length this sorts by length,
//! descending: every step reads a prefix of the step before. A batch without readers follows its widest operand afterwards.
//!
//! Cost: every slot entry is visited two or three times. Only the batches without readers are sorted.

use super::problem::{Batch, Slot};
use super::readers::{Walk, lanes_by_first_reader};
use super::{Access, Layout, Problem, measure, significant};

/// Working memory of [`propagated_with`], reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    walk: Walk,
    sorting: Sorting,
    /// The next place of each slab.
    cursors: Vec<u32>,
    /// The lanes of a batch before they moved.
    old: Vec<u32>,
    /// The access of every slot in batch order.
    unmoved: Vec<Access>,
    /// Memory of layouts.
    access: Vec<Access>,
    places: Vec<u32>,
    lanes: Vec<u32>,
}

impl Memory {
    /// The batches of the last layout that have no readers, descending. Empty if that layout is the batch order.
    pub(crate) fn unread(&self) -> &[u32] {
        &self.walk.unread
    }

    /// Sorts lanes by the places that they read. The places must differ.
    pub(crate) fn sort_by_place(&mut self, lanes: &mut [u32], place: impl Fn(u32) -> u32) {
        self.sorting.sort(lanes, place);
    }

    /// Forgets the last layout.
    pub(crate) fn forget(&mut self) {
        self.walk.unread.clear();
    }

    /// Takes the [parts](Layout::into_parts) of a layout back as memory.
    pub(crate) fn recycle(&mut self, parts: (Vec<u32>, Vec<u32>, Vec<Access>)) {
        (self.places, self.lanes, self.access) = parts;
    }
}

/// Orders lanes by their first reader, or keeps the batch order if that gathers no more rows.
pub(crate) fn propagated_with(problem: &Problem, memory: &mut Memory) -> Layout {
    let lanes = lanes_by_first_reader(problem, std::mem::take(&mut memory.lanes), &mut memory.walk);
    let places = place_in_lane_order(problem, &lanes, memory);
    let (places, lanes) = follow_operands(problem, memory, places, lanes);
    let layout = Layout::measured(problem, places, lanes, std::mem::take(&mut memory.access));
    // Batch order keeps every row where the problem numbers it, so it is measured without being made.
    let unmoved = measure(problem, &mut memory.unmoved, |_, slot, rows| {
        Access::of(significant(slot, rows).iter().copied())
    });
    if layout.gathered < unmoved {
        return layout;
    }
    memory.forget();
    batch_order(problem, layout)
}

/// Makes a layout the batch order: rows as the problem numbers them, lanes as the caller numbered them.
fn batch_order(problem: &Problem, layout: Layout) -> Layout {
    let Layout { mut places, mut lanes, access, .. } = layout;
    places.clear();
    problem.slabs().for_each(|(_, rows)| places.extend(0..rows.end - rows.start));
    lanes.clear();
    problem.all_batches().iter().for_each(|batch| lanes.extend(0..batch.lanes));
    Layout::measured(problem, places, lanes, access)
}

/// The slot that the lanes of a batch without readers follow: the widest operand that repeats no row, the first of equals.
pub(crate) fn widest<'a>(problem: &'a Problem, batch: &Batch) -> Option<&'a Slot> {
    let plannable = problem.batch_slots(batch).iter().filter(|slot| slot.is_plannable());
    // `max_by_key` returns the last of equals, and `rev` makes that the first slot.
    plannable.rev().max_by_key(|slot| slot.bytes)
}

/// Places the rows that existed before first, then the results of batch after batch in lane order.
fn place_in_lane_order(problem: &Problem, lanes: &[u32], memory: &mut Memory) -> Vec<u32> {
    let (mut places, next) = (std::mem::take(&mut memory.places), &mut memory.cursors);
    places.resize(problem.rows() as usize, 0);
    next.clear();
    for (before, rows) in problem.slabs() {
        (0..before).zip(rows.start as usize..).for_each(|(place, row)| places[row] = place);
        next.push(before);
    }
    for batch in problem.all_batches() {
        let order = &lanes[batch.span()];
        for slot in problem.results(batch) {
            let cursor = &mut next[slot.slab.0 as usize];
            let own = problem.result_rows(slot, batch);
            let own = &mut places[own];
            (*cursor..).zip(order).for_each(|(place, &lane)| own[lane as usize] = place);
            *cursor += batch.lanes;
        }
    }
    places
}

/// Sorts the lanes of batches without readers by the places of their widest operand. Their results move along inside their block.
fn follow_operands(
    problem: &Problem,
    memory: &mut Memory,
    mut places: Vec<u32>,
    mut lanes: Vec<u32>,
) -> (Vec<u32>, Vec<u32>) {
    let Memory { walk, sorting, old, .. } = memory;
    for &id in &walk.unread {
        let batch = &problem.all_batches()[id as usize];
        let Some(widest) = widest(problem, batch) else { continue };
        let order = &mut lanes[batch.span()];
        let rows = problem.slot_rows(widest, batch.lanes);
        old.clear();
        old.extend_from_slice(order);
        sorting.sort(order, |lane| places[rows[lane as usize] as usize]);
        if old == order {
            continue;
        }
        for slot in problem.results(batch) {
            let own = &mut places[problem.result_rows(slot, batch)];
            let block = &mut sorting.block;
            block.clear();
            block.extend(old.iter().map(|&lane| own[lane as usize]));
            order.iter().zip(&*block).for_each(|(&lane, &place)| own[lane as usize] = place);
        }
    }
    (places, lanes)
}

/// Memory of a sort of lanes.
#[derive(Debug, Default)]
struct Sorting {
    block: Vec<u32>,
    keyed: Vec<u64>,
}

impl Sorting {
    /// Sorts lanes by the places that they read. The places must differ.
    fn sort(&mut self, lanes: &mut [u32], place: impl Fn(u32) -> u32) {
        let Self { block, keyed } = self;
        let (low, high) = lanes.iter().fold((u32::MAX, 0), |(low, high), &lane| {
            let place = place(lane);
            (low.min(place), high.max(place))
        });
        let places_between = high.checked_sub(low).map_or(0, |last| last as usize + 1);
        if places_between <= 4 * lanes.len() {
            // A sort by distribution: each lane goes to its place, and the block is read in order.
            block.clear();
            block.resize(places_between, u32::MAX);
            lanes.iter().for_each(|&lane| block[(place(lane) - low) as usize] = lane);
            let read = block.iter().copied().filter(|&lane| lane != u32::MAX);
            lanes.iter_mut().zip(read).for_each(|(own, lane)| *own = lane);
            return;
        }
        // A key holds the place in its upper half and the lane in its lower half.
        keyed.clear();
        keyed.extend(lanes.iter().map(|&lane| (u64::from(place(lane)) << 32) | u64::from(lane)));
        keyed.sort_unstable();
        lanes.iter_mut().zip(&*keyed).for_each(|(own, &entry)| *own = entry as u32);
    }
}
