//! How a session plans: apart from its executor, so that one thread may plan while another executes.

use crate::dump::{Dump, Number};
use crate::error::{Error, Result};
use autobatch_ir::ValueId;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Examined, Plan, Verified};
use autobatch_planner::passes::Selection;
use autobatch_planner::schedule::{Policy, Schedule};
use autobatch_planner::{CacheStats, Grown, PlanCache, Planner, Request, RowOrder};
use std::sync::Arc;

/// The policy that the environment names; the default without it, or if it is empty.
pub(super) fn policy() -> Result<Policy> {
    match std::env::var_os("AUTOBATCH_POLICY") {
        Some(word) if !word.is_empty() => word.to_string_lossy().parse().map_err(Error::PolicyVariable),
        _ => Ok(Policy::default()),
    }
}

/// A planner with the plans that it remembers.
pub(crate) struct Planning {
    planner: Planner,
    rows: RowOrder,
    passes: Option<Selection>,
    cache: PlanCache,
    dump: Dump,
}

/// How the planning of a graph that grows goes on.
#[derive(Default)]
pub(super) struct Growth {
    grown: Option<Grown>,
    /// What was found out about the plan that was verified last.
    examined: Examined,
    /// The number of the files that it is written to, if it is.
    file: Option<Number>,
}

impl Planning {
    pub(super) fn new(planner: Planner, rows: RowOrder, passes: Option<Selection>, cached: usize) -> Self {
        Self { planner, rows, passes, cache: PlanCache::new(cached), dump: Dump::from_environment() }
    }

    /// Chooses batches by another policy from now on.
    pub(super) fn follow(&mut self, policy: Box<dyn Schedule + Send + Sync>) {
        self.planner = Planner::new(policy);
        self.cache.clear();
    }

    pub(super) fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// How rows are ordered.
    pub(crate) fn rows(&self) -> RowOrder {
        self.rows
    }

    /// The plan of a graph: a known one, or one made now.
    pub(crate) fn plan(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Arc<Verified<Plan>>> {
        if let Some(plan) = self.cache.take_evicted() {
            self.planner.recycle(plan);
        }
        let (planner, dump, passes) = (&mut self.planner, &self.dump, &self.passes);
        let policy = planner.policy();
        self.cache.get_or_plan(graph, request, policy, passes.as_ref(), || {
            let number = dump.graph(graph, request, None)?;
            let selection = match passes {
                Some(selection) => Some(selection),
                // Graphs whose gradients are wanted are rewritten on request alone.
                None if request.gradients.is_some() => None,
                None => Some(&Selection::of_graph(graph, request.mode)),
            };
            let Some(selection) = selection else {
                let plan = planner.plan(graph, request)?;
                dump.plan(number, (graph, request.wanted), &plan)?;
                return Ok(plan.verify()?);
            };
            let planned = planner.optimize_and_plan(graph, request, selection)?;
            if number.is_some() {
                let renamed = |&value: &ValueId| planned.optimized.renaming.get(value);
                let wanted: Vec<ValueId> = request.wanted.iter().filter_map(renamed).collect();
                dump.plan(number, (&planned.optimized.graph, &wanted), &planned.plan)?;
            }
            Ok(planned.plan.verify()?)
        })
    }

    /// The plan of a graph that grows: what was `executed`, and the steps of what is wanted and was not there. Without
    /// the former it begins anew: a longer plan would hold the steps that could not be executed, too.
    pub(super) fn grow(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        growth: &mut Growth,
        executed: Option<Arc<Verified<Plan>>>,
    ) -> Result<Verified<Plan>> {
        growth.file = self.dump.graph(graph, request, growth.file)?;
        let Growth { grown: known, examined, file } = growth;
        let (grown, executed) = match (known.take(), executed) {
            (Some(mut grown), Some(plan)) => {
                self.planner.grow(graph, request, &mut grown)?;
                (known.insert(grown), Some(Arc::unwrap_or_clone(plan)))
            }
            _ => (known.insert(self.planner.begin(graph, request)?), None),
        };
        let plan = grown.plan();
        self.dump.plan(*file, (graph, request.wanted), plan)?;
        Ok(match executed {
            Some(executed) => executed.grow(plan, examined)?,
            None => plan.clone().verify_to_grow(examined)?,
        })
    }
}
