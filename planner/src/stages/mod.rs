//! The stages of planning: one ordered table, and the products of each stage as text.
//!
//! A stage's name is the name of its folder, whose head says what it needs and ensures. [`trace`] runs the pipeline and prints every
//! product; a test holds the order of the table against it.

mod print;
#[cfg(test)]
mod tests;

use crate::cluster::Clusters;
use crate::grow::ExistingRows;
use crate::kernels::Kernels;
use crate::order::Rows;
use crate::schedule::{Batches, Schedule};
use crate::storage::Storage;
use crate::{PlanError, Planner, Request};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Plan;
use print::Print;
use std::fmt;

/// A stage of planning. No decision of a stage changes bits of values or gradients.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Its name, which is that of its folder.
    pub name: &'static str,
    /// Its input and its product.
    pub turns: &'static str,
    /// Its task in one sentence.
    pub what: &'static str,
    /// Prints the product; an error if the product is that of another stage.
    print: fn(Product<'_>, &GraphData, &mut String) -> fmt::Result,
}

/// The printer of a stage.
macro_rules! printer {
    ($stage:ident) => {
        |product, graph, out| match product {
            Product::$stage(made) => made.print(graph, out),
            _ => Err(fmt::Error),
        }
    };
}

/// Every stage, in the order in which [`Planner::plan`] runs them.
pub const STAGES: [Stage; 7] = [
    Stage {
        name: "cluster",
        turns: "graph -> jobs",
        what: "Selects the nodes that wanted values need, and numbers the types of jobs that may share a batch.",
        print: printer!(Clusters),
    },
    Stage {
        name: "kernels",
        turns: "signatures -> kernels and costs",
        what: "Inlines each cell into one straight program over a row, with views for copies and fused elementwise lines.",
        print: printer!(Kernels),
    },
    Stage {
        name: "schedule",
        turns: "jobs and costs -> batches",
        what: "Orders the jobs into batches by the chosen policy, and computes a lower bound of their number.",
        print: printer!(Batches),
    },
    Stage {
        name: "storage",
        turns: "signatures -> fields",
        what: "Gives results that arrive at one operand one field, and results that always come together one slab.",
        print: printer!(Storage),
    },
    Stage {
        name: "order",
        turns: "batches and fields -> waves and rows",
        what: "Sorts batches into waves, orders lanes as their consumers read, and reuses rows after their last reader.",
        print: printer!(Rows),
    },
    Stage {
        name: "lower",
        turns: "rows and kernels -> plan",
        what: "Writes steps. Operands are direct ranges of rows where possible and gathered through tables otherwise.",
        print: printer!(Plan),
    },
    Stage {
        name: "differentiate",
        turns: "plan -> plan with its reverse",
        what: "Appends steps in reverse and the reductions of parameter gradients, if the request has gradients.",
        print: printer!(Reverse),
    },
];

/// The product of a stage.
#[derive(Clone, Copy)]
pub(crate) enum Product<'a> {
    Clusters(&'a Clusters),
    Kernels(&'a Kernels),
    Batches(&'a Batches),
    Storage(&'a Storage),
    Rows(&'a Rows),
    Plan(&'a Plan),
    Reverse(Reverse<'a>),
}

/// A plan with its reverse.
#[derive(Clone, Copy)]
pub(crate) struct Reverse<'a>(pub(crate) &'a Plan);

/// The product of a stage as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageDump {
    /// The name of the stage.
    pub name: &'static str,
    /// The product as text.
    pub text: String,
}

/// Plans a verified graph and prints the product of each stage.
///
/// # Errors
/// As [`Planner::plan`].
pub fn trace(
    graph: &GraphData,
    request: &Request<'_>,
    policy: Box<dyn Schedule + Send + Sync>,
) -> Result<Vec<StageDump>, PlanError> {
    let mut dumps = Vec::with_capacity(STAGES.len());
    Planner::new(policy).run(graph, request, &ExistingRows::default(), None, &mut |product| {
        let Stage { name, print, .. } = STAGES[dumps.len()];
        let mut text = String::new();
        print(product, graph, &mut text).expect("the pipeline follows the table of stages");
        dumps.push(StageDump { name, text });
    })?;
    Ok(dumps)
}
