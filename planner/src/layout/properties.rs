//! What the planners promise, on random problems.

use super::random::{SplitMix64, rounds};
use super::tests::{operand, result};
use super::*;

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
            let total = layout.counts().direct_operands() + layout.counts().gathered_operands();
            assert_eq!(
                total,
                plain.counts().direct_operands() + plain.counts().gathered_operands(),
                "seed {seed}"
            );
        }
        assert_eq!(plain.counts().result_gathered, 0, "seed {seed}: batch order writes ranges");
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
        let gathered = counts.gathered + counts.descending + counts.result_gathered;
        assert_eq!(gathered, 0, "seed {seed}: {outcome:?}");
        assert_eq!((outcome.misaligned, outcome.over_budget), (0, false), "seed {seed}");
        assert_eq!(check(&problem, &outcome.layout), Ok(()), "seed {seed}");
    }
}
