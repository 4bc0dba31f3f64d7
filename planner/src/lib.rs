//! Compiles a recorded graph into a short plan of large kernels.
//!
//! ```text
//! GraphData ─▶ rewrite ─▶ GraphData ─▶ cluster ▸ kernels ▸ schedule ▸ storage ▸ order ▸ lower ▸ differentiate ─▶ Plan
//! ```
//! Each stage is a folder whose head says what it needs and ensures; [`stages`] lists them. Planning is pure and deterministic:
//! equal graphs give equal plans, byte by byte. Planning a verified graph fails only if the request or a promise of the model does
//! not hold.

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
/// The second plan of a size allocates only its output: the memory blocks that the returned [`Plan`] owns, one for each of its
/// lists and names, of their exact size. That holds for every policy of [`schedule`], for graphs of every kind, and with the reverse
/// of [`Request::gradients`]. Exceptions are kernels of new signatures, and passes before planning. A plan that is no longer needed
/// may lend its memory to the next one: [`recycle`](Self::recycle).
pub struct Planner {
    policy: Box<dyn Schedule + Send + Sync>,
    policy_id: PolicyId,
    roots: Vec<ValueId>,
    memory: Memory,
}

/// A plan and the graph that it computes.
#[derive(Clone, Debug)]
pub struct Planned<'g> {
    /// The plan of [`Optimized::graph`]: its lanes are nodes of that graph, and a wanted value has the name of that graph. Outputs
    /// have the order of the request.
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
        Self { policy_id: PolicyId::of(&*policy), policy, roots: Vec::new(), memory: Memory::default() }
    }

    /// The policy with its options.
    #[must_use]
    pub fn policy(&self) -> PolicyId {
        self.policy_id
    }

    /// StopReason the policy stopped its last search.
    #[must_use]
    pub fn search_end(&self) -> &StopReason {
        &self.memory.schedule.why
    }

    /// Recycles a plan. The next plan reuses its vectors where their capacity fits (at most one eighth larger than needed). For
    /// large plans this avoids returning pages to the operating system and requesting them again.
    pub fn recycle(&mut self, plan: Plan) {
        self.memory.lower.buffers.recycle(plan);
    }

    /// Plans a verified graph as it stands.
    ///
    /// # Errors
    /// If the request wants no value, or a value that the plan cannot give.
    pub fn plan(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Plan, PlanError> {
        self.run(graph, request, &ExistingRows::default(), None, &mut |_| {})
    }

    /// Runs the pipeline. The plan continues an `earlier` one, if there is one, whose values are `existing`.
    fn run(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        existing: &ExistingRows,
        earlier: Option<&mut Plan>,
        watch: &mut dyn FnMut(Product<'_>),
    ) -> Result<Plan, PlanError> {
        let Self { policy, roots, memory, .. } = self;
        find_roots(graph, request, roots)?;
        let context = Context { graph, request, policy: &**policy, roots, existing };
        pipeline::plan(&context, memory, earlier, watch)
    }

    /// Plans a verified graph after these passes; after none if the request has gradients of values.
    ///
    /// The plan is checked in two steps: it computes the optimised graph, and a [`Prover`](passes::Prover) proves that the
    /// optimised graph computes the given one.
    ///
    /// # Errors
    /// As [`Planner::plan`]; and if a pass breaks the graph.
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
        readable.extend(losses.iter().map(|loss| loss.0));
        if let Some(&missing) = readable.iter().find(|value| value.index() >= graph.arena.values()) {
            return Err(PlanError::NoFloat(missing));
        }
        // A use of a value inside a cell would add nothing to the value's gradient outside.
        let selection = if values.is_empty() { selection } else { &Selection::none() };
        let optimized = passes::optimize(graph, &readable, request.mode, selection, &mut passes::all)
            .map_err(PlanError::Pass)?;
        let renamed = |value: ValueId| optimized.renaming.get(value).expect("passes preserve wanted values");
        let wanted: Vec<ValueId> = request.wanted.iter().map(|&value| renamed(value)).collect();
        let losses: Vec<_> = losses.iter().map(|&(value, factor)| (renamed(value), factor)).collect();
        let gradients = request.gradients.map(|gradients| Gradients { losses: &losses, ..gradients });
        let plan = self.plan(&optimized.graph, &Request { wanted: &wanted, gradients, ..*request })?;
        Ok(Planned { plan, optimized })
    }
}
