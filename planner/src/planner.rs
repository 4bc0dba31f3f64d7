//! The planner: plans graphs, with or without passes before.

use crate::context::Context;
use crate::error::PlanError;
use crate::existing::ExistingRows;
use crate::pipeline::{self, Memory};
use crate::plan_buffers::PlanBuffers;
use crate::plan_cache::PolicyId;
use crate::request::{Gradients, Request, find_roots};
use crate::rewrite::passes::{self, Optimized, Selection};
use crate::schedule::{Auto, Schedule, StopReason};
use crate::stage::{StageDump, Watch};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Plan;
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
    plans: PlanBuffers,
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
        Self {
            policy_id: PolicyId::of(&*policy),
            policy,
            executions: 1.0,
            roots: Vec::new(),
            memory: Memory::default(),
            plans: PlanBuffers::default(),
        }
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
        &self.memory.batches.why
    }

    /// Takes the vectors of a plan that is no longer needed. The next plan reuses a vector if it is long enough and at
    /// most one eighth longer than needed. For large plans this avoids returning pages to the operating system and
    /// requesting them again.
    pub fn recycle(&mut self, plan: Plan) {
        self.plans.recycle(plan);
    }

    /// Plans a verified graph as it stands.
    ///
    /// # Errors
    /// The variants of [`PlanError`] list the reasons: an impossible request, a broken promise of the model, an invalid
    /// schedule of a policy, or more rows than a plan can number.
    pub fn plan(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Plan, PlanError> {
        self.run(graph, request, None)
    }

    /// Plans a verified graph as it stands, and prints the product of each stage.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn trace(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Vec<StageDump>, PlanError> {
        let mut dumps = Vec::new();
        self.run(graph, request, Some(&mut dumps))?;
        Ok(dumps)
    }

    fn run(&mut self, graph: &GraphData, request: &Request<'_>, watch: Watch<'_>) -> Result<Plan, PlanError> {
        let mut plan = self.plans.lend();
        self.write(graph, request, &ExistingRows::default(), &mut plan, watch)?;
        Ok(self.plans.settle(plan))
    }

    /// Writes a plan. A plan that grows has the steps of the graph before; `existing` has the rows that they compute.
    pub(crate) fn write(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        existing: &ExistingRows,
        plan: &mut Plan,
        watch: Watch<'_>,
    ) -> Result<(), PlanError> {
        let Self { policy, executions, roots, memory, .. } = self;
        find_roots(graph, request, roots)?;
        let context = Context { graph, request, policy: &**policy, executions: *executions, roots, existing };
        pipeline::write(&context, memory, plan, watch)
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
        find_roots(graph, request, &mut self.roots)?;
        let readable = self.roots.clone();
        let (losses, values) =
            request.gradients.map_or((&[][..], &[][..]), |gradients| (gradients.losses, gradients.values));
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
