//! Compiles a recorded graph into a short plan of large kernels.
//!
//! ```text
//! GraphData ─▶ rewrite ─▶ GraphData ─▶ cluster ▸ kernels ▸ schedule ▸ storage ▸ order ▸ lower ▸ differentiate ─▶ Plan
//! ```
//! [`Planner::plan`] runs the stages from `cluster` on. [`Planner::optimize_and_plan`] first runs the graph passes of
//! `rewrite`, which [`passes`] lists. Each stage is a folder whose module documentation states the contract of the
//! stage; [`stages`] lists the stages. Planning is pure and deterministic: equal graphs, requests and policies give
//! equal plans, byte by byte. Planning a verified graph fails only for the reasons that [`PlanError`] lists.

mod certificate;
mod cluster;
mod differentiate;
mod error;
mod grow;
mod ids;
mod jobs;
mod kernels;
mod layout;
mod lists;
mod lower;
mod order;
pub mod passes;
mod pipeline;
mod plan_cache;
mod request;
mod rewrite;
pub mod schedule;
mod shared;
pub mod stages;
mod steps;
mod storage;
mod update;

pub use differentiate::Gradients;
pub use error::PlanError;
pub use grow::{Delta, Grown};
pub use ids::{JobId, RowId, TypeIndex, WaveId};
pub use jobs::Jobs;
pub use kernels::{ClassWork, CompileOptions, Work};
pub use order::RowOrder;
pub use passes::{Optimized, Selection};
pub use plan_cache::{CacheStats, PlanCache, PolicyId};
pub use request::Request;
pub use schedule::{Class, ClassCost, ClassCosts, CostError, CostTable, StepCost};
pub use update::update_plan;

use kernels::compile;

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Plan;
use grow::ExistingRows;
use pipeline::{Context, Memory};
use request::{check_wanted, find_roots};
use schedule::{Auto, Schedule, StopReason};
use stages::Product;
use std::fmt;

/// Plans graphs. Owns scratch memory and the kernels compiled so far.
///
/// The first plan sizes the scratch memory. Later plans of graphs of at most that size allocate only the returned
/// [`Plan`]: one allocation of the exact size per list and name. Kernels of new signatures and passes allocate more.
/// [`recycle`](Self::recycle) reuses the memory of a plan that is no longer needed.
pub struct Planner {
    policy: Box<dyn Schedule + Send + Sync>,
    policy_id: PolicyId,
    executions: f64,
    roots: Vec<ValueId>,
    memory: Memory,
}

/// A plan and the graph that it computes.
#[derive(Clone, Debug)]
pub struct Planned<'g> {
    /// The plan of [`Optimized::graph`]. Its lanes and values have the ids of that graph. [`Optimized::renaming`] maps
    /// the values of the given graph to them. The outputs of the plan are the outputs of the graph, then the wanted
    /// values in the order of the request.
    pub plan: Plan,
    /// The graph after passes, with the renaming of values.
    pub optimized: Optimized<'g>,
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}

impl Default for Planner {
    fn default() -> Self {
        Self::new(Box::new(Auto::default()))
    }
}

impl Planner {
    /// A planner with a policy.
    #[must_use]
    pub fn new(policy: Box<dyn Schedule + Send + Sync>) -> Self {
        let (policy_id, memory) = (PolicyId::of(&*policy), Memory::default());
        Self { policy_id, policy, executions: 1.0, roots: Vec::new(), memory }
    }

    /// The policy with its options.
    #[must_use]
    pub fn policy(&self) -> PolicyId {
        self.policy_id
    }

    /// Sets how often the following plans are expected to be executed; 1 by default. Policy `auto` then searches as long as
    /// the search pays.
    pub fn expect_executions(&mut self, executions: u64) {
        self.executions = executions as f64;
    }

    /// Returns the reason why the last search of the policy stopped.
    #[must_use]
    pub fn search_end(&self) -> &StopReason {
        &self.memory.schedule.why
    }

    /// Takes the vectors of a plan that is no longer needed. The next plan reuses a vector if it is long enough and at
    /// most one eighth longer than needed. For large plans this avoids returning pages to the operating system and
    /// requesting them again.
    pub fn recycle(&mut self, plan: Plan) {
        self.memory.lower.buffers.recycle(plan);
    }

    /// Plans a verified graph as it stands.
    ///
    /// # Errors
    /// The variants of [`PlanError`] list the reasons: an impossible request, a broken promise of the model, an invalid
    /// schedule of a policy, or more rows than a plan can number.
    pub fn plan(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Plan, PlanError> {
        self.run(graph, request, &ExistingRows::default(), None, &mut |_| {})
    }

    /// Runs the pipeline. If `earlier` is given, the new plan extends it, and `existing` has the rows of the values
    /// that `earlier` computes.
    fn run(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        existing: &ExistingRows,
        earlier: Option<&mut Plan>,
        watch: &mut dyn FnMut(Product<'_>),
    ) -> Result<Plan, PlanError> {
        let Self { policy, executions, roots, memory, .. } = self;
        find_roots(graph, request, roots)?;
        let context = Context { graph, request, policy: &**policy, executions: *executions, roots, existing };
        pipeline::plan(&context, memory, earlier, watch)
    }

    /// Runs the selected passes on a verified graph and plans the result. No pass runs if the request asks for
    /// gradients of values.
    ///
    /// Two proofs check the result. [`Verify::Prove`](passes::Verify::Prove) proves, during the passes, that the
    /// optimised graph computes the given one. The oracle proves the plan against the graph of [`Planned::optimized`].
    ///
    /// # Errors
    /// The errors of [`Planner::plan`], and [`PlanError::Pass`] if the selected check finds that a pass broke the
    /// graph.
    pub fn optimize_and_plan<'g>(
        &mut self,
        graph: &'g GraphData,
        request: &Request<'_>,
        selection: &Selection,
    ) -> Result<Planned<'g>, PlanError> {
        check_wanted(graph, request, &mut self.roots)?;
        let (losses, values) =
            request.gradients.map_or((&[][..], &[][..]), |gradients| (gradients.losses, gradients.values));
        let mut readable = request.wanted.to_vec();
        readable.extend(losses.iter().map(|loss| loss.0).chain(request.arriving.iter().copied()));
        if let Some(&missing) = readable.iter().find(|value| value.index() >= graph.arena.values()) {
            return Err(PlanError::NoFloat(missing));
        }
        // A pass may move a use of a value into a new cell, and a node into another shard. The requested gradient would then lack
        // its contribution.
        let keeps_nodes = values.is_empty() && request.shards.is_empty();
        let selection = if keeps_nodes { selection } else { &Selection::none() };
        let optimized = passes::optimize(graph, &readable, request.mode, selection, &mut passes::all)
            .map_err(PlanError::Pass)?;
        let renamed = |value: ValueId| optimized.renaming.get(value).expect("passes preserve wanted values");
        let wanted: Vec<ValueId> = request.wanted.iter().map(|&value| renamed(value)).collect();
        let losses: Vec<_> = losses.iter().map(|&(value, factor)| (renamed(value), factor)).collect();
        let gradients = request.gradients.map(|gradients| Gradients { losses: &losses, ..gradients });
        let arriving: Vec<ValueId> = request.arriving.iter().map(|&value| renamed(value)).collect();
        let request = Request { wanted: &wanted, gradients, arriving: &arriving, ..*request };
        let plan = self.plan(&optimized.graph, &request)?;
        Ok(Planned { plan, optimized })
    }
}
