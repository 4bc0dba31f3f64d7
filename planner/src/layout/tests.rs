//! What the planners promise, on problems made by hand.

use super::random::{SplitMix64, rounds};
use super::*;

pub(super) fn result(slab: SlabId, rows: &[u32]) -> SlotSpec<'_> {
    SlotSpec { role: Role::Result, slab, bytes: 4, rows }
}

pub(super) fn operand(slab: SlabId, rows: &[u32]) -> SlotSpec<'_> {
    SlotSpec { role: Role::Operand, slab, bytes: 4, rows }
}

#[test]
fn two_trees_are_laid_out_so_that_every_operand_is_a_range() {
    // The trees (17 4) and ((9 3) 17): leaves 0..5, nodes 5 and 6 of the first level, 7 above.
    let mut problem = Problem::new();
    let slab = problem.add_slab(8).unwrap();
    problem.add_batch(5, &[result(slab, &[0, 1, 2, 3, 4])]).unwrap();
    problem.add_batch(2, &[result(slab, &[5, 6]), operand(slab, &[0, 2]), operand(slab, &[1, 3])]).unwrap();
    problem.add_batch(1, &[result(slab, &[7]), operand(slab, &[6]), operand(slab, &[4])]).unwrap();
    let loss = problem.add_batch(2, &[operand(slab, &[5, 7])]).unwrap();
    assert_eq!(batch_order(&problem).counts().gathered_operands(), 0, "all are strided");
    let layout = propagated(&problem);
    let place = |row| layout.place(&problem, slab, row).unwrap();
    assert_eq!(check(&problem, &layout), Ok(()));
    assert_eq!(layout.lanes(&problem, loss), [0, 1]);
    assert_eq!(place(7), 7);
}

/// Sequences of unequal length: step `t` writes a row for each one longer than `t` and reads the row of step `t - 1`.
fn steps(lengths: &[u32]) -> (Problem, SlabId) {
    let mut problem = Problem::new();
    let slab = problem.add_slab(lengths.iter().sum()).unwrap();
    let (mut before, mut next) = (vec![0; lengths.len()], 0);
    for step in 0..lengths.iter().copied().max().unwrap_or(0) {
        let running: Vec<usize> = (0..lengths.len()).filter(|&i| lengths[i] > step).collect();
        let read: Vec<u32> = running.iter().map(|&i| before[i]).collect();
        let rows: Vec<u32> = (next..next + running.len() as u32).collect();
        next += running.len() as u32;
        let specs = [result(slab, &rows), operand(slab, &read)];
        problem.add_batch(rows.len() as u32, if step == 0 { &specs[..1] } else { &specs }).unwrap();
        for (&i, &row) in running.iter().zip(&rows) {
            before[i] = row;
        }
    }
    (problem, slab)
}

#[test]
fn every_step_over_unequal_sequences_reads_a_prefix_of_the_step_before() {
    for seed in 0..rounds(50) {
        let mut random = SplitMix64(seed ^ 0x4242);
        let lengths: Vec<u32> = (0..32).map(|_| 1 + random.below(40)).collect();
        let (problem, _) = steps(&lengths);
        let layout = propagated(&problem);
        assert_eq!(check(&problem, &layout), Ok(()), "seed {seed}");
        assert_eq!(layout.counts().gathered_operands() + layout.counts().strided, 0, "seed {seed}");
        let mut begin = 0;
        for batch in (1..problem.batches()).map(BatchId) {
            let read = problem.slots(batch).nth(1).unwrap();
            assert_eq!(layout.access(read), Access::Range { start: begin }, "seed {seed}: {batch}");
            begin += layout.lanes(&problem, BatchId(batch.0 - 1)).len() as u32;
        }
        // The first step runs the sequences by length, descending.
        let first: Vec<u32> =
            layout.lanes(&problem, BatchId(0)).iter().map(|&lane| lengths[lane as usize]).collect();
        assert!(first.is_sorted_by(|a, b| a >= b), "seed {seed}: {first:?}");
    }
}

#[test]
fn the_lanes_of_a_batch_that_nobody_reads_follow_its_widest_operand() {
    let mut problem = Problem::new();
    let (states, losses) = (problem.add_slab(4).unwrap(), problem.add_slab(4).unwrap());
    problem.add_batch(4, &[result(states, &[0, 1, 2, 3])]).unwrap();
    // This reader decides the order of the states ..
    problem.add_batch(3, &[operand(states, &[3, 0, 2]), operand(states, &[0, 0, 0])]).unwrap();
    // .. and this one, which comes later, follows.
    let narrow = SlotSpec { bytes: 1, ..operand(states, &[0, 1, 1, 2]) };
    let last = problem
        .add_batch(4, &[result(losses, &[0, 1, 2, 3]), narrow, operand(states, &[0, 1, 2, 3])])
        .unwrap();
    let layout = propagated(&problem);
    assert_eq!(layout.lanes(&problem, last), [3, 0, 2, 1]);
    assert_eq!(layout.place(&problem, losses, 3), Some(0));
    let slots: Vec<SlotId> = problem.slots(last).collect();
    assert_eq!(layout.access(slots[2]), Access::Range { start: 0 });
    assert_eq!(layout.access(slots[1]), Access::Gathered);
    assert_eq!(layout.counts().shared, 3);
    assert_eq!(check(&problem, &layout), Ok(()));
}

