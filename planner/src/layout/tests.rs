//! What the planners promise, on hand-made and on random problems.

use super::random::{SplitMix64, rounds};
use super::*;

fn result(slab: SlabId, rows: &[u32]) -> SlotSpec<'_> {
    SlotSpec { role: Role::Result, slab, bytes: 4, rows }
}

fn operand(slab: SlabId, rows: &[u32]) -> SlotSpec<'_> {
    SlotSpec { role: Role::Operand, slab, bytes: 4, rows }
}

/// Batches that write fresh rows and read any earlier ones, with repeats, shared rows, other slabs and rows from outside.
fn random_problem(random: &mut SplitMix64) -> Problem {
    let mut problem = Problem::new();
    let slabs = 1 + random.below(3);
    let sizes: Vec<u32> = (0..slabs).map(|_| 20 + random.below(60)).collect();
    let mut written: Vec<u32> = sizes.iter().map(|_| random.below(4)).collect();
    for &size in &sizes {
        problem.add_slab(size).unwrap();
    }
    for _ in 0..3 + random.below(12) {
        let lanes = random.below(9);
        let mut columns: Vec<(Role, u32, Vec<u32>)> = Vec::new();
        for _ in 0..random.below(3) {
            let slab = random.below(slabs);
            let begin = written[slab as usize];
            if begin + lanes <= sizes[slab as usize] {
                written[slab as usize] += lanes;
                columns.push((
                    Role::Result,
                    slab,
                    random.set(lanes, lanes).iter().map(|r| begin + r).collect(),
                ));
            }
        }
        for _ in 0..random.below(4) {
            let slab = random.below(slabs);
            let known = written[slab as usize].max(1);
            let rows = match random.below(4) {
                0 => vec![random.below(known); lanes as usize],
                1 => (0..lanes).map(|_| random.below(known)).collect(),
                _ if lanes <= known => random.set(known, lanes),
                _ => continue,
            };
            columns.push((Role::Operand, slab, rows));
        }
        if random.below(3) == 0 {
            columns.extend(columns.last().cloned());
        }
        let specs: Vec<SlotSpec<'_>> = columns
            .iter()
            .map(|(role, slab, rows)| SlotSpec { role: *role, slab: SlabId(*slab), bytes: 4, rows })
            .collect();
        problem.add_batch(lanes, &specs).unwrap();
    }
    problem
}

#[test]
fn every_planner_gives_a_valid_layout_that_is_no_worse_than_batch_order() {
    for seed in 0..rounds(300) {
        let problem = random_problem(&mut SplitMix64(seed));
        let plain = batch_order(&problem);
        let budget = Budget { nodes_per_entry: 500, nodes: if seed % 3 == 0 { seed } else { 1 << 20 } };
        for layout in [&plain, &propagated(&problem), &planned(&problem, budget).layout] {
            assert_eq!(check(&problem, layout), Ok(()), "seed {seed}");
            assert!(layout.counts().cost() <= plain.counts().cost(), "seed {seed}");
            let total = layout.counts().direct_operands() + layout.counts().tabled_operands();
            assert_eq!(
                total,
                plain.counts().direct_operands() + plain.counts().tabled_operands(),
                "seed {seed}"
            );
        }
        assert_eq!(plain.counts().result_tabled, 0, "seed {seed}: batch order writes ranges");
    }
}

#[test]
fn planning_twice_gives_the_same_layout() {
    for seed in 0..rounds(50) {
        let problem = random_problem(&mut SplitMix64(seed ^ 0x1234));
        assert_eq!(propagated(&problem), propagated(&problem.clone()), "seed {seed}");
        let twice = [planned(&problem, Budget::default()), planned(&problem.clone(), Budget::default())];
        assert_eq!(twice[0].layout, twice[1].layout, "seed {seed}");
        assert_eq!(twice[0].work, twice[1].work, "seed {seed}");
    }
}

/// Batches whose slots are all ranges of one hidden memory order, with rows renamed and lanes shuffled. With `aligned`
/// ranges all batches have four lanes and ranges never overlap, which leaves the order inside a batch open.
fn problem_with_a_hidden_layout(random: &mut SplitMix64, aligned: bool) -> Problem {
    let rows = 8 + 4 * random.below(10);
    let hidden = random.set(rows, rows);
    let mut problem = Problem::new();
    let slab = problem.add_slab(rows).unwrap();
    let mut begin = 0;
    while begin < rows {
        let lanes = if aligned { 4 } else { (1 + random.below(8)).min(rows - begin) };
        let shuffle = random.set(lanes, lanes);
        let mut starts = vec![begin];
        for _ in 0..1 + random.below(3) {
            let start = random.below(rows - lanes + 1);
            starts.push(if aligned { start / 4 * 4 } else { start });
        }
        let range = |start: &u32| shuffle.iter().map(|i| hidden[(start + i) as usize]).collect();
        let columns: Vec<Vec<u32>> = starts.iter().map(range).collect();
        let mut specs = vec![result(slab, &columns[0])];
        specs.extend(columns[1..].iter().map(|rows| operand(slab, rows)));
        problem.add_batch(lanes, &specs).unwrap();
        begin += lanes;
    }
    problem
}

