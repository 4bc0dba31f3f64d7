//! Malformed problems and invalid orders are refused, each by its rule.

use super::generate::Graph;
use super::*;

#[test]
fn malformed_problems_are_refused() {
    let refused = |types, ty: &[u32], alone: &[u32], start: &[u32], operands: &[u32]| {
        Problem::new(types, ty, alone, start, operands).expect_err("malformed")
    };
    let huge = refused(u32::MAX, &[0], &[], &[0, 0], &[]);
    assert_eq!(huge, ProblemError::TooManyTypes { types: u32::MAX, jobs: 1 });
    let ty = refused(2, &[0, 2], &[], &[0, 0, 0], &[]);
    assert_eq!(ty, ProblemError::TypeOutOfRange { job: 1, ty: 2, types: 2 });
    let count = refused(1, &[0, 0], &[], &[0, 0], &[]);
    assert_eq!(count, ProblemError::OffsetCount { expected: 3, found: 2 });
    let ends = refused(1, &[0, 0], &[], &[0, 0, 2], &[0]);
    assert_eq!(ends, ProblemError::OffsetEnds { first: 0, last: 2, operands: 1 });
    let falls = refused(1, &[0, 0], &[], &[0, 2, 1], &[0]);
    assert_eq!(falls, ProblemError::OffsetFalls { job: 0 });
    let itself = refused(1, &[0, 0], &[], &[0, 0, 1], &[1]);
    assert_eq!(itself, ProblemError::OperandNotEarlier { job: 1, operand: 1 });
    for alone in [[2, 3], [1, 1], [1, 0]] {
        let error = refused(1, &[0, 0], &alone, &[0, 0, 0], &[]);
        assert!(matches!(error, ProblemError::AloneOutOfOrder { .. }), "{error}");
    }
}

/// Jobs 0 and 1 of type 0, job 2 of type 1 over both, job 3 of type 0, alone.
fn example() -> Graph {
    let mut graph = Graph::new(2);
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
    Batches { start, items: batches.concat(), bound: None, why: Why::Rule }
}

#[test]
fn check_accepts_valid_orders_and_names_the_rule_that_others_break() {
    let graph = example();
    let judge = |batches: &[&[u32]]| check(&graph.problem(), &order(batches));
    assert_eq!(judge(&[&[0, 1], &[3], &[2]]), Ok(()));
    assert_eq!(judge(&[&[0], &[1], &[2], &[3]]), Ok(()));
    assert_eq!(judge(&[&[0, 1], &[], &[3], &[2]]), Err(ScheduleError::Offsets { items: 4 }));
    assert_eq!(judge(&[&[0, 1], &[3], &[2], &[4]]), Err(ScheduleError::NoSuchJob { batch: 3, job: 4 }));
    assert_eq!(judge(&[&[0, 1], &[1], &[2], &[3]]), Err(ScheduleError::Twice { batch: 1, job: 1 }));
    assert_eq!(judge(&[&[0, 1], &[2]]), Err(ScheduleError::Missing { job: 3 }));
    assert_eq!(judge(&[&[1, 0], &[3], &[2]]), Err(ScheduleError::NotAscending { batch: 0, job: 0 }));
    assert_eq!(judge(&[&[0], &[1, 2], &[3]]), Err(ScheduleError::MixedTypes { batch: 1, first: 1, job: 2 }));
    assert_eq!(judge(&[&[0, 1, 3], &[2]]), Err(ScheduleError::NotAlone { batch: 0, job: 3 }));
    let late = ScheduleError::OperandTooLate { job: 2, operand: 1, batch: 1 };
    assert_eq!(judge(&[&[0], &[2], &[1], &[3]]), Err(late));
    let broken = Batches { start: vec![0, 9], ..order(&[&[0, 1], &[3], &[2]]) };
    assert_eq!(check(&graph.problem(), &broken), Err(ScheduleError::Offsets { items: 4 }));
    let none = Batches { start: Vec::new(), items: Vec::new(), bound: None, why: Why::Rule };
    assert_eq!(check(&graph.problem(), &none), Err(ScheduleError::Offsets { items: 0 }));
}

#[test]
fn a_job_cannot_share_a_batch_with_its_operand() {
    let mut graph = Graph::new(1);
    graph.add(0, &[]);
    graph.add(0, &[0]);
    let late = ScheduleError::OperandTooLate { job: 1, operand: 0, batch: 0 };
    assert_eq!(check(&graph.problem(), &order(&[&[0, 1]])), Err(late));
}

#[test]
fn reasons_and_errors_are_sentences() {
    let why = Why::BatchingDoesNotPay { alone: 1000.0, batched: 2000.0 };
    assert_eq!(
        why.to_string(),
        "batching does not pay: 1.0 µs one by one, 2.0 µs in batches, besides the rows"
    );
    let error = ProblemError::OperandNotEarlier { job: 1, operand: 1 };
    assert_eq!(
        error.to_string(),
        "job 1 has operand 1, expected an earlier job; number jobs in topological order"
    );
}
