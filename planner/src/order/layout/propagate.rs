//! Order propagation: the default layout.
//!
//! Results of a batch lie side by side in lane order, batch after batch. The layout only chooses lane orders. The pass
//! [`lanes_by_first_reader`] walks from the last batch to the first. The lanes of a batch get the order in which the first reader of
//! its results reads them, so this reader finds an ascending run. For sequences of unequal length this sorts by length,
//! descending: every step reads a prefix of the step before. A batch without readers follows its widest operand afterwards.
//!
//! Cost: every slot entry is visited two or three times. Only the batches without readers are sorted.

use super::problem::{Batch, LayoutProblem, Role, Slot};
use super::readers::{Walk, lanes_by_first_reader};
use crate::ids::{BatchId, Lane, ProvisionalRow, SlotId};
use crate::index_vec::IndexVec;

/// The chosen orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowLayout {
    /// For each provisional row its place in its slab.
    pub(crate) places: IndexVec<ProvisionalRow, u32>,
    /// The lanes of each batch in execution order, batch after batch.
    pub(crate) lanes: Vec<Lane>,
}

/// Working memory of [`propagated`], reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    walk: Walk,
    sorting: Sorting,
    /// The next place of each slab.
    cursors: Vec<u32>,
    /// The lanes of a batch before they moved.
    old: Vec<Lane>,
    /// Per slot whether its lanes need a table.
    tables: IndexVec<SlotId, bool>,
    /// Memory of layouts.
    places: IndexVec<ProvisionalRow, u32>,
    lanes: Vec<Lane>,
}

impl Memory {
    /// The batches of the last layout that have no readers, descending. Empty if that layout is the batch order.
    pub(crate) fn unread(&self) -> &[BatchId] {
        &self.walk.unread
    }

    /// Sorts lanes by the places that they read. The places must differ.
    pub(crate) fn sort_by_place(&mut self, lanes: &mut [Lane], place: impl Fn(Lane) -> u32) {
        self.sorting.sort(lanes, place);
    }

    /// Takes a layout back as memory.
    pub(crate) fn recycle(&mut self, RowLayout { places, lanes }: RowLayout) {
        (self.places, self.lanes) = (places, lanes);
    }
}

/// Keeps rows as the problem numbers them, and lanes as the caller numbered them.
pub(crate) fn batch_order(problem: &LayoutProblem, memory: &mut Memory) -> RowLayout {
    memory.walk.unread.clear();
    let (mut places, mut lanes) = (std::mem::take(&mut memory.places), std::mem::take(&mut memory.lanes));
    places.clear();
    problem.slabs().for_each(|(_, rows)| places.extend(0..rows.end.0 - rows.start.0));
    lanes.clear();
    problem.batches.iter().for_each(|batch| lanes.extend((0..batch.lanes).map(Lane)));
    RowLayout { places, lanes }
}

/// Orders lanes by their first reader, or keeps the batch order if that gathers no more rows.
pub(crate) fn propagated(problem: &LayoutProblem, memory: &mut Memory) -> RowLayout {
    let lanes = lanes_by_first_reader(problem, std::mem::take(&mut memory.lanes), &mut memory.walk);
    let places = place_in_lane_order(problem, &lanes, memory);
    let layout = follow_operands(problem, memory, places, lanes);
    let moved = count_gathered(problem, &mut memory.tables, |batch, rows| {
        let order = layout.lanes[batch.span()].iter();
        needs_table(order.map(|&lane| layout.places[rows[lane.index()]]))
    });
    let unmoved =
        count_gathered(problem, &mut memory.tables, |_, rows| needs_table(rows.iter().map(|row| row.0)));
    if moved < unmoved {
        return layout;
    }
    memory.recycle(layout);
    batch_order(problem, memory)
}

/// Operand rows that plans read through tables; layouts compare by rows, then by bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Gathered {
    rows: u64,
    bytes: u64,
}

/// Counts the operand rows that need tables, by the provisional rows that the lanes of each batch read. Asks once for equal
/// slots.
fn count_gathered(
    problem: &LayoutProblem,
    tables: &mut IndexVec<SlotId, bool>,
    needs_table: impl Fn(&Batch, &[ProvisionalRow]) -> bool,
) -> Gathered {
    tables.clear();
    let mut gathered = Gathered::default();
    for batch in &problem.batches {
        for slot in problem.batch_slots(batch) {
            let found = match tables.get(slot.same_as) {
                Some(&known) => known,
                None => {
                    slot.role == Role::Operand && needs_table(batch, problem.slot_rows(slot, batch.lanes))
                }
            };
            if found {
                gathered.rows += u64::from(batch.lanes);
                gathered.bytes += u64::from(batch.lanes) * u64::from(slot.bytes);
            }
            tables.push(found);
        }
    }
    gathered
}

