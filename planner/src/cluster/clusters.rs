//! The product of clustering.

use super::arrivals::Arrivals;
use crate::ids::{JobId, TypeIndex};
use crate::index_vec::IndexVec;
use crate::lists::Groups;
use crate::schedule::{JobOperand, OperandLists, Problem};
use crate::stage::{Product, Stage, Start, print_list};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use std::fmt::{self, Write};

/// The jobs of a graph, their types and their operands.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// The node of each job, ascending.
    pub(crate) jobs: Vec<NodeId>,
    /// The type of each job.
    pub(crate) ty: Vec<TypeIndex>,
    /// The start of each job's operands in `operands`; the last entry is the end.
    pub(crate) operand_start: Vec<u32>,
    /// The jobs that each job reads, and the lists of jobs that it names.
    pub(crate) operands: Vec<JobOperand>,
    pub(crate) lists: OperandLists,
    /// Jobs marked `.alone()`, each a batch of one job; ascending.
    pub(crate) alone: Vec<JobId>,
    /// The signature of each type.
    pub(crate) types: IndexVec<TypeIndex, SigId>,
    /// The needed sources of each signature.
    pub(crate) sources: Groups<NodeId>,
    /// The signatures of jobs and sources, ascending.
    pub(crate) signatures: Vec<SigId>,
    /// Values of the earlier plan that new jobs read, besides the items of lists; a value appears once per read.
    pub(crate) reused: Vec<ValueId>,
    /// The results that arrive at each operand port.
    pub(crate) arrivals: Arrivals,
}

impl Clusters {
    /// The jobs as a scheduling problem.
    pub(crate) fn problem(&self) -> Problem<'_> {
        let Self { types, ty, alone, operand_start, operands, lists, .. } = self;
        Problem::trusted(types.len() as u32, ty, alone, operand_start, operands, lists)
    }
}

/// Prints types, then jobs with what they read, then sources.
impl Product for Clusters {
    type After = Start;
    const STAGE: Stage = Stage {
        name: "cluster",
        turns: "graph -> jobs",
        what: "Selects the nodes that wanted values need, and numbers the types of jobs that may share a batch.",
    };

    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (ty, &sig) in self.types.entries() {
            writeln!(out, "{ty} {}", graph.callee_name(sig))?;
        }
        let problem = self.problem();
        for (job, node) in problem.jobs().zip(&self.jobs) {
            write!(out, "{job} {node} {}", problem.ty_of(job))?;
            print_list(out, " reads ", problem.operands(job))?;
            out.push_str(if self.alone.contains(&job) { " alone\n" } else { "\n" });
        }
        for (sig, nodes) in self.sources.iter() {
            write!(out, "source {}:", graph.callee_name(SigId::new(sig)))?;
            nodes.iter().try_for_each(|node| write!(out, " {node}"))?;
            out.push('\n');
        }
        Ok(())
    }
}
