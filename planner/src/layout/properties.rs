//! What the planners promise, on random problems.

use super::random::{SplitMix64, rounds};
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
        for layout in [&plain, &propagated(&problem)] {
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
    }
}
