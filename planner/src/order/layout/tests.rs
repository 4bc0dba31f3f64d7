//! Tests of the layout, with an independent check of every layout.

use super::propagate::needs_table;
use super::*;
use crate::ids::{BatchId, Lane, ProvisionalRow, SlotId};
use autobatch_ir::plan::SlabId;
use autobatch_testing::random::Rng;
use autobatch_testing::trials::trials;
use bytemuck::TransparentWrapper;

/// A batch of a test: the slabs of its results, and its operands.
#[derive(Clone, Debug, Default)]
struct Sketch {
    lanes: u32,
    results: Vec<u32>,
    operands: Vec<Column>,
}

/// An operand: the slab, the bytes of a row, and for each lane the row in the slab.
#[derive(Clone, Debug)]
struct Column {
    slab: u32,
    bytes: u32,
    rows: Vec<u32>,
}

fn batch(results: &[u32], lanes: u32, operands: &[&[u32]]) -> Sketch {
    let column = |rows: &&[u32]| Column { slab: 0, bytes: 4, rows: rows.to_vec() };
    Sketch { lanes, results: results.to_vec(), operands: operands.iter().map(column).collect() }
}

/// The problem of these batches. The first `before` rows of each slab exist already; results take the next rows in order.
fn problem(before: &[u32], batches: &[Sketch]) -> LayoutProblem {
    let mut sizes = before.to_vec();
    for batch in batches {
        batch.results.iter().for_each(|&slab| sizes[slab as usize] += batch.lanes);
    }
    let mut problem = LayoutProblem::default();
    problem.restart(&sizes, before).unwrap();
    for batch in batches {
        let results: Vec<KnownSlot> = batch.results.iter().map(|&slab| (SlabId(slab), 4)).collect();
        let operands: Vec<KnownSlot> =
            batch.operands.iter().map(|operand| (SlabId(operand.slab), operand.bytes)).collect();
        let mut at = problem.add_known(batch.lanes, &results, &operands) as usize;
        for Column { slab, rows, .. } in &batch.operands {
            let base = problem.rows_of(SlabId(*slab)).start.0;
            let global: Vec<ProvisionalRow> = rows.iter().map(|row| ProvisionalRow(base + row)).collect();
            problem.pool[at..at + rows.len()].copy_from_slice(&global);
            at += rows.len();
        }
    }
    problem.settle();
    problem
}

fn lay_out(problem: &LayoutProblem) -> RowLayout {
    let layout = propagated(problem, &mut Memory::default());
    assert_eq!(check(problem, &layout), Ok(()));
    layout
}

fn lanes<'a>(problem: &LayoutProblem, layout: &'a RowLayout, batch: u32) -> &'a [u32] {
    Lane::peel_slice(&layout.lanes[problem.batches[BatchId(batch)].span()])
}

/// The places that the lanes of a batch read, for each operand.
fn operands(problem: &LayoutProblem, layout: &RowLayout, batch: u32) -> Vec<Vec<u32>> {
    let order = lanes(problem, layout, batch).iter();
    let batch = &problem.batches[BatchId(batch)];
    let slots = problem.batch_slots(batch).iter().filter(|slot| slot.role == Role::Operand);
    let rows = slots.map(|slot| problem.slot_rows(slot, batch.lanes));
    rows.map(|rows| order.clone().map(|&lane| layout.places[rows[lane as usize]]).collect()).collect()
}

/// The number of operand rows that plans read through tables.
fn gathered(problem: &LayoutProblem, layout: &RowLayout) -> usize {
    let all = (0..problem.batches.len() as u32).flat_map(|batch| operands(problem, layout, batch));
    let step = |pair: &[u32]| i64::from(pair[1]) - i64::from(pair[0]);
    let is_direct = |places: &Vec<u32>| {
        let mut steps = places.windows(2).map(step);
        steps.next().is_none_or(|first| first >= 0 && steps.all(|step| step == first))
    };
    all.filter(|places| !is_direct(places)).map(|places| places.len()).sum()
}

/// Checks a layout against the problem alone: places are a permutation in every slab, lanes are a permutation in every batch, and
/// each result is consecutive. Returns the first broken rule.
fn check(problem: &LayoutProblem, layout: &RowLayout) -> Result<(), &'static str> {
    let is_permutation = |numbers: &[u32]| {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..numbers.len() as u32)
    };
    let ensure = |holds: bool, rule: &'static str| if holds { Ok(()) } else { Err(rule) };
    ensure(layout.places.len() == problem.rows as usize, "one place for every row")?;
    ensure(layout.lanes.len() == problem.lanes as usize, "one entry for every lane")?;
    for (_, rows) in problem.slabs() {
        let places = &layout.places[rows];
        ensure(is_permutation(places), "every place of a slab once")?;
    }
    for batch in problem.batches.iter() {
        let order = Lane::peel_slice(&layout.lanes[batch.span()]);
        ensure(is_permutation(order), "every lane of a batch once")?;
        for slot in problem.results(batch) {
            let own = &layout.places[problem.result_rows(slot, batch)];
            let named = order.windows(2).all(|pair| own[pair[0] as usize] + 1 == own[pair[1] as usize]);
            ensure(named, "the rows of a result are consecutive in lane order")?;
        }
    }
    Ok(())
}

