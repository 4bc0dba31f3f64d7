//! Row orders that cost little: batch order, and order propagation.
//!
//! Both place the results of a batch side by side, batch after batch, in the order of its lanes; only the order of the lanes
//! differs. Propagation walks from the last batch to the first: a batch runs its lanes in the order in which its results are
//! read first, so that this reader finds an ascending run. On sequences of unequal length this *is* sorting by length,
//! descending: the rows that a next step reads come first, the finished ones last, and every step reads a prefix of the one
//! before. Batches that nobody reads are turned around at the end: their lanes follow their widest operand.
//!
//! Cost: every slot entry is visited twice or thrice, every batch sorted once (already sorted ones are only looked at).

use super::{Layout, Problem, Role};

/// Rows in the order of the batches, lanes as they were added.
pub fn batch_order(problem: &Problem) -> Layout {
    let mut lanes = Vec::with_capacity(problem.all_lanes() as usize);
    for batch in problem.all_batches() {
        lanes.extend(0..batch.lanes);
    }
    let places = place_in_lane_order(problem, &lanes);
    Layout::measured(problem, places, lanes)
}

/// Lanes in the order of their first reader; the batch order where that is no worse.
pub fn propagated(problem: &Problem) -> Layout {
    let (lanes, unread) = lanes_by_first_reader(problem);
    let places = place_in_lane_order(problem, &lanes);
    let (places, lanes) = follow_operands(problem, unread, places, lanes);
    batch_order(problem).better(Layout::measured(problem, places, lanes))
}

/// Rows that nobody writes first, then the results of batch after batch in the order of its lanes.
fn place_in_lane_order(problem: &Problem, lanes: &[u32]) -> Vec<u32> {
    let mut places = vec![0; problem.rows() as usize];
    let mut next: Vec<u32> = (0..problem.slabs()).map(|slab| problem.base(super::SlabId(slab))).collect();
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
            for &lane in order {
                places[rows[lane as usize] as usize] = *cursor;
                *cursor += 1;
            }
        }
    }
    places
}

/// The lanes of every batch by first reader, and the batches whose results nobody reads in a plannable slot.
fn lanes_by_first_reader(problem: &Problem) -> (Vec<u32>, Vec<u32>) {
    const UNREAD: u32 = u32::MAX;
    // The pool is laid out in the order of reading, so the pool index of the reading entry is the key. Earlier batches are
    // visited later and overwrite: the first reader wins.
    let mut first_read = vec![UNREAD; problem.rows() as usize];
    let mut lanes = vec![0; problem.all_lanes() as usize];
    let mut unread = Vec::new();
    let mut keyed: Vec<u64> = Vec::new();
    for (id, batch) in problem.all_batches().iter().enumerate().rev() {
        let order = &mut lanes[batch.first_lane as usize..(batch.first_lane + batch.lanes) as usize];
        keyed.clear();
        keyed.extend((0..u64::from(batch.lanes)).map(|lane| (u64::from(UNREAD) << 32) | lane));
        for slot in problem.results(batch) {
            for (entry, &row) in keyed.iter_mut().zip(problem.slot_rows(slot, batch.lanes)) {
                let lane = *entry & u64::from(u32::MAX);
                *entry = (*entry).min((u64::from(first_read[row as usize]) << 32) | lane);
            }
        }
        keyed.sort_unstable();
        if keyed.first().is_none_or(|&entry| entry >> 32 == u64::from(UNREAD)) {
            unread.push(id as u32);
        }
        for (place, &entry) in order.iter_mut().zip(&keyed) {
            *place = entry as u32;
        }
        for (index, slot) in (batch.first_slot..batch.end_slot).zip(problem.batch_slots(batch)).rev() {
            if slot.role == Role::Operand && !slot.repeats && slot.same_as.0 == index {
                let rows = problem.slot_rows(slot, batch.lanes);
                for (key, &lane) in (slot.start..).zip(order.iter()) {
                    first_read[rows[lane as usize] as usize] = key;
                }
            }
        }
    }
    (lanes, unread)
}

/// Lets the lanes of unread batches follow the places of their widest operand; their results move along inside their block.
fn follow_operands(problem: &Problem, unread: Vec<u32>, mut places: Vec<u32>, mut lanes: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut block: Vec<u32> = Vec::new();
    for id in unread {
        let batch = &problem.all_batches()[id as usize];
        let slots = problem.batch_slots(batch);
        let plannable = slots.iter().filter(|s| s.role == Role::Operand && !s.repeats);
        // `max_by_key` keeps the last of equals; the reverse makes that the first slot.
        let Some(widest) = plannable.rev().max_by_key(|s| s.bytes) else { continue };
        let order = &mut lanes[batch.first_lane as usize..(batch.first_lane + batch.lanes) as usize];
        let rows = problem.slot_rows(widest, batch.lanes);
        let old: Vec<u32> = order.to_vec();
        order.sort_unstable_by_key(|&lane| places[rows[lane as usize] as usize]);
        if *old == *order {
            continue;
        }
        for slot in problem.results(batch) {
            let rows = problem.slot_rows(slot, batch.lanes);
            block.clear();
            block.extend(old.iter().map(|&lane| places[rows[lane as usize] as usize]));
            for (&lane, &place) in order.iter().zip(&block) {
                places[rows[lane as usize] as usize] = place;
            }
        }
    }
    (places, lanes)
}
