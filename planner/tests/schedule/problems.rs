//! Malformed problems and invalid orders are rejected, each by its rule.

use super::*;
use autobatch_planner::schedule::*;
use autobatch_testing::job_graphs::JobGraph;

#[test]
fn malformed_problems_are_rejected_by_rule() {
    let rule = |types, ty: &[u32], alone: &[u32], start: &[u32], operands: &[u32]| {
        let [alone, operands] = [alone, operands].map(JobId::wrap_slice);
        let problem = Problem::new(types, TypeIndex::wrap_slice(ty), alone, start, operands);
        problem.expect_err("malformed").rule()
    };
    assert_eq!(rule(2, &[0, 2], &[], &[0, 0, 0], &[]), 1);
    assert_eq!(rule(u32::MAX, &[0], &[], &[0, 0], &[]), 2);
    assert_eq!(rule(1, &[0, 0], &[], &[0, 0], &[]), 3, "too few offsets");
    assert_eq!(rule(1, &[0, 0], &[], &[0, 0, 2], &[0]), 3, "offsets beyond the operands");
    assert_eq!(rule(1, &[0, 0], &[], &[0, 2, 1], &[0]), 3, "falling offsets");
    assert_eq!(rule(1, &[0, 0], &[], &[0, 0, 1], &[1]), 4);
    for alone in [[2, 3], [1, 1], [1, 0]] {
        assert_eq!(rule(1, &[0, 0], &alone, &[0, 0, 0], &[]), 5, "{alone:?}");
    }
}

/// Jobs 0 and 1 of type 0, job 2 of type 1 over both, job 3 of type 0, alone.
fn example() -> JobGraph {
    let mut graph = JobGraph::new(2);
    graph.add(0, &[]);
    graph.add(0, &[]);
    graph.add(1, &[0, 1]);
    graph.add(0, &[]);
    graph.alone.push(3);
    graph
}

fn order(batches: &[&[u32]]) -> Batches {
    let mut start = vec![0];
    start.extend(batches.iter().scan(0, |end, batch| {
        *end += batch.len() as u32;
        Some(*end)
    }));
    Batches {
        start,
        items: batches.concat().into_iter().map(JobId).collect(),
        bound: None,
        why: StopReason::Rule,
    }
}

/// The number of the first rule that an order breaks, or 0.
fn broken_rule(graph: &JobGraph, batches: &Batches) -> u8 {
    check(&graph.problem(), batches).map_or_else(|error| error.rule(), |()| 0)
}

#[test]
fn the_check_accepts_valid_orders_and_names_the_first_broken_rule() {
    let graph = example();
    let rule = |batches: &[&[u32]]| broken_rule(&graph, &order(batches));
    assert_eq!(rule(&[&[0, 1], &[3], &[2]]), 0);
    assert_eq!(rule(&[&[0], &[1], &[2], &[3]]), 0);
    assert_eq!(rule(&[&[0, 1], &[], &[3], &[2]]), 1, "an empty batch");
    assert_eq!(rule(&[&[0, 1], &[3], &[2], &[4]]), 2, "an unknown job");
    assert_eq!(rule(&[&[0, 1], &[1], &[2], &[3]]), 2, "a job twice");
    assert_eq!(rule(&[&[0, 1], &[2]]), 2, "a missing job");
    assert_eq!(rule(&[&[1, 0], &[3], &[2]]), 3);
    assert_eq!(rule(&[&[0], &[1, 2], &[3]]), 4, "two types in a batch");
    assert_eq!(rule(&[&[0, 1, 3], &[2]]), 4, "an alone job with others");
    assert_eq!(rule(&[&[0], &[2], &[1], &[3]]), 5);
    let broken = Batches { start: vec![0, 9], ..order(&[&[0, 1], &[3], &[2]]) };
    assert_eq!(broken_rule(&graph, &broken), 1);
    let empty = Batches { start: Vec::new(), items: Vec::new(), bound: None, why: StopReason::Rule };
    assert_eq!(broken_rule(&graph, &empty), 1);
}

#[test]
fn a_job_and_its_operand_cannot_share_a_batch() {
    let mut graph = JobGraph::new(1);
    graph.add(0, &[]);
    graph.add(0, &[0]);
    assert_eq!(broken_rule(&graph, &order(&[&[0, 1]])), 5);
}

#[test]
fn reasons_and_errors_are_sentences() {
    let why = StopReason::BatchingDoesNotPay { alone: 1000.0, batched: 2000.0 };
    let expected = "batching does not pay: 1.0 µs one by one, 2.0 µs in batches, besides the rows";
    assert_eq!(why.to_string(), expected);
    let error = Problem::new(1, &[TypeIndex(0); 2], &[], &[0, 0, 1], &[JobId(1)])
        .expect_err("operand 1 is not earlier");
    let expected =
        "scheduling problem: job 1 has operand 1, expected an earlier job; number jobs in topological order";
    assert_eq!(error.to_string(), expected);
}
