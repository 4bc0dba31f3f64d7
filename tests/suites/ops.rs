//! Every op keeps the promises of its entry in the op table.

use autobatch_ir::GraphData;
use autobatch_tests::op_table::{self, Evaluate, Gradient, Kind, OpCase};
use std::cell::Cell;

/// Runs a check on every kind and reports all failures at once.
fn for_every_kind(check: impl Fn(Kind) -> Result<(), String>) {
    let failures: Vec<String> = Kind::ALL.iter().filter_map(|&kind| check(kind).err()).collect();
    assert!(failures.is_empty(), "{} entries fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_op_infers_the_types_of_its_entry() {
    for_every_kind(op_table::check_inference);
}

#[test]
fn every_op_refuses_bad_operands_with_a_message_at_the_users_line() {
    for_every_kind(op_table::check_errors);
}

#[test]
fn an_op_without_a_gradient_has_a_reason() {
    for_every_kind(|kind| match op_table::case(kind).gradient {
        Gradient::None(reason) if !reason.contains(' ') => Err(format!("{kind:?}: give a reason")),
        Gradient::TimesTrue(_) | Gradient::None(_) => Ok(()),
    });
}

/// Answers with the numbers of the entry itself, example by example, all moved by one distance:
/// not an evaluator but a probe of the check.
struct Echo {
    case: OpCase,
    next: Cell<usize>,
    moved: f64,
}

impl Evaluate for Echo {
    fn run(&self, _: &GraphData, _: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let example = &self.case.examples[self.next.replace(self.next.get() + 1)];
        example.numbers.iter().map(|row| row.iter().map(|x| x + self.moved).collect()).collect()
    }
}

#[test]
fn the_check_of_numbers_accepts_equal_numbers_and_refuses_others() {
    for_every_kind(|kind| {
        let echo = |moved| Echo { case: op_table::case(kind), next: Cell::new(0), moved };
        op_table::check_numbers(kind, &echo(0.0), 1e-6)?;
        match op_table::check_numbers(kind, &echo(1e-3), 1e-9) {
            Err(message) if message.contains("example 0: expected") => Ok(()),
            other => Err(format!("{kind:?}: moved numbers give {other:?}")),
        }
    });
}
