//! Row orders that cost little: batch order, and order propagation.
//!
//! Both place the results of a batch side by side, batch after batch, in the order of its lanes; only the order of the lanes
//! differs. Propagation walks from the last batch to the first: a batch runs its lanes in the order in which its results are
//! read first, so that this reader finds an ascending run. On sequences of unequal length this *is* sorting by length,
//! descending: the rows that a next step reads come first, the finished ones last, and every step reads a prefix of the one
//! before. Batches that nobody reads are turned around at the end: their lanes follow their widest operand.
//!
//! Two batches whose results lie side by side can serve one slot together (see [`Bridge`]): the rows that it reads of the first
//! go to its end, those that it reads of the second to its beginning, and its batch runs the lanes in that order. On trees this
//! is the operand of the second level, which reads leaves and nodes of the first.
//!
//! Cost: every slot entry is visited twice or thrice; only the batches that nobody reads are sorted.

use super::problem::{Batch, Slot, TOO_MANY};
use super::{Access, Layout, Problem, Role, SlabId};

/// Working memory of [`propagated_with`], which later calls use again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    readings: Vec<Reading>,
    head: Vec<u32>,
    taken: Vec<bool>,
    unread: Vec<u32>,
    bridges: Vec<Ends>,
    pure: Vec<bool>,
    block: Vec<u32>,
    keyed: Vec<u64>,
    /// Per slab the next place.
    cursors: Vec<u32>,
    /// The lanes of a batch before they were moved.
    before: Vec<u32>,
    /// The access of every slot if all stays in batch order.
    stay: Vec<Access>,
    /// Memory of layouts.
    access: Vec<Access>,
    places: Vec<u32>,
    lanes: Vec<u32>,
}

impl Memory {
    /// The batches that nobody reads in the layout made last, descending; none if that is the batch order.
    pub(crate) fn unread(&self) -> &[u32] {
        &self.unread
    }

    /// Sorts lanes by the places that they read, no two the same.
    pub(crate) fn sort_by_place(&mut self, lanes: &mut [u32], place: impl Fn(u32) -> u32) {
        sort_by_place(lanes, (&mut self.block, &mut self.keyed), place);
    }

    /// Forgets what the layout made last knew.
    pub(crate) fn forget(&mut self) {
        self.unread.clear();
    }

    /// Takes back the [parts](Layout::into_parts) of a layout that is not needed any more.
    pub(crate) fn recycle(&mut self, parts: (Vec<u32>, Vec<u32>, Vec<Access>)) {
        (self.places, self.lanes, self.access) = parts;
    }
}

/// Rows in the order of the batches, lanes as they were added.
pub fn batch_order(problem: &Problem) -> Layout {
    batch_order_with(problem, &mut Memory::default())
}

/// [`batch_order`] in memory that was used before.
pub(crate) fn batch_order_with(problem: &Problem, memory: &mut Memory) -> Layout {
    let mut lanes = std::mem::take(&mut memory.lanes);
    lanes.clear();
    lanes.reserve(problem.all_lanes() as usize);
    for batch in problem.all_batches() {
        lanes.extend(0..batch.lanes);
    }
    let places = place_in_lane_order(problem, &lanes, memory);
    Layout::measured(problem, places, lanes, std::mem::take(&mut memory.access))
}

/// Lanes in the order of their first reader; the batch order where that is no worse.
pub fn propagated(problem: &Problem) -> Layout {
    propagated_with(problem, &mut Memory::default())
}

/// [`propagated`] in memory that was used before.
pub(crate) fn propagated_with(problem: &Problem, memory: &mut Memory) -> Layout {
    let lanes = lanes_by_first_reader(problem, memory);
    let places = place_in_lane_order(problem, &lanes, memory);
    let (places, lanes) = follow_operands(problem, memory, places, lanes);
    let layout = Layout::measured(problem, places, lanes, std::mem::take(&mut memory.access));
    if !problem.is_in_order() {
        return batch_order(problem).better(layout);
    }
    // Batch order leaves the rows of such a problem where they are, so it can be measured unmade.
    memory.stay.clear();
    let stay = super::count(problem, &mut memory.stay, |_, slot, rows| {
        super::measure(super::telling(slot, rows).iter().copied())
    });
    if layout.counts.cost() < stay.cost() {
        return layout;
    }
    memory.recycle(layout.into_parts());
    memory.forget();
    batch_order_with(problem, memory)
}

