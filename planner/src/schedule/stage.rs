//! The scheduling stage: applies the policy of a planner to the jobs of a graph.

use super::{Batches, Problem, Scratch, StepCost, StopReason, check, path_sum_total, type_names};
use crate::PlanError;
use crate::cluster::Clusters;
use crate::pipeline::Context;

/// Scratch memory of [`schedule_jobs`].
pub(crate) struct Memory {
    scratch: Scratch,
    type_names: Vec<u64>,
    /// Why the last search stopped.
    pub(crate) why: StopReason,
}

impl Default for Memory {
    fn default() -> Self {
        Self { scratch: Scratch::default(), type_names: Vec::new(), why: StopReason::Rule }
    }
}

impl Memory {
    /// Takes back the memory of batches.
    pub(crate) fn recycle(&mut self, mut batches: Batches) {
        std::mem::swap(&mut self.why, &mut batches.why);
        self.scratch.recycle(batches);
    }
}

/// Orders the jobs into batches by the policy. The batches always have a bound.
pub(crate) fn schedule_jobs(
    context: &Context<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    costs: &[StepCost],
) -> Result<Batches, PlanError> {
    let (policy, Memory { scratch, type_names, .. }) = (context.policy, memory);
    type_names.clear();
    if policy.wants_names() {
        type_names::type_names(context.graph, clusters, type_names);
    }
    let problem =
        problem(clusters).with_costs(costs).with_names(type_names).with_executions(context.executions);
    let mut batches = policy.schedule(&problem, scratch);
    if policy.needs_check() {
        let failed = |error| PlanError::Schedule { policy: policy.name().to_owned(), error };
        check(&problem, &batches).map_err(failed)?;
    }
    batches.bound = batches.bound.or_else(|| Some(path_sum_total(&problem, scratch)));
    Ok(batches)
}

/// The jobs as a scheduling problem.
pub(crate) fn problem(clusters: &Clusters) -> Problem<'_> {
    let Clusters { types, ty, alone, operand_start, operands, lists, .. } = clusters;
    Problem::trusted(types.len() as u32, ty, alone, operand_start, (operands, lists))
}
