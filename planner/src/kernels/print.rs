//! The text form of kernels.

use super::Kernels;
use crate::stages::callee;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use std::fmt::{self, Write};

impl Kernels {
    /// The kernel of each signature, then the cost of each type of jobs.
    pub(crate) fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (number, kernel) in self.of_sig.iter().enumerate() {
            let Some(kernel) = kernel else { continue };
            let stages = kernel.stages.len();
            writeln!(out, "{} = kernel {} of {stages} stages", callee(graph, SigId::new(number)), kernel.name)?;
        }
        for (cost, ty) in self.costs.iter().zip((0..).map(crate::ids::TypeIndex)) {
            writeln!(out, "{ty} costs {:.0} ns a step and {:.0} ns a row", cost.fixed, cost.row)?;
        }
        Ok(())
    }
}
