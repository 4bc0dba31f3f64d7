//! Policies and bounds against exhaustive search.

use super::*;
use autobatch_planner::schedule::*;
use autobatch_testing::exhaustive::shortest_order;
use autobatch_testing::job_graphs::{JobGraph, Random};

fn small(seed: u64) -> JobGraph {
    let mut random = Random(seed);
    let jobs = 1 + random.below(14);
    let types = 1 + random.below(4) as u32;
    let mut graph = JobGraph::random(jobs, types, &mut random);
    if seed.is_multiple_of(4) {
        graph.mark_alone(6, &mut random);
    }
    graph
}

fn optimum(graph: &JobGraph) -> usize {
    let order = shortest_order(graph);
    let ends = order.iter().scan(0, |end, batch| {
        *end += batch.len() as u32;
        Some(*end)
    });
    let (start, items) =
        (std::iter::once(0).chain(ends).collect(), order.concat().into_iter().map(JobId).collect());
    let batches = Batches { start, items, bound: None, why: StopReason::Rule };
    check(&graph.problem(), &batches).expect("exhaustive search returns valid orders");
    order.len()
}

#[test]
fn bound_is_never_above_the_optimum_and_policies_never_below_it() {
    let mut scratch = Scratch::default();
    let policies: [&dyn Schedule; 5] =
        [&Depth, &Agenda::default(), &Agenda { mean: Mean::Remaining }, &Ratio, &Unbatched];
    for seed in 0..cases(1000) {
        let graph = small(seed);
        let best = optimum(&graph);
        let bound = path_sum_bound(&graph.problem(), &mut scratch);
        assert!(bound.total as usize <= best, "seed {seed}: bound {} above the optimum {best}", bound.total);
        for policy in policies {
            assert!(count(policy, &graph, &mut scratch, seed) >= best, "{} on seed {seed}", policy.name());
        }
        let batches = Ratio.schedule(&graph.problem(), &mut scratch);
        assert_eq!(batches.bound, Some(bound.total), "seed {seed}: ratio reports another bound");
        assert_eq!(batches.why == StopReason::BoundMet, batches.len() == bound.total as usize, "seed {seed}");
    }
}

#[test]
fn beam_of_sixteen_is_optimal_in_99_of_100_small_graphs_and_never_off_by_more_than_one() {
    let (mut scratch, mut missed) = (Scratch::default(), 0);
    let beam = Beam { width: 16, ..Beam::default() };
    let total = cases(1000);
    for seed in 0..total {
        let graph = small(seed);
        let best = optimum(&graph);
        let found = count(&beam, &graph, &mut scratch, seed);
        assert!(found == best || found == best + 1, "seed {seed}: beam {found}, optimum {best}");
        missed += u64::from(found != best);
    }
    assert!(missed * 100 <= total, "{missed} of {total} above the optimum");
}

/// The fewest batches if a batch may be any subset of the ready jobs of one type.
fn optimum_with_partial_batches(graph: &JobGraph) -> usize {
    let jobs = graph.ty.len();
    let mut layer = vec![0u32];
    let mut seen = vec![false; 1 << jobs];
    for steps in 0.. {
        if layer.contains(&((1 << jobs) - 1)) {
            return steps;
        }
        let mut next = Vec::new();
        for &done in &layer {
            for ty in 0..graph.types {
                let fits = |&job: &usize| {
                    graph.ty[job] == ty
                        && done >> job & 1 == 0
                        && graph.operands_of(job).iter().all(|v| done >> v & 1 == 1)
                };
                let ready: Vec<usize> = (0..jobs).filter(fits).collect();
                for choice in 1..1u32 << ready.len() {
                    let fired = ready.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
                    let reached = fired.fold(done, |set, (_, &job)| set | 1 << job);
                    if !std::mem::replace(&mut seen[reached as usize], true) {
                        next.push(reached);
                    }
                }
            }
        }
        layer = next;
    }
    unreachable!("every layer but the last leads to another")
}

#[test]
fn batches_of_some_ready_jobs_save_no_batch() {
    for seed in 0..cases(150) {
        let mut random = Random(seed);
        let jobs = 1 + random.below(9);
        let graph = JobGraph::random(jobs, 3, &mut random);
        assert_eq!(optimum(&graph), optimum_with_partial_batches(&graph), "seed {seed}\n{graph:?}");
    }
}

#[test]
fn beams_are_never_longer_than_the_ratio_and_often_shorter() {
    let (mut scratch, mut shorter) = (Scratch::default(), 0);
    for seed in 0..cases(60) {
        let graph = JobGraph::lattices(4, 20, &mut Random(seed));
        let ratio = count(&Ratio, &graph, &mut scratch, seed);
        let narrow = count(&Beam { width: 1, ..Beam::default() }, &graph, &mut scratch, seed);
        let wide = count(&Beam::default(), &graph, &mut scratch, seed);
        assert!(narrow <= ratio && wide <= ratio, "seed {seed}: ratio {ratio}, beams {narrow} and {wide}");
        shorter += u64::from(wide < ratio);
    }
    assert!(shorter * 2 > cases(60), "only {shorter} beams are shorter");
}

/// The most jobs of `ty` on any path without alone jobs, by definition.
fn longest(graph: &JobGraph, ty: u32) -> u32 {
    let mut most = vec![0u32; graph.ty.len()];
    for job in 0..graph.ty.len() {
        let before = graph.operands_of(job).iter().map(|&v| most[v as usize]).max().unwrap_or(0);
        let own = graph.ty[job] == ty && !graph.alone.contains(&(job as u32));
        most[job] = before + u32::from(own);
    }
    most.into_iter().max().unwrap_or(0)
}

#[test]
fn the_bound_counts_the_longest_path_of_every_type() {
    let mut scratch = Scratch::default();
    for seed in 0..cases(300) {
        let graph = JobGraph::any(seed);
        let bound = path_sum_bound(&graph.problem(), &mut scratch);
        let expected: Vec<u32> = (0..graph.types).map(|ty| longest(&graph, ty)).collect();
        assert_eq!(bound.per_type, expected, "seed {seed}");
        assert_eq!(bound.alone as usize, graph.alone.len(), "seed {seed}");
        assert_eq!(bound.total, expected.iter().sum::<u32>() + bound.alone, "seed {seed}");
    }
}
