//! The planning half of a session. It is apart from the executor, so one thread can plan while another executes.

use crate::dump::{Dump, DumpName, PlannedGraph, losses};
use crate::error::{Error, Result};
use autobatch_ir::ValueId;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Examined, FieldId, Plan, Verified};
use autobatch_planner::passes::{self, Selection};
use autobatch_planner::schedule::{Policy, Schedule};
use autobatch_planner::{CacheStats, Grown, PlanCache, Planner, Request, RowOrder};
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the policy that the environment names, or the default if the variable is absent or empty.
pub(super) fn policy() -> Result<Policy> {
    match std::env::var_os("AUTOBATCH_POLICY") {
        Some(word) if !word.is_empty() => word.to_string_lossy().parse().map_err(Error::PolicyVariable),
        _ => Ok(Policy::default()),
    }
}

/// A planner and its plan cache.
pub(crate) struct Planning {
    planner: Planner,
    rows: RowOrder,
    passes: Option<Selection>,
    cache: PlanCache,
    dump: Dump,
}

/// The planning state of a graph that grows.
#[derive(Default)]
pub(super) struct Growth {
    grown: Option<Grown>,
    /// The verifier's knowledge of the last plan, which limits it to new steps.
    examined: Examined,
    /// The name of the dump files, if the session writes dumps.
    file: Option<DumpName>,
}

impl Growth {
    /// Returns the field and row of a value that the plan computes.
    pub(super) fn place(&self, value: ValueId) -> Option<(FieldId, u32)> {
        self.grown.as_ref()?.place(value)
    }
}

impl Planning {
    /// # Errors
    /// `AUTOBATCH_DUMP` has a limit that is no number.
    pub(super) fn new(
        planner: Planner,
        rows: RowOrder,
        passes: Option<Selection>,
        cached: usize,
    ) -> Result<Self> {
        Ok(Self { planner, rows, passes, cache: PlanCache::new(cached), dump: Dump::from_environment()? })
    }

    /// Uses another policy from now on.
    pub(super) fn set_policy(&mut self, policy: Box<dyn Schedule + Send + Sync>) {
        self.planner = Planner::new(policy);
        self.cache.clear();
    }

    pub(super) fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Returns whether passes rewrite every graph, also one with gradients.
    pub(crate) fn always_rewrites(&self) -> bool {
        self.passes.is_some()
    }

    /// Whether the environment asks for plans.
    pub(super) fn dumps(&self) -> bool {
        self.dump.is_on()
    }

    /// Returns the order of the rows.
    pub(crate) fn rows(&self) -> RowOrder {
        self.rows
    }

    /// Returns the plan of a graph from the cache, or makes it.
    pub(crate) fn plan(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Arc<Verified<Plan>>> {
        if let Some(plan) = self.cache.take_evicted() {
            self.planner.recycle(plan);
        }
        let (planner, dump, passes) = (&mut self.planner, &self.dump, &self.passes);
        let policy = planner.policy();
        self.cache.get_or_plan(graph, request, policy, passes.as_ref(), |executions| {
            planner.expect_executions(executions);
            let name = dump.graph(graph, request, None)?;
            let selection = match passes {
                Some(selection) => Some(selection),
                // Passes rewrite a graph with gradients only on request.
                None if request.gradients.is_some() => None,
                None => Some(&Selection::of_graph(graph, request.mode)),
            };
            let Some(selection) = selection else {
                let plan = planner.plan(graph, request)?;
                let losses = losses(request);
                let of = PlannedGraph { graph, wanted: request.wanted, losses: &losses, rewritten: false };
                dump.plan(name, &of, &plan)?;
                return Ok(plan.verify()?);
            };
            let planned = planner.optimize_and_plan(graph, request, selection)?;
            if name.is_some() {
                let renamed = |&value: &ValueId| planned.optimized.renaming.get(value);
                let wanted: Vec<ValueId> = request.wanted.iter().filter_map(renamed).collect();
                let losses: Vec<ValueId> = losses(request).iter().filter_map(renamed).collect();
                let rewritten = planned.optimized.graph.structure() != graph.structure();
                let graph = &planned.optimized.graph;
                let of = PlannedGraph { graph, wanted: &wanted, losses: &losses, rewritten };
                dump.plan(name, &of, &planned.plan)?;
            }
            Ok(planned.plan.verify()?)
        })
    }

    /// The graph of a plan that was made for this graph: the graph itself, or what passes make of it. `wanted` are the
    /// values of the request. Plans from the cache have no graph, but passes are deterministic.
    pub(super) fn planned_graph<'g>(
        &self,
        graph: &'g GraphData,
        plan: &Plan,
        wanted: &[ValueId],
    ) -> Option<Cow<'g, GraphData>> {
        if plan.structure == graph.structure() {
            return Some(Cow::Borrowed(graph));
        }
        let of_graph = Selection::of_graph(graph, plan.mode);
        let selection = self.passes.as_ref().unwrap_or(&of_graph);
        let optimized = passes::optimize(graph, wanted, plan.mode, selection, &mut passes::all).ok()?;
        (optimized.graph.structure() == plan.structure).then_some(optimized.graph)
    }

    /// Plans a graph that grows: extends the `executed` plan by the steps of new values. Without an executed
    /// plan it starts from an empty one, because a failed plan holds steps that cannot run.
    pub(super) fn grow(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        growth: &mut Growth,
        executed: Option<Arc<Verified<Plan>>>,
    ) -> Result<Verified<Plan>> {
        self.planner.expect_executions(1);
        let name = growth.file.unwrap_or_else(|| DumpName::next("grow"));
        growth.file = self.dump.graph(graph, request, Some(name))?;
        let Growth { grown: known, examined, file } = growth;
        let (grown, executed) = match (known.take(), executed) {
            (Some(mut grown), Some(plan)) => {
                self.planner.grow(graph, request, &mut grown)?;
                (known.insert(grown), Some(Arc::unwrap_or_clone(plan)))
            }
            _ => (known.insert(self.planner.begin(graph, request)?), None),
        };
        let plan = grown.plan();
        let of = PlannedGraph { graph, wanted: request.wanted, losses: &[], rewritten: false };
        self.dump.plan(*file, &of, plan)?;
        Ok(match executed {
            Some(executed) => executed.grow(plan, examined)?,
            None => plan.clone().verify_to_grow(examined)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use std::process::Command;
    use std::sync::Arc;

    /// The variable that marks the child process of the next test.
    const CHILD: &str = "AUTOBATCH_TEST_CHILD_POLICY";

    fn opens(policy: Option<Policy>) -> bool {
        let module = ModuleBuilder::new("m").build().expect("an empty module");
        let weights = Arc::new(Weights::init(&module, 0));
        let options = SessionOptions { policy, ..SessionOptions::default() };
        Session::with_options(&module, weights, options).is_ok()
    }

    #[test]
    fn the_child_reads_the_variable_without_a_policy() {
        if std::env::var_os(CHILD).is_some() {
            assert!(opens(Some(Policy::Auto)) && opens(Some(Policy::Depth)), "a given policy stays");
            assert!(!opens(None), "the variable names no policy");
        }
    }

    #[test]
    fn a_given_policy_is_not_replaced_by_the_environment() {
        let child = Command::new(std::env::current_exe().expect("the test has a path"))
            .args(["the_child_reads_the_variable_without_a_policy"])
            .envs([(CHILD, "1"), ("AUTOBATCH_POLICY", "nonsense")])
            .output()
            .expect("the test runs");
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    }
}