#[test]
fn the_check_rejects_broken_layouts() {
    let problem = problem(&[0], &[batch(&[0], 2, &[]), batch(&[0], 2, &[&[1, 0]])]);
    let broken = |change: fn(&mut RowLayout)| {
        let mut layout = lay_out(&problem);
        change(&mut layout);
        check(&problem, &layout).expect_err("a broken layout")
    };
    assert_eq!(
        broken(|layout| layout.places[ProvisionalRow(0)] = layout.places[ProvisionalRow(1)]),
        "every place of a slab once"
    );
    assert_eq!(broken(|layout| layout.places[ProvisionalRow(0)] = 9), "every place of a slab once");
    assert_eq!(broken(|layout| layout.lanes[0] = layout.lanes[1]), "every lane of a batch once");
    assert!(broken(|layout| layout.places.swap(0, 1)).contains("consecutive"));
    assert!(broken(|layout| layout.lanes.swap(2, 3)).contains("consecutive"));
    assert!(broken(|layout| layout.places.resize(1, 0)).contains("one place"));
    assert!(broken(|layout| layout.lanes.truncate(1)).contains("one entry"));
}

#[test]
fn all_operands_of_two_trees_are_direct() {
    // The trees (17 4) and ((9 3) 17): leaves 0..5, nodes 5 and 6 of the first level, and 7 above them.
    let leaves = batch(&[0], 5, &[]);
    let first = batch(&[0], 2, &[&[0, 2], &[1, 3]]);
    let second = batch(&[0], 1, &[&[6], &[4]]);
    let problem = problem(&[0], &[leaves, first, second, batch(&[], 2, &[&[5, 7]])]);
    let layout = lay_out(&problem);
    assert_eq!(gathered(&problem, &layout), 0);
    assert_eq!(lanes(&problem, &layout, 3), [0, 1]);
    assert_eq!(layout.places[ProvisionalRow(7)], 7);
}

#[test]
fn operands_follow_the_first_reader() {
    // In batch order, the left children 3 and 0 descend.
    let problem = problem(&[0], &[batch(&[0], 4, &[]), batch(&[0], 2, &[&[3, 0], &[1, 2]])]);
    let layout = lay_out(&problem);
    assert_eq!(*layout.places, [1, 2, 3, 0, 4, 5]);
    assert_eq!(operands(&problem, &layout, 1), [[0, 1], [2, 3]]);
}

/// Sequences of these lengths: step `t` has one lane for each sequence longer than `t`, which reads its row of step `t - 1`.
fn steps(lengths: &[u32]) -> LayoutProblem {
    let mut batches = Vec::new();
    let (mut last_row, mut next) = (vec![0; lengths.len()], 0);
    for step in 0..lengths.iter().copied().max().unwrap_or(0) {
        let running: Vec<usize> = (0..lengths.len()).filter(|&sequence| lengths[sequence] > step).collect();
        let read: Vec<u32> = running.iter().map(|&sequence| last_row[sequence]).collect();
        let operands = [&read[..]];
        batches.push(batch(&[0], running.len() as u32, if step == 0 { &[] } else { &operands }));
        running.iter().zip(next..).for_each(|(&sequence, row)| last_row[sequence] = row);
        next += running.len() as u32;
    }
    problem(&[0], &batches)
}

#[test]
fn every_step_over_unequal_sequences_reads_a_prefix_of_the_step_before() {
    for seed in 0..rounds(50) {
        let mut random = Rng::new(seed ^ 0x4242);
        let lengths: Vec<u32> = (0..32).map(|_| 1 + random.below(40)).collect();
        let problem = steps(&lengths);
        let layout = lay_out(&problem);
        let mut start = 0;
        for step in 1..problem.batches.len() as u32 {
            let found = operands(&problem, &layout, step);
            let read: Vec<u32> = (start..).take(lanes(&problem, &layout, step).len()).collect();
            assert_eq!(found, [read], "seed {seed}, step {step}");
            start += lanes(&problem, &layout, step - 1).len() as u32;
        }
        // The first step runs the sequences by length, descending.
        let first: Vec<u32> =
            lanes(&problem, &layout, 0).iter().map(|&lane| lengths[lane as usize]).collect();
        assert!(first.is_sorted_by(|a, b| a >= b), "seed {seed}: {first:?}");
    }
}