/// Whether lanes that read these places need a table: the places do not ascend by a constant distance of at least 0.
pub(super) fn needs_table(mut places: impl Iterator<Item = u32>) -> bool {
    let (Some(first), Some(second)) = (places.next(), places.next()) else { return false };
    let Some(step) = second.checked_sub(first) else { return true };
    let mut last = second;
    // Places have 31 bits, so a descending pair wraps to a larger distance than any step.
    places.any(|place| place.wrapping_sub(std::mem::replace(&mut last, place)) != step)
}

/// The slot that the lanes of a batch without readers follow: the widest operand that repeats no row, the first of equals.
pub(crate) fn widest<'a>(problem: &'a LayoutProblem, batch: &Batch) -> Option<&'a Slot> {
    let plannable = problem.batch_slots(batch).iter().filter(|slot| slot.is_plannable());
    // `max_by_key` returns the last of equals, and `rev` makes that the first slot.
    plannable.rev().max_by_key(|slot| slot.bytes)
}

/// Places the rows that existed before first, then the results of batch after batch in lane order.
fn place_in_lane_order(
    problem: &LayoutProblem,
    lanes: &[Lane],
    memory: &mut Memory,
) -> IndexVec<ProvisionalRow, u32> {
    let (mut places, next) = (std::mem::take(&mut memory.places), &mut memory.cursors);
    places.resize(problem.rows as usize, 0);
    next.clear();
    for (before, rows) in problem.slabs() {
        places[rows.start..ProvisionalRow(rows.start.0 + before)]
            .iter_mut()
            .zip(0..)
            .for_each(|(own, place)| *own = place);
        next.push(before);
    }
    for batch in &problem.batches {
        let order = &lanes[batch.span()];
        for slot in problem.results(batch) {
            let cursor = &mut next[slot.slab.0 as usize];
            let own = problem.result_rows(slot, batch);
            let own = &mut places[own];
            (*cursor..).zip(order).for_each(|(place, &lane)| own[lane.index()] = place);
            *cursor += batch.lanes;
        }
    }
    places
}

/// Sorts the lanes of batches without readers by the places of their widest operand. Their results move along inside their block.
fn follow_operands(
    problem: &LayoutProblem,
    memory: &mut Memory,
    mut places: IndexVec<ProvisionalRow, u32>,
    mut lanes: Vec<Lane>,
) -> RowLayout {
    let Memory { walk, sorting, old, .. } = memory;
    for &id in &walk.unread {
        let batch = &problem.batches[id];
        let Some(widest) = widest(problem, batch) else { continue };
        let order = &mut lanes[batch.span()];
        let rows = problem.slot_rows(widest, batch.lanes);
        old.clear();
        old.extend_from_slice(order);
        sorting.sort(order, |lane| places[rows[lane.index()]]);
        if old == order {
            continue;
        }
        for slot in problem.results(batch) {
            let own = &mut places[problem.result_rows(slot, batch)];
            let block = &mut sorting.places;
            block.clear();
            block.extend(old.iter().map(|&lane| own[lane.index()]));
            order.iter().zip(&*block).for_each(|(&lane, &place)| own[lane.index()] = place);
        }
    }
    RowLayout { places, lanes }
}

/// Memory of a sort of lanes.
#[derive(Debug, Default)]
struct Sorting {
    /// The lane at each place between the lowest and the highest.
    block: Vec<Lane>,
    places: Vec<u32>,
    keyed: Vec<u64>,
}

impl Sorting {
    /// Sorts lanes by the places that they read. The places must differ.
    fn sort(&mut self, lanes: &mut [Lane], place: impl Fn(Lane) -> u32) {
        const NO_LANE: Lane = Lane(u32::MAX);
        let Self { block, keyed, .. } = self;
        let (low, high) = lanes.iter().fold((u32::MAX, 0), |(low, high), &lane| {
            let place = place(lane);
            (low.min(place), high.max(place))
        });
        let places_between = high.checked_sub(low).map_or(0, |last| last as usize + 1);
        if places_between <= 4 * lanes.len() {
            // A sort by distribution: each lane goes to its place, and the block is read in order.
            block.clear();
            block.resize(places_between, NO_LANE);
            lanes.iter().for_each(|&lane| block[(place(lane) - low) as usize] = lane);
            let read = block.iter().copied().filter(|&lane| lane != NO_LANE);
            lanes.iter_mut().zip(read).for_each(|(own, lane)| *own = lane);
            return;
        }
        // A key holds the place in its upper half and the lane in its lower half.
        keyed.clear();
        keyed.extend(lanes.iter().map(|&lane| (u64::from(place(lane)) << 32) | u64::from(lane.0)));
        keyed.sort_unstable();
        lanes.iter_mut().zip(&*keyed).for_each(|(own, &entry)| *own = Lane(entry as u32));
    }
}
