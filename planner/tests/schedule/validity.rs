//! Every policy on every shape: valid, deterministic, and independent of earlier uses of the scratch.

use super::*;
use autobatch_planner::schedule::*;
use autobatch_testing::job_graphs::{JobGraph, Random};

fn policies() -> Vec<Box<dyn Schedule + Send + Sync>> {
    let mut all: Vec<Box<dyn Schedule + Send + Sync>> =
        ["none", "depth", "agenda", "agenda:remaining", "ratio", "beam:4", "auto"]
            .iter()
            .map(|name| name.parse::<Policy>().expect("a policy").load().expect("needs no file"))
            .collect();
    all.push(Box::new(Fsm::default()));
    all.push(Box::new(Beam { width: 4, budget: 1500 }));
    all.push(Box::new(Beam { width: 0, budget: 1 }));
    all
}

#[test]
fn every_policy_gives_valid_orders_on_every_shape() {
    let mut scratch = Scratch::default();
    for seed in 0..cases(300) {
        let graph = JobGraph::any(seed);
        let bound = path_sum_bound(&graph.problem(), &mut scratch).total as usize;
        for policy in policies() {
            let found = count(policy.as_ref(), &graph, &mut scratch, seed);
            assert!(
                found >= bound,
                "{} on seed {seed}: {found} batches below the bound {bound}",
                policy.name()
            );
        }
    }
}

#[test]
fn equal_problems_give_equal_batches_with_any_scratch() {
    let mut used = Scratch::default();
    for seed in 0..cases(60) {
        let graph = JobGraph::any(seed);
        for policy in policies() {
            let fresh = policy.schedule(&graph.problem(), &mut Scratch::default());
            assert_eq!(
                fresh,
                policy.schedule(&graph.problem(), &mut used),
                "{} on seed {seed}",
                policy.name()
            );
        }
    }
}

#[test]
fn empty_and_single_job_problems_have_no_and_one_batch() {
    let mut scratch = Scratch::default();
    let empty = JobGraph::new(0);
    let mut single = JobGraph::new(3);
    single.add(2, &[]);
    let mut alone = single.clone();
    alone.alone.push(0);
    for policy in policies() {
        assert_eq!(count(policy.as_ref(), &empty, &mut scratch, 0), 0, "{}", policy.name());
        assert_eq!(count(policy.as_ref(), &single, &mut scratch, 0), 1, "{}", policy.name());
        assert_eq!(count(policy.as_ref(), &alone, &mut scratch, 0), 1, "{}", policy.name());
    }
}

#[test]
fn duplicate_operands_change_nothing() {
    let mut scratch = Scratch::default();
    for seed in 0..cases(60) {
        let graph = JobGraph::lattices(4, 20, &mut Random(seed));
        let mut doubled = JobGraph::new(graph.types);
        for job in 0..graph.ty.len() {
            doubled.add(graph.ty[job], &graph.operands_of(job).repeat(2));
        }
        // Searches count duplicate edges as work, so their budgets differ.
        for policy in policies().iter().filter(|policy| !["beam", "auto"].contains(&policy.name())) {
            let (one, two) = (&graph.problem(), &doubled.problem());
            let expected = policy.schedule(one, &mut scratch);
            let found = policy.schedule(two, &mut scratch);
            let name = policy.name();
            assert_eq!((expected.start, expected.items), (found.start, found.items), "{name} on seed {seed}");
        }
    }
}

#[test]
fn alone_jobs_cost_one_batch_each_and_no_more() {
    let mut scratch = Scratch::default();
    for seed in 0..cases(60) {
        let mut random = Random(seed);
        let mut graph = JobGraph::trees(6, 12, 1, &mut random);
        graph.mark_alone(4, &mut random);
        let bound = path_sum_bound(&graph.problem(), &mut scratch).total as usize;
        assert_eq!(count(&Ratio, &graph, &mut scratch, seed), bound, "seed {seed}");
    }
}

#[test]
fn one_recurrent_cell_needs_no_search() {
    let mut scratch = Scratch::default();
    for seed in 0..cases(100) {
        let graph = JobGraph::trees(32, 40, 1, &mut Random(seed));
        let bound = path_sum_bound(&graph.problem(), &mut scratch);
        let ratio = Ratio.schedule(&graph.problem(), &mut scratch);
        assert_eq!(ratio.why, StopReason::BoundMet, "seed {seed}");
        assert_eq!(count(&Ratio, &graph, &mut scratch, seed), bound.total as usize, "seed {seed}");
        assert_eq!(count(&Beam::default(), &graph, &mut scratch, seed), bound.total as usize, "seed {seed}");
        assert!(count(&Depth, &graph, &mut scratch, seed) >= bound.total as usize, "seed {seed}");
    }
}

