//! Planning of graphs for all verbs, with the figures that reports show.

use crate::failure::Failure;
use autobatch_inspector::losses;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_planner::schedule::{Batches, Policy, Schedule, Scratch};
use autobatch_planner::{Gradients, Jobs, Planner, Request, RowOrder};
use std::time::{Duration, Instant};

/// Options of planning.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The batching policy.
    pub policy: Policy,
    /// The order of rows.
    pub rows: RowOrder,
    /// Whether the plan is for inference or for training. In training, dropout draws noise, and the plan of a graph with losses
    /// has their gradients.
    pub mode: Mode,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { policy: Policy::default(), rows: RowOrder::default(), mode: Mode::Infer }
    }
}

impl PlanOptions {
    /// Whether dropout draws noise.
    #[must_use]
    pub fn training(&self) -> bool {
        self.mode == Mode::Train
    }
}

/// A plan with figures about its making.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Verified<Plan>,
    /// The time of planning. The first planning warms up the planner; this is the second.
    pub took: Duration,
    /// The batches that the policy chose, with its reason.
    pub batches: Batches,
    /// Bytes of all slabs without reuse of rows.
    pub without_reuse: u64,
}

/// Loads a policy with its table or costs.
pub fn policy(policy: &Policy) -> Result<Box<dyn Schedule + Send + Sync>, Failure> {
    Ok(autobatch_inspector::load_policy(policy)?)
}

/// Plans a graph.
pub fn plan(path: &str, graph: &GraphData, options: &PlanOptions) -> Result<Planned, Failure> {
    let mut planner = Planner::new(policy(&options.policy)?);
    let losses = losses(graph, options.mode);
    let gradients = Gradients { losses: &losses, params: None, values: &[] };
    let in_file = |error| Failure::input(format!("{path}: {error}"));
    let request = Request {
        mode: options.mode,
        training: options.training(),
        rows: options.rows,
        gradients: (!losses.is_empty()).then_some(gradients),
        ..Request::default()
    };
    planner.plan(graph, &request).map_err(in_file)?;
    let start = Instant::now();
    let plan = planner.plan(graph, &request).map_err(in_file)?;
    let took = start.elapsed();
    let without_reuse = Request { mode: Mode::Train, ..request };
    let without_reuse = match options.mode {
        Mode::Infer => planner.plan(graph, &without_reuse).map_err(in_file)?.certificate.slab_bytes,
        Mode::Train | Mode::Grow => plan.certificate.slab_bytes,
    };
    let broken = |errors| Failure::input(format!("{path}: the planner made an invalid plan: {errors}"));
    let plan = plan.verify().map_err(broken)?;
    let batches = schedule(graph, &options.policy)?;
    Ok(Planned { plan, took, batches, without_reuse })
}

/// The batches that a policy chooses for the nodes of a graph.
pub fn schedule(graph: &GraphData, policy: &Policy) -> Result<Batches, Failure> {
    let (policy, mut jobs) = (self::policy(policy)?, Jobs::new(graph, &[]));
    if let Some(table) = policy.costs() {
        jobs.set_costs(graph, false, table);
    }
    Ok(policy.schedule(&jobs.problem(), &mut Scratch::default()))
}
