//! Every op satisfies its entry in the op table.

use autobatch_ir::GraphData;
use autobatch_testing::op_table::{self, Differentiate, Evaluate, Gradient, Gradients, Kind, OpCase};
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
fn every_op_rejects_invalid_operands_with_an_error_at_the_users_line() {
    for_every_kind(op_table::check_errors);
}

#[test]
fn an_op_without_a_gradient_has_a_reason() {
    for_every_kind(|kind| match op_table::case(kind).gradient {
        Gradient::None(reason) if !reason.contains(' ') => Err(format!("{kind:?}: give a reason")),
        Gradient::TimesTrue(_) | Gradient::None(_) => Ok(()),
    });
}

/// An evaluator that returns the numbers of the entry, example by example, all moved by one distance.
/// It tests the check itself.
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
fn the_check_of_numbers_accepts_only_equal_numbers() {
    for_every_kind(|kind| {
        let echo = |moved| Echo { case: op_table::case(kind), next: Cell::new(0), moved };
        op_table::check_numbers(kind, &echo(0.0), 1e-6)?;
        match op_table::check_numbers(kind, &echo(1e-3), 1e-9) {
            Err(message) if message.contains("example 0: expected") => Ok(()),
            other => Err(format!("{kind:?}: moved numbers give {other:?}")),
        }
    });
}

/// An evaluator for one graph only: the loss of the example of `square`, by its formula. A factor
/// distorts its derivative by the operand.
struct Squares {
    factor: f64,
}

impl Squares {
    /// Returns the operand of the example, and the weights with which the check mixes its results.
    fn halves(graph: &GraphData) -> (Vec<f64>, Vec<f64>) {
        let floats: Vec<f64> = graph.bindings.floats.iter().map(|&x| f64::from(x)).collect();
        let (x, weights) = floats.split_at(floats.len() / 2);
        (x.to_vec(), weights.to_vec())
    }
}

impl Evaluate for Squares {
    fn run(&self, graph: &GraphData, _: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (x, weights) = Self::halves(graph);
        vec![vec![x.iter().zip(weights).map(|(x, weight)| weight * x * x).sum()]]
    }
}

impl Differentiate for Squares {
    fn gradients(&self, graph: &GraphData, params: &[Vec<f64>]) -> Gradients {
        let (x, weights) = Self::halves(graph);
        let by_operand = x.iter().zip(weights).map(|(x, weight)| self.factor * 2.0 * weight * x);
        let floats = by_operand.chain(x.iter().map(|x| x * x)).collect();
        Gradients { floats, params: params.iter().map(|param| vec![0.0; param.len()]).collect() }
    }
}

#[test]
fn the_check_of_gradients_accepts_only_true_derivatives() {
    let check = |factor| op_table::check_gradients(Kind::Square, &Squares { factor }, 1e-9);
    check(1.0).expect("the derivatives are true");
    let message = check(1.01).expect_err("the derivatives are wrong");
    assert!(message.contains("Square, example 0: by inputs"), "{message}");
}

#[test]
fn the_check_of_round_trips_accepts_only_equal_graphs() {
    for_every_kind(|kind| op_table::check_round_trip(kind, |graph| Ok(graph.clone())));
    for_every_kind(|kind| {
        let renamed = op_table::check_round_trip(kind, |graph| {
            let mut back = graph.clone();
            back.outputs[0].name.push('x');
            Ok(back)
        });
        let refused = op_table::check_round_trip(kind, |_| Err("line 1: what is this?".to_owned()));
        match (renamed, refused) {
            (Err(_), Err(said)) if said.ends_with("what is this?") => Ok(()),
            other => Err(format!("{kind:?}: {other:?}")),
        }
    });
}