#[test]
fn a_batch_without_readers_follows_its_widest_operand() {
    // The second batch reads the states first, so it decides their order. The last batch follows.
    let states = batch(&[0], 4, &[]);
    let reader = batch(&[], 3, &[&[3, 0, 2], &[0, 0, 0]]);
    let mut last = batch(&[1], 4, &[&[0, 1, 1, 2], &[0, 1, 2, 3]]);
    last.operands[0].bytes = 1;
    let problem = problem(&[0, 0], &[states, reader, last]);
    let layout = lay_out(&problem);
    assert_eq!(lanes(&problem, &layout, 2), [3, 0, 2, 1]);
    let losses = problem.rows_of(SlabId(1)).start.0;
    assert_eq!(layout.places[ProvisionalRow(losses + 3)], 0);
    assert_eq!(operands(&problem, &layout, 2)[1], [0, 1, 2, 3]);
    assert_eq!(gathered(&problem, &layout), 4, "only the first operand of the last batch");
    let shared = &operands(&problem, &layout, 1)[1];
    assert!(shared.iter().all(|place| place == &shared[0]));
}

#[test]
fn only_rows_at_an_ascending_constant_distance_need_no_table() {
    let direct = [&[][..], &[7], &[2, 3, 4], &[1, 3, 5], &[6, 6, 6]];
    assert!(direct.iter().all(|places| !needs_table(places.iter().copied())));
    let tables = [&[4, 3, 2][..], &[0, 1, 3], &[3, 3, 2], &[1, 0]];
    assert!(tables.iter().all(|places| needs_table(places.iter().copied())));
}

#[test]
fn rows_beyond_31_bits_are_rejected() {
    let mut problem = LayoutProblem::default();
    assert_eq!(problem.restart(&[1 << 30, 1 << 30], &[0, 0]), Err(LayoutError::TooLarge));
    assert_eq!(problem.restart(&[u32::MAX], &[0]), Err(LayoutError::TooLarge));
}

#[test]
fn an_empty_problem_has_an_empty_layout() {
    for before in [&[][..], &[0]] {
        let layout = lay_out(&problem(before, &[]));
        assert!(layout.places.is_empty() && layout.lanes.is_empty());
    }
}

#[test]
fn a_slot_that_reads_one_batch_is_followed_as_a_whole() {
    let second = batch(&[0], 3, &[&[0, 2, 1]]);
    let third = batch(&[0], 3, &[&[4, 5, 3], &[0, 3, 3]]);
    let problem = problem(&[0], &[batch(&[0], 3, &[]), second, third]);
    assert_eq!(
        [2, 4, 5].map(|slot| problem.slots[SlotId(slot)].from.map(|batch| batch.0)),
        [[0, 0], [1, 1], [0, 1]]
    );
    let layout = lay_out(&problem);
    // The third batch reads the second first, which reads the first in the order that the third gave it.
    assert_eq!(lanes(&problem, &layout, 1), [1, 2, 0]);
    assert_eq!(lanes(&problem, &layout, 0), [2, 1, 0]);
}

/// `size` different numbers below `n`, in random order.
fn random_set(random: &mut Rng, n: u32, size: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..n).collect();
    for i in 0..size {
        all.swap(i as usize, (i + random.below(n - i)) as usize);
    }
    all.truncate(size as usize);
    all
}

/// How often a random test runs; more with `AUTOBATCH_TEST=long`.
fn rounds(short: u64) -> u64 {
    trials(short, short * 50)
}

/// Batches over several slabs, with repeated and shared rows, equal slots, and rows that existed before.
fn random_problem(random: &mut Rng) -> LayoutProblem {
    let slabs = 1 + random.below(3);
    let before: Vec<u32> = (0..slabs).map(|_| random.below(4)).collect();
    let mut rows = before.clone();
    let mut batches = Vec::new();
    for _ in 0..3 + random.below(12) {
        let lanes = 1 + random.below(8);
        let mut own = Sketch { lanes, ..Sketch::default() };
        for _ in 0..random.below(4) {
            let slab = random.below(slabs);
            let known = rows[slab as usize];
            let rows = match random.below(4) {
                _ if known == 0 => continue,
                0 => vec![random.below(known); lanes as usize],
                1 => (0..lanes).map(|_| random.below(known)).collect(),
                _ if lanes <= known => random_set(random, known, lanes),
                _ => continue,
            };
            own.operands.push(Column { slab, bytes: 4, rows });
        }
        if random.below(3) == 0 {
            own.operands.extend(own.operands.last().cloned());
        }
        for slab in (0..slabs).filter(|_| random.below(2) == 0) {
            own.results.push(slab);
            rows[slab as usize] += lanes;
        }
        batches.push(own);
    }
    problem(&before, &batches)
}

#[test]
fn random_layouts_are_valid_and_no_worse_than_batch_order() {
    let mut memory = Memory::default();
    for seed in 0..rounds(300) {
        let problem = random_problem(&mut Rng::new(seed));
        let layout = lay_out(&problem);
        let unmoved = batch_order(&problem, &mut Memory::default());
        assert!(gathered(&problem, &layout) <= gathered(&problem, &unmoved), "seed {seed}");
        let again = propagated(&problem, &mut memory);
        assert_eq!(again, layout, "seed {seed}: equal problems have equal layouts, whatever the memory held");
        memory.recycle(again);
    }
}
