//! The lane order of every batch by its first reader.
//!
//! The walk goes from the last batch to the first. When it reaches a batch, all readers of its results have their lane orders.
//! They left *readings* in a list of the batch, in execution order; the batch takes its lanes in the order of this list.
//!
//! Two batches with neighbouring results can serve one slot together, a [`Bridge`]. The first batch ends with the rows that the
//! slot reads of it, and the second begins with those that it reads of this one. The reader runs its lanes in that order. In trees, the operands of the second level are such slots: they read leaves and nodes of the first level.

use super::problem::{Batch, LayoutProblem, Role, Slot, TOO_MANY};
use crate::ids::{BatchId, Lane, SlotId};
use crate::index_vec::IndexVec;
use autobatch_ir::plan::SlabId;

/// Working memory of [`lanes_by_first_reader`].
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// All readings, each at the position of its entry in the row pool.
    readings: Vec<Reading>,
    /// The first reading of each batch, or [`END`].
    head: IndexVec<BatchId, u32>,
    /// Whether each lane has a position.
    taken: Vec<bool>,
    /// Batches without readers that the layout may order, descending.
    pub(super) unread: Vec<BatchId>,
    ends: IndexVec<BatchId, Ends>,
    /// Whether a later batch reads each batch by a slot that reads nothing else.
    read_alone: IndexVec<BatchId, bool>,
    block: Vec<Lane>,
}

/// One reading of a row, or of all rows of a slot that reads one batch only.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// The lane that wrote the row; or [`COLUMN`] plus the number of the reading batch, whose slot begins at this entry.
    what: u32,
    /// The next reading of the batch in execution order, or [`END`].
    next: u32,
}

/// Marks a [`Reading`] of a whole slot.
const COLUMN: u32 = TOO_MANY;
/// Ends a list of readings.
const END: u32 = u32::MAX;

/// A slot that two batches with neighbouring results serve together.
#[derive(Clone, Copy, Debug)]
struct Bridge {
    slot: SlotId,
    /// The batch that reads through the slot.
    batch: BatchId,
    /// The two batches that it reads.
    from: [BatchId; 2],
}

/// The bridges for which a batch places rows first and last.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: Option<Bridge>,
    last: Option<Bridge>,
}

impl Ends {
    fn is_empty(self) -> bool {
        self.first.is_none() && self.last.is_none()
    }
}

/// The lanes of all batches after the current one, in execution order.
#[derive(Clone, Copy)]
struct Later<'a> {
    problem: &'a LayoutProblem,
    lanes: &'a [Lane],
    /// The position of the first of these lanes among the lanes of all batches.
    start: usize,
}

impl<'a> Later<'a> {
    /// A later batch and its lanes.
    #[inline]
    fn batch(self, id: BatchId) -> (&'a Batch, &'a [Lane]) {
        let batch = &self.problem.batches[id];
        let span = batch.span();
        (batch, &self.lanes[span.start - self.start..span.end - self.start])
    }
}

/// The lane order of one batch under construction. It fills from the front, and for a bridge from the back.
struct Filling<'a> {
    order: &'a mut [Lane],
    /// Whether each lane has a position.
    taken: &'a mut [bool],
    /// Number of filled positions at the front.
    front: usize,
    /// First filled position at the back.
    back: usize,
}

impl<'a> Filling<'a> {
    fn new(order: &'a mut [Lane], taken: &'a mut [bool]) -> Self {
        let back = order.len();
        Self { order, taken, front: 0, back }
    }

    /// Whether the lane had no position yet; it counts as placed from now on.
    #[inline]
    fn claim(&mut self, lane: Lane) -> bool {
        !std::mem::replace(&mut self.taken[lane.index()], true)
    }

    /// Puts a lane at the front, if it has no position yet.
    #[inline]
    fn push(&mut self, lane: Lane) {
        if self.claim(lane) {
            self.order[self.front] = lane;
            self.front += 1;
        }
    }

