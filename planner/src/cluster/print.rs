//! The text form of clusters.

use super::Clusters;
use crate::ids::{JobId, TypeIndex};
use crate::stages::callee;
use autobatch_ir::graph::GraphData;
use std::fmt::{self, Write};

impl Clusters {
    /// Types, then jobs with what they read, then sources.
    pub(crate) fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (&sig, ty) in self.types.iter().zip(0..) {
            writeln!(out, "{} {}", TypeIndex(ty), callee(graph, sig))?;
        }
        for (&node, job) in self.jobs.iter().zip((0..).map(JobId)) {
            write!(out, "{job} {node} {}", self.type_of(job))?;
            for (index, operand) in self.operands(job).enumerate() {
                write!(out, "{}{operand}", if index == 0 { " reads " } else { ", " })?;
            }
            out.push_str(if self.alone.contains(&job.0) { " alone\n" } else { "\n" });
        }
        for (sig, nodes) in self.sources() {
            write!(out, "source {}:", callee(graph, sig))?;
            nodes.iter().try_for_each(|node| write!(out, " {node}"))?;
            out.push('\n');
        }
        Ok(())
    }
}
