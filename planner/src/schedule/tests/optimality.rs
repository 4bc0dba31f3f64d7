//! Against exhaustive search: bounds below, beams near, the safe rule never wrong.

use super::super::front::{Fired, Front};
use super::super::part::Part;
use super::super::ratio::safe_type;
use super::generate::{Graph, Random};
use super::*;

fn small(seed: u64) -> Graph {
    let mut random = Random(seed);
    let jobs = 1 + random.below(14);
    let types = 1 + random.below(4) as u32;
    let mut graph = Graph::random(jobs, types, &mut random);
    if seed.is_multiple_of(4) {
        graph.mark_alone(6, &mut random);
    }
    graph
}

fn optimum(graph: &Graph) -> usize {
    let problem = graph.problem();
    let batches = exact(&problem).expect("small enough");
    check(&problem, &batches).expect("exhaustive search gives valid orders");
    batches.len()
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
        assert_eq!(batches.why == Why::BoundMet, batches.len() == bound.total as usize, "seed {seed}");
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

/// The graph without some finished jobs.
fn rest(graph: &Graph, done: &[bool]) -> Graph {
    let mut left = Graph::new(graph.types);
    let mut number = vec![0; graph.ty.len()];
    for job in (0..graph.ty.len()).filter(|&job| !done[job]) {
        let operands = graph.problem().operands(job);
        let kept: Vec<u32> =
            operands.iter().filter(|&&v| !done[v as usize]).map(|&v| number[v as usize]).collect();
        number[job] = left.add(graph.ty[job], &kept);
    }
    left
}

#[test]
fn firing_a_type_with_ratio_one_always_begins_an_optimal_order() {
    let mut decisions = 0;
    for seed in 0..cases(1000) {
        let mut graph = small(seed);
        graph.alone.clear();
        let (mut part, mut front, mut fired) = (Part::default(), Front::default(), Fired::default());
        part.whole(&graph.problem());
        part.link();
        part.track();
        front.reset(&part, &mut fired);
        let mut done = vec![false; part.len()];
        while let Some(ty) = safe_type(&front) {
            let before = optimum(&rest(&graph, &done));
            front.fire(&part, ty, &mut fired);
            fired.batch.iter().for_each(|&job| done[job as usize] = true);
            let after = optimum(&rest(&graph, &done));
            assert_eq!(before, after + 1, "seed {seed}: firing type {ty} lost a batch\n{graph:?}");
            decisions += 1;
        }
    }
    assert!(decisions > 1000, "only {decisions} safe decisions were met");
}

/// Fewest batches when a batch may be any set of ready jobs of one type, not only the whole.
fn optimum_with_partial_batches(graph: &Graph) -> usize {
    let problem = graph.problem();
    let jobs = problem.len();
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
                        && problem.operands(job).iter().all(|&v| done >> v & 1 == 1)
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
    unreachable!("a layer that is not the last leads to another")
}

#[test]
fn holding_back_ready_jobs_never_saves_a_batch() {
    for seed in 0..cases(150) {
        let mut random = Random(seed);
        let jobs = 1 + random.below(9);
        let graph = Graph::random(jobs, 3, &mut random);
        assert_eq!(optimum(&graph), optimum_with_partial_batches(&graph), "seed {seed}\n{graph:?}");
    }
}

#[test]
fn beams_are_never_longer_than_the_ratio_and_often_shorter() {
    let (mut scratch, mut shorter) = (Scratch::default(), 0);
    for seed in 0..cases(60) {
        let graph = Graph::lattices(4, 20, &mut Random(seed));
        let ratio = count(&Ratio, &graph, &mut scratch, seed);
        let narrow = count(&Beam { width: 1, ..Beam::default() }, &graph, &mut scratch, seed);
        let wide = count(&Beam::default(), &graph, &mut scratch, seed);
        assert!(narrow <= ratio && wide <= ratio, "seed {seed}: ratio {ratio}, beams {narrow} and {wide}");
        shorter += u64::from(wide < ratio);
    }
    assert!(shorter * 2 > cases(60), "shorter in only {shorter} cases");
}

#[test]
fn exhaustive_search_refuses_more_jobs_than_its_limit() {
    let graph = Graph::chains(1, 1, 1, &mut Random(1));
    assert!(exact(&graph.problem()).is_ok());
    let mut long = Graph::new(1);
    for _ in 0..=EXACT_NODES {
        long.add(0, &[]);
    }
    assert_eq!(exact(&long.problem()), Err(TooLarge { jobs: EXACT_NODES + 1 }));
}
