//! Rows that a step only moves, and why they are not written where they are wanted.
//!
//! Inside a cell, concatenations and slices are views. Between nodes they copy rows, and the reason
//! follows from the steps that read those rows.

use crate::facts::{for_each_place, for_each_row};
use crate::words::{count, table};
use autobatch_ir::plan::{Mode, Operand, Plan};
use serde::Serialize;
use std::collections::BTreeSet;

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
            Self::Training => "a plan for training: in parts, gradients would be summed in another order",
            Self::Output => "an output is one value, in one place",
            Self::List => "the elements of a list lie in one field, each in one row",
            Self::Readers => {
                "the concatenation or slice stands between two cells; inside a cell it is a view and copies nothing"
            }
        }
    }
}

/// The rows that a step only moves.
#[derive(Debug, Serialize)]
pub(super) struct Copies {
    step: usize,
    kernel: String,
    rows: u64,
    reason: &'static str,
}

impl Copies {
    /// Those of all steps that only move rows.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let moves = plan.steps.iter().enumerate().filter(|(_, step)| plan.kernel(step).only_moves());
        moves
            .map(|(number, step)| Self {
                step: number,
                kernel: plan.kernel(step).name.clone(),
                rows: u64::from(step.rows) * step.places.len() as u64,
                reason: reason(plan, number).words(),
            })
            .collect()
    }

    /// A line a step; nothing if there are none.
    pub(super) fn words(all: &[Self], plan: &Plan) -> String {
        if all.is_empty() {
            return String::new();
        }
        let mut rows = vec![["step", "copies", "rows", "reason"].map(str::to_owned).to_vec()];
        for Self { step, kernel, rows: copied, reason } in all {
            rows.push(vec![step.to_string(), kernel.clone(), count(*copied), (*reason).to_owned()]);
        }
        format!("copied: {} rows\n{}", count(plan.certificate.copied), table(&rows, &[1, 3]))
    }
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
