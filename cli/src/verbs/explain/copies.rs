//! Rows that a step only copies, each with its reason.
//!
//! Inside a cell, concatenations and slices are views. Between nodes they copy rows, and the reason
//! follows from the steps that read those rows.

use autobatch_inspector::steps::for_each_written_row;
use autobatch_inspector::text::{count, table};
use autobatch_ir::plan::{Plan, Step, StepOperand};
use serde::Serialize;
use std::collections::BTreeSet;

/// Why a step copies rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Output,
    List,
    BetweenCells,
}

impl Reason {
    const fn text(self) -> &'static str {
        match self {
            Self::Output => "an output must be one contiguous value",
            Self::List => "the elements of a list must be rows of one field",
            Self::BetweenCells => {
                "the concatenation or slice is between two cells; inside a cell it is a view without a copy"
            }
        }
    }
}

/// The rows that a step only copies.
#[derive(Debug, Serialize)]
pub(super) struct Copies {
    step: usize,
    kernel: String,
    rows: u64,
    reason: &'static str,
}

impl Copies {
    /// The copies of all steps that only copy rows.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let copying = plan.steps.iter().enumerate().filter(|(_, step)| plan.kernel(step).only_moves());
        copying
            .map(|(number, step)| Self {
                step: number,
                kernel: plan.kernel(step).name.clone(),
                rows: u64::from(step.rows) * step.places.len() as u64,
                reason: reason(plan, number).text(),
            })
            .collect()
    }

    /// A table with a line per step; empty if there are no copies.
    pub(super) fn text(all: &[Self], plan: &Plan) -> String {
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
        for_each_written_row(plan, step, place, |_, row| {
            written.insert((place.field(), row));
        });
    }
    let mut readers = plan.steps[number + 1..].iter().flat_map(|reader| {
        let lists = plan.operands(reader).iter().filter(|operand| operand.is_list());
        lists.map(move |&operand| (reader, operand))
    });
    let reads = |(reader, operand): (&Step, StepOperand)| {
        let mut rows = Vec::new();
        let field = operand.for_each_row(plan, reader.rows, |row| rows.push(row));
        field.is_some_and(|field| rows.iter().any(|&row| written.contains(&(field, row))))
    };
    if plan.outputs.iter().any(|output| written.contains(&(output.field, output.row))) {
        Reason::Output
    } else if readers.any(reads) {
        Reason::List
    } else {
        Reason::BetweenCells
    }
}