/// The slot whose rows the lanes of an unread batch follow: its widest operand, the first of equals.
pub(crate) fn widest<'a>(problem: &'a Problem, batch: &Batch) -> Option<&'a Slot> {
    let plannable =
        problem.batch_slots(batch).iter().filter(|slot| slot.role == Role::Operand && !slot.repeats);
    // `max_by_key` keeps the last of equals; the reverse makes that the first slot.
    plannable.rev().max_by_key(|slot| slot.bytes)
}

/// Rows that nobody writes first, then the results of batch after batch in the order of its lanes.
fn place_in_lane_order(problem: &Problem, lanes: &[u32], memory: &mut Memory) -> Vec<u32> {
    let (mut places, next) = (std::mem::take(&mut memory.places), &mut memory.cursors);
    places.resize(problem.rows() as usize, 0);
    next.clear();
    next.resize(problem.slabs() as usize, 0);
    for row in problem.unwritten() {
        let cursor = &mut next[problem.slab_of_row(row).index()];
        places[row as usize] = *cursor;
        *cursor += 1;
    }
    for batch in problem.all_batches() {
        let order = super::lanes_of(lanes, batch);
        for slot in problem.results(batch) {
            let rows = problem.slot_rows(slot, batch.lanes);
            let cursor = &mut next[slot.slab.index()];
            match rows.first().filter(|_| problem.is_in_order()) {
                // The rows of the lanes follow each other.
                Some(&first) => {
                    let own = &mut places[first as usize..first as usize + rows.len()];
                    (*cursor..).zip(order).for_each(|(place, &lane)| own[lane as usize] = place);
                }
                None => (*cursor..)
                    .zip(order)
                    .for_each(|(place, &lane)| places[rows[lane as usize] as usize] = place),
            }
            *cursor += batch.lanes;
        }
    }
    places
}

/// One reading of a row, in the list of the batch that wrote it; or those of a whole slot, if it reads that batch alone.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The writing lane; or [`COLUMN`] and the reading batch, whose rows are the entries from this one on.
    what: u32,
    /// The reading that comes next in running order.
    next: u32,
}

/// Marks a [`Reading`] of a whole slot.
const COLUMN: u32 = TOO_MANY;

/// A slot that two batches with neighbouring results serve together.
#[derive(Clone, Copy, Debug)]
struct Bridge {
    /// The slot, and the batch that has it.
    slot: u32,
    batch: u32,
    /// The batches that it reads.
    from: [u32; 2],
}

/// The slots for which a batch keeps rows at its beginning and at its end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: Option<Bridge>,
    last: Option<Bridge>,
}

/// Whether the results that one batch has in a slab come right before those of another, where rows are numbered in batch order.
fn are_side_by_side(problem: &Problem, batches: [u32; 2], slab: SlabId) -> bool {
    let block = |batch: u32| {
        let batch = problem.all_batches().get(batch as usize)?;
        let mut slots = problem.batch_slots(batch).iter();
        let slot = slots.find(|slot| slot.role == Role::Result && slot.slab == slab)?;
        problem.slot_rows(slot, batch.lanes).first().map(|&first| (first, batch.lanes))
    };
    match batches.map(block) {
        [Some((low, lanes)), Some((high, _))] => low + lanes == high,
        _ => false,
    }
}

/// The widest slot of a batch that is a bridge between batches whose ends are free; notes what reads one batch alone.
fn find_bridge(problem: &Problem, id: u32, ends: &[Ends], pure: &mut [bool]) -> Option<Bridge> {
    let batch = &problem.all_batches()[id as usize];
    let mut best: Option<(u32, Bridge)> = None;
    for (slot, found) in (batch.first_slot..batch.end_slot).zip(problem.batch_slots(batch)) {
        if found.role == Role::Result || found.repeats || found.same_as.0 != slot {
            continue;
        }
        let from = found.from;
        let [Some(low), Some(high)] = from.map(|writer| ends.get(writer as usize)) else { continue };
        if from[0] == from[1] {
            pure[from[0] as usize] = true;
        } else if low.last.is_none()
            && high.first.is_none()
            && are_side_by_side(problem, from, found.slab)
            && best.is_none_or(|(bytes, _)| found.bytes > bytes)
        {
            best = Some((found.bytes, Bridge { slot, batch: id, from }));
        }
    }
    best.map(|(_, bridge)| bridge)
}

