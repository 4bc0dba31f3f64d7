//! The text form of kernels.

use super::Kernels;
use crate::ids::TypeIndex;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Plan;
use std::fmt::{self, Write};

impl Kernels {
    /// The kernels of signatures, then the cost of each type of jobs.
    pub(crate) fn print(&self, _: &GraphData, out: &mut String) -> fmt::Result {
        let plan = Plan { kernels: self.of_sig.iter().flatten().cloned().collect(), ..Plan::default() };
        for kernel in plan.to_text().split("\n\n").filter(|block| block.starts_with("kernel ")) {
            writeln!(out, "{}", kernel.trim_end())?;
        }
        for (cost, ty) in self.costs.iter().zip((0..).map(TypeIndex)) {
            writeln!(out, "{ty} costs {:.0} ns a step and {:.0} ns a row", cost.fixed, cost.row)?;
        }
        Ok(())
    }
}
