//! The scheduling stage: applies the policy of a planner to the jobs of a graph.

use super::batches::Batches;
use super::bound::path_sum_total;
use super::check::check;
use super::costs::StepCost;
use super::scratch::Scratch;
use super::type_names::type_names;
use crate::cluster::Clusters;
use crate::context::Context;
use crate::error::PlanError;
use crate::kernels::Kernels;
use crate::stage::{Product, Stage};
use autobatch_ir::graph::GraphData;
use std::fmt::{self, Write};

/// Scratch memory of [`schedule_jobs`].
#[derive(Default)]
pub(crate) struct Memory {
    scratch: Scratch,
    type_names: Vec<u64>,
}

/// Orders the jobs into batches by the policy. The batches always have a bound.
pub(crate) fn schedule_jobs(
    context: &Context<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    costs: &[StepCost],
    batches: &mut Batches,
) -> Result<(), PlanError> {
    let (policy, Memory { scratch, type_names }) = (context.policy, memory);
    type_names.clear();
    if policy.wants_names() {
        self::type_names(context.graph, clusters, type_names);
    }
    let problem =
        clusters.problem().with_costs(costs).with_names(type_names).with_executions(context.executions);
    scratch.recycle(std::mem::take(batches));
    *batches = policy.schedule(&problem, scratch);
    if policy.needs_check() {
        let failed = |error| PlanError::Schedule { policy: policy.name().to_owned(), error };
        check(&problem, batches).map_err(failed)?;
    }
    batches.bound = batches.bound.or_else(|| Some(path_sum_total(&problem, scratch)));
    Ok(())
}

impl Product for Batches {
    type After = Kernels;
    const STAGE: Stage = Stage {
        name: "schedule",
        turns: "jobs and costs -> batches",
        what: "Orders the jobs into batches by the chosen policy, and computes a lower bound of their number.",
    };

    fn print(&self, _: &GraphData, out: &mut String) -> fmt::Result {
        for (number, jobs) in self.iter().enumerate() {
            write!(out, "batch {number}:")?;
            jobs.iter().try_for_each(|&job| write!(out, " {job}"))?;
            out.push('\n');
        }
        match self.bound {
            Some(bound) => writeln!(out, "at least {bound}; {}", self.why),
            None => Ok(()),
        }
    }
}