/// The lanes of every batch by first reader; `memory.unread` gets the batches whose results nobody reads in a plannable slot.
///
/// Readings are put at the head of their writer's list from the last batch to the first, last slot and last lane first, so a
/// list is in running order when its writer's turn comes, without a sort. A slot that reads one batch alone is put there whole, and
/// its rows are looked at when that batch has its turn.
fn lanes_by_first_reader(problem: &Problem, memory: &mut Memory) -> Vec<u32> {
    const END: u32 = u32::MAX;
    let mut lanes = std::mem::take(&mut memory.lanes);
    let Memory { readings, head, taken, unread, bridges: ends, pure, block, .. } = memory;
    // A reading is written before its list is walked, and every lane is given, so neither is cleared.
    readings.resize(problem.entries(), Reading { what: 0, next: 0 });
    lanes.resize(problem.all_lanes() as usize, 0);
    head.clear();
    head.resize(problem.batches() as usize, END);
    taken.clear();
    taken.resize(problem.all_lanes() as usize, false);
    unread.clear();
    ends.clear();
    ends.resize(problem.batches() as usize, Ends::default());
    pure.clear();
    pure.resize(problem.batches() as usize, false);
    let (readings, head) = (readings.as_mut_slice(), head.as_mut_slice());
    for (id, batch) in problem.all_batches().iter().enumerate().rev() {
        let span = batch.first_lane as usize..(batch.first_lane + batch.lanes) as usize;
        let (given, rest) = lanes.split_at_mut(span.end);
        let (order, taken) = (&mut given[span.start..], &mut taken[span.clone()]);
        let mut count = 0;
        let mut end = order.len();
        for bridge in [ends[id].first, ends[id].last].into_iter().flatten() {
            let reader = &problem.all_batches()[bridge.batch as usize];
            let own = &rest[reader.first_lane as usize - span.end..][..reader.lanes as usize];
            let rows = problem.slot_rows(problem.slot(bridge.slot as usize), reader.lanes);
            let mine = own.iter().map(|&lane| problem.writer(rows[lane as usize]));
            block.clear();
            // A slot repeats no row, but it may read several results of one lane.
            for writer in mine.filter(|writer| writer.batch == id as u32) {
                if !std::mem::replace(&mut taken[writer.lane as usize], true) {
                    block.push(writer.lane);
                }
            }
            if bridge.from[0] == id as u32 {
                end -= block.len();
                order[end..end + block.len()].copy_from_slice(block);
            } else {
                order[count..count + block.len()].copy_from_slice(block);
                count += block.len();
            }
        }
        let mut at = head[id];
        if at == END && count == 0 && end == order.len() {
            unread.push(id as u32);
        }
        while at != END && count < end {
            let Reading { what, next } = readings[at as usize];
            let mut give = |lane: u32| {
                if !std::mem::replace(&mut taken[lane as usize], true) {
                    order[count] = lane;
                    count += 1;
                }
            };
            if what < COLUMN {
                give(what);
            } else {
                let reader = &problem.all_batches()[(what - COLUMN) as usize];
                let own = &rest[reader.first_lane as usize - span.end..][..reader.lanes as usize];
                let rows = problem.entries_from(at, reader.lanes);
                own.iter().for_each(|&lane| give(problem.writer(rows[lane as usize]).lane));
            }
            at = next;
        }
        if count < end {
            let left = (0u32..).zip(taken.iter()).filter(|(_, taken)| !**taken);
            for (place, (lane, _)) in order[count..end].iter_mut().zip(left) {
                *place = lane;
            }
        }
        let bridge = find_bridge(problem, id as u32, ends, pure);
        let fixed = pure[id] || ends[id].first.is_some() || ends[id].last.is_some();
        if let Some(bridge) = bridge.filter(|_| !fixed) {
            let rows = problem.slot_rows(problem.slot(bridge.slot as usize), batch.lanes);
            let low = |lane: &u32| problem.writer(rows[*lane as usize]).batch == bridge.from[0];
            block.clear();
            block.extend(order.iter().filter(|lane| low(lane)));
            block.extend(order.iter().filter(|lane| !low(lane)));
            order.copy_from_slice(block);
            ends[bridge.from[0] as usize].last = Some(bridge);
            ends[bridge.from[1] as usize].first = Some(bridge);
        }
        for (index, slot) in (batch.first_slot..batch.end_slot).zip(problem.batch_slots(batch)).rev() {
            if slot.role == Role::Result || slot.repeats || slot.same_as.0 != index {
                continue;
            }
            let rows = problem.slot_rows(slot, batch.lanes);
            if slot.from[0] == slot.from[1]
                && let Some(head) = head.get_mut(slot.from[0] as usize)
            {
                let reading = Reading { what: COLUMN + id as u32, next: *head };
                readings[slot.start as usize] = reading;
                *head = slot.start;
                continue;
            }
            for (entry, &lane) in (slot.start..slot.start + batch.lanes).zip(order.iter()).rev() {
                let writer = problem.writer(rows[lane as usize]);
                if let Some(head) = head.get_mut(writer.batch as usize) {
                    readings[entry as usize] =
                        Reading { what: writer.lane, next: std::mem::replace(head, entry) };
                }
            }
        }
    }
    lanes
}

