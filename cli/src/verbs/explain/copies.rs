//! Rows that a step only moves, and why they are not written where they are wanted.
//!
//! Between applications the pass `pieces` makes names of moves. What is left is what it refuses, so the
//! reason is looked for in who reads the rows.

use crate::facts::{for_each_place, for_each_row};
use crate::words::{count, table};
use autobatch_ir::plan::{Mode, Operand, Plan};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Why rows are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Training,
    Output,
    List,
    Readers,
}

impl Reason {
    const fn words(self) -> &'static str {
        match self {
            Self::Training => "a plan for training: in pieces, gradients would be summed in another order",
            Self::Output => "an output is one value, in one place",
            Self::List => "the elements of a list lie in one field, each in one row",
            Self::Readers => {
                "its readers would put it together again; or pass pieces did not run (plan --print-after=pieces)"
            }
        }
    }
}

/// The rows that steps only move, a line a step; nothing if there are none.
pub(super) fn report(plan: &Plan) -> String {
    let mut rows = vec![["step", "copies", "rows", "reason"].map(str::to_owned).to_vec()];
    for (number, step) in plan.steps.iter().enumerate() {
        let kernel = plan.kernel(step);
        if !kernel.only_moves() {
            continue;
        }
        let copied = u64::from(step.rows) * step.places.len() as u64;
        let reason = reason(plan, number).words().to_owned();
        rows.push(vec![number.to_string(), kernel.name.clone(), count(copied), reason]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    let mut text = String::new();
    let _ = writeln!(text, "copied: {} rows", count(plan.certificate.copied));
    text + &table(&rows, &[1, 3])
}

fn reason(plan: &Plan, number: usize) -> Reason {
    let step = &plan.steps[number];
    let mut written = BTreeSet::new();
    for &place in plan.places(step) {
        for_each_place(plan, step, place, |_, row| {
            written.insert((place.field(), row));
        });
    }
    let mut readers = plan.steps[number + 1..].iter().flat_map(|reader| {
        let lists =
            plan.operands(reader).iter().filter(|operand| matches!(operand, Operand::Segments { .. }));
        lists.map(move |&operand| (reader, operand))
    });
    let reads = |(reader, operand)| {
        let mut rows = Vec::new();
        let field = for_each_row(plan, reader, operand, |_, row| rows.push(row));
        field.is_some_and(|field| rows.iter().any(|&row| written.contains(&(field, row))))
    };
    match plan.mode {
        Mode::Train => Reason::Training,
        _ if plan.outputs.iter().any(|output| written.contains(&(output.field, output.row))) => {
            Reason::Output
        }
        _ if readers.any(reads) => Reason::List,
        _ => Reason::Readers,
    }
}
