//! Every op keeps the promises of its entry in the op table.

use autobatch_ir::GraphData;
use autobatch_tests::op_table::{self, Evaluate, Gradient, Kind, OpCase};

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

/// Answers with the numbers of the entry itself, all moved by the same distance: not an evaluator
/// but a probe of the check.
struct Echo {
    case: OpCase,
    moved: f64,
}

impl Evaluate for Echo {
    fn run(&self, graph: &GraphData, _: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let sizes: Vec<usize> =
            graph.outputs.iter().map(|output| graph.type_of(output.value).shape.elements()).collect();
        let fits = |numbers: &&Vec<Vec<f64>>| numbers.iter().map(Vec::len).eq(sizes.iter().copied());
        let numbers = self.case.examples.iter().map(|example| &example.numbers).find(fits);
        let numbers = numbers.expect("inference compared the sizes");
        numbers.iter().map(|row| row.iter().map(|x| x + self.moved).collect()).collect()
    }
}

#[test]
fn the_check_of_numbers_accepts_equal_numbers_and_refuses_others() {
    for kind in [Kind::Tanh, Kind::Dot, Kind::ArgMax] {
        let mut case = op_table::case(kind);
        case.examples.truncate(1);
        let echo = |moved| Echo { case: case.clone(), moved };
        let moved = op_table::check_numbers(kind, &echo(1e-3), 1e-6).expect_err("numbers differ");
        assert!(moved.contains("example 0: expected"), "{moved}");
        if op_table::case(kind).examples.len() == 1 {
            op_table::check_numbers(kind, &echo(0.0), 1e-6).expect("numbers are equal");
        }
    }
}