#[test]
fn accesses_are_told_apart() {
    let mut problem = Problem::new();
    let slab = problem.add_slab(8).unwrap();
    let reads: [&[u32]; 5] = [&[2, 3, 4], &[1, 3, 5], &[4, 3, 2], &[6, 6, 6], &[0, 1, 3]];
    problem.add_batch(3, &reads.map(|rows| operand(slab, rows))).unwrap();
    let layout = batch_order(&problem);
    let found: Vec<Access> = problem.slots(BatchId(0)).map(|s| layout.access(s)).collect();
    let expected = [
        Access::Range { start: 2 },
        Access::Strided { start: 1, step: 2 },
        Access::Strided { start: 4, step: -1 },
        Access::Shared { place: 6 },
        Access::Gathered,
    ];
    assert_eq!(found, expected);
    let counts = layout.counts();
    assert_eq!(
        (counts.range, counts.strided, counts.descending, counts.shared, counts.gathered),
        (3, 3, 3, 3, 3)
    );
    assert_eq!((counts.direct_operands(), counts.gathered_operands(), counts.gathered_bytes), (9, 6, 24));
    assert_eq!(layout.gathered_runs(&problem), 2);
}

#[test]
fn a_wrong_batch_is_refused_with_what_was_expected_and_changes_nothing() {
    let mut problem = Problem::new();
    let slab = problem.add_slab(4).unwrap();
    problem.add_batch(2, &[result(slab, &[0, 1])]).unwrap();
    let mut refuse = |specs: &[SlotSpec<'_>], message: &str| {
        let before = problem.clone();
        let error = problem.add_batch(2, specs).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(problem.slot_count(), before.slot_count());
        assert_eq!(batch_order(&problem), batch_order(&before));
    };
    refuse(&[operand(SlabId(7), &[0, 1])], "found slab s7, expected one of 1");
    refuse(&[operand(slab, &[0])], "slot 0 has 1 rows, expected one for each of 2 lanes");
    refuse(&[result(slab, &[2, 3]), operand(slab, &[0, 4])], "found row 4 of s0, expected a row below 4");
    refuse(&[result(slab, &[2, 1])], "row 1 of s0 is written twice");
    refuse(&[result(slab, &[3, 3])], "row 3 of s0 is written twice");
    refuse(&[result(slab, &[2, 3]), result(slab, &[3, 2])], "row 3 of s0 is written twice");
    // Everything the refused batches claimed is free again; equal result slots are fields of one record.
    problem.add_batch(2, &[result(slab, &[2, 3]), result(slab, &[2, 3])]).unwrap();
    assert_eq!(check(&problem, &propagated(&problem)), Ok(()));
    assert_eq!(problem.add_slab(u32::MAX), Err(LayoutError::TooLarge));
}

#[test]
fn an_empty_problem_has_an_empty_layout() {
    let mut problem = Problem::new();
    for _ in 0..2 {
        let layout = propagated(&problem);
        assert_eq!(check(&problem, &layout), Ok(()));
        assert_eq!(layout.place(&problem, SlabId(0), 0), None);
        assert!(layout.lanes(&problem, BatchId(3)).is_empty());
        problem.add_slab(0).unwrap();
    }
}

#[test]
fn an_operand_that_reads_one_batch_alone_is_followed_as_a_whole() {
    let (mut problem, slab) = (Problem::new(), SlabId(0));
    problem.restart(&[9], &[0]).unwrap();
    problem.add_known(3, &[(slab, 4)], &[]);
    let second = problem.add_known(3, &[(slab, 4)], &[(slab, 4)]) as usize;
    problem.pool()[second..second + 3].copy_from_slice(&[0, 2, 1]);
    let third = problem.add_known(3, &[(slab, 4)], &[(slab, 4), (slab, 4)]) as usize;
    problem.pool()[third..third + 6].copy_from_slice(&[4, 5, 3, 0, 3, 3]);
    problem.settle();
    assert_eq!([2, 4, 5].map(|slot| problem.slot(slot).from), [[0, 0], [1, 1], [0, 1]]);
    let layout = propagated(&problem);
    // The third batch reads the second first, which reads the first in the order that the third gave it.
    assert_eq!(layout.lanes(&problem, BatchId(1)), [1, 2, 0]);
    assert_eq!(layout.lanes(&problem, BatchId(0)), [2, 1, 0]);
    assert_eq!(check(&problem, &layout), Ok(()));
}