/// Sorts lanes by the places that they read, no two the same; the lists are memory.
fn sort_by_place(
    lanes: &mut [u32],
    (block, keyed): (&mut Vec<u32>, &mut Vec<u64>),
    place: impl Fn(u32) -> u32,
) {
    let (low, high) = lanes.iter().fold((u32::MAX, 0), |(low, high), &lane| {
        let place = place(lane);
        (low.min(place), high.max(place))
    });
    let places_between = high.checked_sub(low).map_or(0, |last| last as usize + 1);
    if places_between <= 4 * lanes.len() {
        // Lanes are put where they read and picked up in order.
        block.clear();
        block.resize(places_between, u32::MAX);
        lanes.iter().for_each(|&lane| block[(place(lane) - low) as usize] = lane);
        let read = block.iter().copied().filter(|&lane| lane != u32::MAX);
        lanes.iter_mut().zip(read).for_each(|(own, lane)| *own = lane);
        return;
    }
    // A key is a place, then a lane.
    keyed.clear();
    keyed.extend(lanes.iter().map(|&lane| (u64::from(place(lane)) << 32) | u64::from(lane)));
    keyed.sort_unstable();
    lanes.iter_mut().zip(&*keyed).for_each(|(own, &entry)| *own = entry as u32);
}

/// Lets the lanes of unread batches follow the places of their widest operand; their results move along inside their block.
fn follow_operands(
    problem: &Problem,
    memory: &mut Memory,
    mut places: Vec<u32>,
    mut lanes: Vec<u32>,
) -> (Vec<u32>, Vec<u32>) {
    let Memory { unread, block, keyed, before: old, .. } = memory;
    for &id in &*unread {
        let batch = &problem.all_batches()[id as usize];
        let Some(widest) = widest(problem, batch) else { continue };
        let order = &mut lanes[batch.first_lane as usize..(batch.first_lane + batch.lanes) as usize];
        let rows = problem.slot_rows(widest, batch.lanes);
        old.clear();
        old.extend_from_slice(order);
        sort_by_place(order, (block, keyed), |lane| places[rows[lane as usize] as usize]);
        if old == order {
            continue;
        }
        for slot in problem.results(batch) {
            let rows = problem.slot_rows(slot, batch.lanes);
            block.clear();
            block.extend(old.iter().map(|&lane| places[rows[lane as usize] as usize]));
            for (&lane, &place) in order.iter().zip(&*block) {
                places[rows[lane as usize] as usize] = place;
            }
        }
    }
    (places, lanes)
}