#[test]
fn a_layout_without_tables_is_found_whenever_there_is_one() {
    for seed in 0..rounds(300) {
        let problem = problem_with_a_hidden_layout(&mut SplitMix64(seed ^ 0x9999), seed % 2 == 0);
        let budget = Budget { nodes_per_entry: u32::MAX, nodes: 1 << 30 };
        let outcome = planned(&problem, budget);
        let counts = outcome.layout.counts();
        let tabled = counts.tabled + counts.descending + counts.result_tabled;
        assert_eq!(tabled, 0, "seed {seed}: {outcome:?}");
        assert_eq!((outcome.misaligned, outcome.over_budget), (0, false), "seed {seed}");
        assert_eq!(check(&problem, &outcome.layout), Ok(()), "seed {seed}");
    }
}

#[test]
fn slots_that_would_need_two_lane_orders_are_tabled_and_the_others_kept() {
    // The last batch reads both earlier ones crosswise: its operands agree in no order of four free lanes.
    let mut problem = Problem::new();
    let slab = problem.add_slab(8).unwrap();
    problem.add_batch(4, &[result(slab, &[0, 1, 2, 3])]).unwrap();
    let same = [result(slab, &[4, 5, 6, 7]), operand(slab, &[0, 1, 2, 3])];
    problem.add_batch(4, &same).unwrap();
    let crosswise = [operand(slab, &[0, 1, 2, 3]), operand(slab, &[5, 6, 7, 4])];
    problem.add_batch(4, &crosswise).unwrap();
    let outcome = planned(&problem, Budget::default());
    assert_eq!((outcome.kept, outcome.misaligned), (5, 1));
    assert_eq!(outcome.layout.counts().tabled_operands(), 4);
    assert_eq!(check(&problem, &outcome.layout), Ok(()));
}

#[test]
fn a_refused_slot_does_not_constrain_later_ones() {
    let mut problem = Problem::new();
    let slab = problem.add_slab(5).unwrap();
    let wide = SlotSpec { bytes: 8, ..operand(slab, &[4, 0, 1]) };
    // Adjacent with the wide one, but in no common lane order; its adjacency alone would part rows 1 and 2.
    let batch = problem.add_batch(3, &[wide, operand(slab, &[4, 2, 0])]).unwrap();
    let narrow = SlotSpec { bytes: 1, ..operand(slab, &[1, 2]) };
    let other = problem.add_batch(2, &[narrow]).unwrap();
    let layout = planned(&problem, Budget::default()).layout;
    let access = |batch| problem.slots(batch).map(|s| layout.access(s)).collect::<Vec<_>>();
    assert!(matches!(access(batch)[..], [Access::Range { .. }, Access::Tabled]));
    assert!(matches!(access(other)[..], [Access::Range { .. }]));
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
    assert_eq!(batch_order(&problem).counts().tabled_operands(), 0, "all are strided");
    let layout = propagated(&problem);
    let place = |row| layout.place(&problem, slab, row).unwrap();
    assert_eq!(check(&problem, &layout), Ok(()));
    assert_eq!(layout.lanes(&problem, loss), [0, 1]);
    assert_eq!(place(7), 7);
    let outcome = planned(&problem, Budget::default());
    assert_eq!(outcome.layout.counts().tabled_operands(), 0);
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
        assert_eq!(layout.counts().tabled_operands() + layout.counts().strided, 0, "seed {seed}");
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
    assert_eq!(layout.access(slots[1]), Access::Tabled);
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
        Access::Tabled,
    ];
    assert_eq!(found, expected);
    let counts = layout.counts();
    assert_eq!(
        (counts.range, counts.strided, counts.descending, counts.shared, counts.tabled),
        (3, 3, 3, 3, 3)
    );
    assert_eq!((counts.direct_operands(), counts.tabled_operands(), counts.tabled_bytes), (9, 6, 24));
    assert_eq!(layout.tabled_runs(&problem), 2);
}

#[test]
fn a_spent_budget_leaves_the_rest_to_propagation() {
    let (problem, _) = steps(&[5, 9, 2, 7, 7, 3, 8]);
    let outcome = planned(&problem, Budget { nodes_per_entry: 0, nodes: 0 });
    assert_eq!(outcome.layout, propagated(&problem));
    let outcome = planned(&problem, Budget { nodes_per_entry: 1, nodes: 10 });
    assert!(outcome.over_budget && outcome.tried < outcome.candidates);
    assert_eq!(outcome.layout.counts().tabled_operands(), 0);
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
        let outcome = planned(&problem, Budget::default());
        assert_eq!(check(&problem, &outcome.layout), Ok(()));
        assert_eq!(outcome.layout.place(&problem, SlabId(0), 0), None);
        assert_eq!(outcome.layout.lanes(&problem, BatchId(3)), [0u32; 0]);
        problem.add_slab(0).unwrap();
    }
}