#[test]
fn thousands_of_mutually_dependent_types_are_ordered_by_depth() {
    let (types, mut scratch) = (3000, Scratch::default());
    let mut graph = JobGraph::new(types);
    for chain in 0..4 {
        let mut last = None;
        for at in 0..2 * types {
            last = Some(graph.add((at * (chain + 1)) % types, last.as_slice()));
        }
    }
    for policy in policies() {
        count(policy.as_ref(), &graph, &mut scratch, 0);
    }
    let batches = Ratio.schedule(&graph.problem(), &mut scratch);
    assert_eq!(batches.why, StopReason::TooManyTypes { types });
}

#[test]
fn many_types_that_do_not_depend_on_each_other_stay_exact() {
    let (types, mut scratch) = (5000, Scratch::default());
    let mut graph = JobGraph::new(types);
    for _ in 0..3 {
        let mut last = None;
        for ty in 0..types {
            last = Some(graph.add(ty, last.as_slice()));
        }
    }
    let batches = Ratio.schedule(&graph.problem(), &mut scratch);
    assert_eq!((batches.len(), batches.why), (types as usize, StopReason::BoundMet));
}

#[test]
fn a_spent_budget_is_reported_and_still_beats_or_equals_the_ratio() {
    let (mut scratch, mut spent) = (Scratch::default(), [0, 0]);
    for seed in 0..cases(30) {
        let graph = JobGraph::lattices(8, 40, &mut Random(seed));
        let ratio = count(&Ratio, &graph, &mut scratch, seed);
        for (budget, spent) in [1, 8 * graph.hard_edges()].into_iter().zip(&mut spent) {
            let batches = Beam { width: 8, budget }.schedule(&graph.problem(), &mut scratch);
            assert!(batches.len() <= ratio, "seed {seed}");
            *spent += u32::from(batches.why == StopReason::BudgetSpent { budget });
        }
    }
    assert!(spent[0] > 0 && spent[1] > 0, "no search spent its budget: {spent:?}");
}

/// Costs of all types: every step costs `fixed` before its first row.
fn type_costs(graph: &JobGraph, fixed: f64) -> Vec<StepCost> {
    vec![StepCost { fixed, row: 1.0 }; graph.types as usize]
}

#[test]
fn auto_runs_jobs_one_by_one_where_steps_cost_less_than_tables() {
    let (graph, mut scratch) = (JobGraph::trees(4, 10, 2, &mut Random(3)), Scratch::default());
    let auto = Auto::default();
    let free = auto.schedule(&graph.problem().with_costs(&type_costs(&graph, 0.0)), &mut scratch);
    assert_eq!(free.len(), graph.ty.len());
    assert!(matches!(free.why, StopReason::BatchingDoesNotPay { .. }), "{:?}", free.why);
    let dear = auto.schedule(&graph.problem().with_costs(&type_costs(&graph, 1e3)), &mut scratch);
    assert!(dear.len() < graph.ty.len());
    let broken = auto.schedule(&graph.problem().with_costs(&type_costs(&graph, f64::NAN)), &mut scratch);
    check(&graph.problem(), &broken).expect("an order is valid even with NaN costs");
}

#[test]
fn auto_searches_where_the_saved_batches_cost_more_than_the_search() {
    let (mut scratch, mut searched) = (Scratch::default(), 0);
    for seed in 0..cases(20) {
        let graph = JobGraph::lattices(8, 40, &mut Random(seed));
        let ratio = count(&Ratio, &graph, &mut scratch, seed);
        let bound = path_sum_bound(&graph.problem(), &mut scratch).total as usize;
        let auto = |fixed: f64, executes: f64, scratch: &mut Scratch| {
            let problem = graph.problem();
            let costs = type_costs(&graph, fixed);
            Auto::default().schedule(&problem.with_costs(&costs).with_executions(executes), scratch)
        };
        let cheap = auto(300.0, 1.0, &mut scratch);
        assert_eq!(cheap.len(), ratio, "seed {seed}");
        if ratio == bound {
            continue;
        }
        assert!(
            matches!(cheap.why, StopReason::SearchDoesNotPay { saves, costs } if saves <= costs),
            "seed {seed}"
        );
        let dear = auto(1e9, 1.0, &mut scratch);
        let often = auto(300.0, 1e7, &mut scratch);
        assert!(dear.len() <= ratio && often.len() <= ratio, "seed {seed}");
        assert!(!matches!(dear.why, StopReason::SearchDoesNotPay { .. }), "seed {seed}");
        searched += u64::from(dear.len() < ratio && often.len() < ratio);
    }
    assert!(searched * 2 > cases(20), "only {searched} searches found shorter orders");
}

#[test]
fn auto_never_spends_more_than_it_can_save() {
    let mut scratch = Scratch::default();
    let costs = CostTable::default();
    for seed in 0..cases(20) {
        let graph = JobGraph::lattices(8, 40, &mut Random(seed));
        let batches =
            Auto::default().schedule(&graph.problem().with_costs(&type_costs(&graph, 3e4)), &mut scratch);
        if let StopReason::BudgetSpent { budget } = batches.why {
            let gap = Ratio.schedule(&graph.problem(), &mut scratch).len() - batches.bound.unwrap() as usize;
            assert!(budget as f64 * costs.planning.beam_ns <= gap as f64 * 3e4, "seed {seed}");
        }
    }
}
