//! The product of the stage: the kernels of a graph's signatures.

use crate::cluster::Clusters;
use crate::ids::TypeIndex;
use crate::schedule::StepCost;
use crate::stage::{Product, Stage};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Kernel;
use std::fmt::{self, Write};
use std::sync::Arc;

/// The kernels of a graph's signatures.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    /// Per signature its kernel, if nodes of it take a step.
    pub(crate) of_sig: Vec<Option<Arc<Kernel>>>,
    /// The cost of each type of jobs; empty if the policy has no cost table.
    pub(crate) costs: Vec<StepCost>,
}

/// Prints the kernels of signatures, then the cost of each type of jobs.
impl Product for Kernels {
    type After = Clusters;
    const STAGE: Stage = Stage {
        name: "kernels",
        turns: "signatures -> kernels and costs",
        what: "Inlines each cell into one straight program over a row, with views for copies and fused elementwise lines.",
    };

    fn print(&self, _: &GraphData, out: &mut String) -> fmt::Result {
        for (number, kernel) in self.of_sig.iter().flatten().enumerate() {
            out.push_str(&kernel.to_text(number));
        }
        for (cost, ty) in self.costs.iter().zip((0..).map(TypeIndex)) {
            writeln!(out, "{ty} costs {:.0} ns a step and {:.0} ns a row", cost.fixed, cost.row)?;
        }
        Ok(())
    }
}