    fn push_claimed(&mut self, lanes: &[Lane]) {
        self.order[self.front..self.front + lanes.len()].copy_from_slice(lanes);
        self.front += lanes.len();
    }

    fn push_claimed_back(&mut self, lanes: &[Lane]) {
        self.back -= lanes.len();
        self.order[self.back..self.back + lanes.len()].copy_from_slice(lanes);
    }

    fn is_full(&self) -> bool {
        self.front == self.back
    }

    fn is_empty(&self) -> bool {
        self.front == 0 && self.back == self.order.len()
    }

    /// Fills the gap with the remaining lanes, ascending.
    fn push_rest(&mut self) {
        if self.is_full() {
            return;
        }
        let left = (0..).map(Lane).zip(self.taken.iter()).filter(|(_, taken)| !**taken);
        for (place, (lane, _)) in self.order[self.front..self.back].iter_mut().zip(left) {
            *place = lane;
        }
    }
}

/// Orders the lanes of every batch by first reader, in the memory `lanes`.
pub(super) fn lanes_by_first_reader(
    problem: &LayoutProblem,
    mut lanes: Vec<Lane>,
    walk: &mut Walk,
) -> Vec<Lane> {
    // Every lane is written.
    lanes.resize(problem.lanes as usize, Lane(0));
    walk.restart(problem);
    for id in problem.batches.ids().rev() {
        let batch = &problem.batches[id];
        let (earlier, later) = lanes.split_at_mut(batch.span().end);
        let later = Later { problem, lanes: later, start: batch.span().end };
        let order = &mut earlier[batch.span().start..];
        walk.order_lanes(id, order, later);
        walk.build_bridge(problem, id, order);
        walk.leave_readings(problem, id, order);
    }
    lanes
}

impl Walk {
    fn restart(&mut self, problem: &LayoutProblem) {
        let batches = problem.batches.len();
        // A reading is written before its list is walked.
        self.readings.resize(problem.pool.len(), Reading::default());
        self.head.refill(batches, END);
        self.taken.clear();
        self.taken.resize(problem.lanes as usize, false);
        self.unread.clear();
        self.ends.refill(batches, Ends::default());
        self.read_alone.refill(batches, false);
    }

    /// Orders the lanes of a batch: the rows of its bridges at both ends, and the others by the list of readings.
    fn order_lanes(&mut self, id: BatchId, order: &mut [Lane], later: Later<'_>) {
        let Self { readings, head, taken, unread, ends, block, .. } = self;
        let problem = later.problem;
        let mut filling = Filling::new(order, &mut taken[problem.batches[id].span()]);
        let Ends { first, last } = ends[id];
        for bridge in [first, last].into_iter().flatten() {
            let (reader, own) = later.batch(bridge.batch);
            let rows = problem.slot_rows(&problem.slots[bridge.slot], reader.lanes);
            let writers = own.iter().map(|&lane| problem.writer(rows[lane.index()]));
            block.clear();
            // A slot repeats no row, but it may read several results of one lane.
            block.extend(
                writers
                    .filter(|writer| writer.batch == id && filling.claim(writer.lane))
                    .map(|writer| writer.lane),
            );
            match bridge.from[0] == id {
                true => filling.push_claimed_back(block),
                false => filling.push_claimed(block),
            }
        }
        let mut at = head[id];
        if at == END && filling.is_empty() {
            unread.push(id);
        }
        while at != END && !filling.is_full() {
            let Reading { what, next } = readings[at as usize];
            if what < COLUMN {
                filling.push(Lane(what));
            } else {
                let (reader, own) = later.batch(BatchId(what - COLUMN));
                let rows = problem.entries_from(at, reader.lanes);
                own.iter().for_each(|&lane| filling.push(problem.writer(rows[lane.index()]).lane));
            }
            at = next;
        }
        filling.push_rest();
    }

