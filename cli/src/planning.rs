//! Plans of graphs, with what the planner thought.

use crate::failure::Failure;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_planner::schedule::{Batches, LoadError, Policy, Schedule, Scratch};
use autobatch_planner::{Jobs, Planner, Request, RowOrder};
use std::time::{Duration, Instant};

/// What a plan is wanted for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The policy.
    pub policy: Policy,
    /// How rows are ordered.
    pub rows: RowOrder,
    /// What the plan promises; in training, dropout draws noise.
    pub mode: Mode,
}

impl Default for Wish {
    fn default() -> Self {
        Self { policy: Policy::default(), rows: RowOrder::default(), mode: Mode::Infer }
    }
}

impl Wish {
    /// Whether dropout draws noise.
    #[must_use]
    pub fn training(&self) -> bool {
        self.mode == Mode::Train
    }
}

/// A plan with what the planner thought.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// How long planning took, the second time: the first warms the planner up.
    pub took: Duration,
    /// The order that the policy chose, of the nodes of the graph.
    pub batches: Batches,
    /// Bytes of all slabs if no row were used twice.
    pub without_reuse: u64,
}

/// The policy, ready to schedule.
pub fn policy(policy: &Policy) -> Result<Box<dyn Schedule + Send + Sync>, Failure> {
    policy.load().map_err(|error| {
        let help = match error {
            LoadError::Read { .. } | LoadError::Table { .. } => {
                "make a table: autobatch fsm-train GRAPH... -o table.json"
            }
            LoadError::Costs(_) => {
                "the variable AUTOBATCH_COSTS names it; without it costs are those of a server"
            }
        };
        Failure::input(error.to_string()).help(help)
    })
}

/// The plan of a graph.
pub fn plan(path: &str, graph: &GraphData, wish: &Wish) -> Result<Planned, Failure> {
    let mut planner = Planner::new(policy(&wish.policy)?);
    let refuse = |error| Failure::input(format!("{path}: {error}"));
    let request =
        Request { mode: wish.mode, training: wish.training(), rows: wish.rows, ..Request::default() };
    planner.plan(graph, &request).map_err(refuse)?;
    let start = Instant::now();
    let plan = planner.plan(graph, &request).map_err(refuse)?;
    let took = start.elapsed();
    let kept = Request { mode: Mode::Train, ..request };
    let without_reuse = match wish.mode {
        Mode::Infer => planner.plan(graph, &kept).map_err(refuse)?.certificate.slab_bytes,
        Mode::Train | Mode::Grow => plan.certificate.slab_bytes,
    };
    let batches = schedule(graph, &wish.policy)?;
    Ok(Planned { plan, took, batches, without_reuse })
}

/// The order that a policy chooses for the nodes of a graph.
pub fn schedule(graph: &GraphData, name: &Policy) -> Result<Batches, Failure> {
    let (policy, mut nodes) = (policy(name)?, Jobs::new(graph, &[]));
    if let Some(table) = policy.costs() {
        nodes.set_costs(graph, false, table);
    }
    Ok(policy.schedule(&nodes.problem(), &mut Scratch::default()))
}