    /// Makes the widest suitable slot of a batch a bridge, unless the order of the batch is fixed already.
    fn build_bridge(&mut self, problem: &LayoutProblem, id: BatchId, order: &mut [Lane]) {
        let Self { ends, read_alone, block, .. } = self;
        let bridge = find_bridge(problem, id, ends, read_alone);
        let is_fixed = read_alone[id] || !ends[id].is_empty();
        let Some(bridge) = bridge.filter(|_| !is_fixed) else { return };
        let rows = problem.slot_rows(&problem.slots[bridge.slot], order.len() as u32);
        let reads_first = |lane: &Lane| problem.writer(rows[lane.index()]).batch == bridge.from[0];
        block.clear();
        block.extend(order.iter().filter(|lane| reads_first(lane)));
        block.extend(order.iter().filter(|lane| !reads_first(lane)));
        order.copy_from_slice(block);
        ends[bridge.from[0]].last = Some(bridge);
        ends[bridge.from[1]].first = Some(bridge);
    }

    /// Leaves the readings of a batch, whose lanes run in this order, with the batches that it reads.
    ///
    /// Readings go to the front of the lists from the last slot and lane to the first, so a finished list is in execution order
    /// without a sort. A slot that reads one batch only leaves one reading; its rows are looked up later.
    fn leave_readings(&mut self, problem: &LayoutProblem, id: BatchId, order: &[Lane]) {
        let (readings, head) = (self.readings.as_mut_slice(), &mut self.head);
        let batch = &problem.batches[id];
        for (_, slot) in problem.plannable(batch).rev() {
            if slot.reads_one_batch()
                && let Some(head) = head.get_mut(slot.from[0])
            {
                readings[slot.start as usize] = Reading { what: COLUMN + id.0, next: *head };
                *head = slot.start;
                continue;
            }
            let rows = problem.slot_rows(slot, batch.lanes);
            for (entry, &lane) in (slot.start..slot.start + batch.lanes).zip(order).rev() {
                let writer = problem.writer(rows[lane.index()]);
                if let Some(head) = head.get_mut(writer.batch) {
                    let next = std::mem::replace(head, entry);
                    readings[entry as usize] = Reading { what: writer.lane.0, next };
                }
            }
        }
    }
}

/// The widest slot of a batch that can be a bridge between two batches. Also marks the batches that a slot reads alone.
fn find_bridge(
    problem: &LayoutProblem,
    id: BatchId,
    ends: &IndexVec<BatchId, Ends>,
    read_alone: &mut IndexVec<BatchId, bool>,
) -> Option<Bridge> {
    let mut best: Option<(u32, Bridge)> = None;
    for (number, slot) in problem.plannable(&problem.batches[id]) {
        let from = slot.from;
        let [Some(low), Some(high)] = from.map(|writer| ends.get(writer)) else { continue };
        if slot.reads_one_batch() {
            read_alone[from[0]] = true;
        } else if low.last.is_none()
            && high.first.is_none()
            && are_side_by_side(problem, from, slot.slab)
            && best.is_none_or(|(bytes, _)| slot.bytes > bytes)
        {
            best = Some((slot.bytes, Bridge { slot: number, batch: id, from }));
        }
    }
    best.map(|(_, bridge)| bridge)
}

/// Whether the results of one batch in a slab come right before those of another.
fn are_side_by_side(problem: &LayoutProblem, batches: [BatchId; 2], slab: SlabId) -> bool {
    let block = |batch: BatchId| {
        let batch = problem.batches.get(batch)?;
        let mut slots = problem.batch_slots(batch).iter();
        let slot: &Slot = slots.find(|slot| slot.role == Role::Result && slot.slab == slab)?;
        problem.slot_rows(slot, batch.lanes).first().map(|first| (first.0, batch.lanes))
    };
    match batches.map(block) {
        [Some((low, lanes)), Some((high, _))] => low + lanes == high,
        _ => false,
    }
}
