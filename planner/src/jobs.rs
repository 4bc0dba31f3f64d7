//! The scheduling problem of a graph, for tools outside the planner.
//!
//! A policy sees numbered jobs, not nodes. Tools need the planner's numbers: to score an order of another program, to train a table,
//! to explain why two values do not share a batch. So the numbers come from the planner's own clustering.

use crate::cluster::{self, Clusters};
use crate::context::Context;
use crate::existing::ExistingRows;
use crate::ids::JobId;
use crate::kernels::{CompileOptions, Tables, Work, compile};
use crate::request::Request;
use crate::schedule::{CostTable, Problem, StepCost, Unbatched, type_names};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId, ValueId};

/// The jobs of a graph: the nodes that take a step, numbered in topological order.
#[derive(Default)]
pub struct Jobs {
    clusters: Clusters,
    costs: Vec<StepCost>,
    pub(crate) names: Vec<u64>,
}

impl Jobs {
    /// The jobs behind the graph's outputs and the `wanted` values. The graph must [verify](GraphData::verify).
    #[must_use]
    pub fn new(graph: &GraphData, wanted: &[ValueId]) -> Self {
        let mut roots: Vec<ValueId> = graph.outputs.iter().map(|output| output.value).collect();
        roots.extend_from_slice(wanted);
        let (request, existing) = (Request::default(), ExistingRows::default());
        let context = Context {
            graph,
            request: &request,
            policy: &Unbatched,
            executions: 1.0,
            roots: &roots,
            existing: &existing,
        };
        let mut clusters = Clusters::default();
        cluster::cluster(&context, &mut cluster::Memory::default(), &mut clusters);
        let mut names = Vec::new();
        type_names(graph, &clusters, &mut names);
        Self { clusters, costs: Vec::new(), names }
    }

    /// Computes the costs of the problem's types from a table, as the planner does for a policy with a
    /// [table](crate::schedule::Schedule::costs).
    pub fn set_costs(&mut self, graph: &GraphData, training: bool, table: &CostTable) {
        let (tables, options) = (Tables::of(graph), CompileOptions { training });
        let cost = |&sig: &SigId| Work::of(&compile::compile(tables, sig, options)).cost(table);
        self.costs.clear();
        self.costs.extend(self.clusters.types.iter().map(cost));
    }

    /// The problem that a policy solves.
    #[must_use]
    pub fn problem(&self) -> Problem<'_> {
        self.clusters.problem().with_costs(&self.costs).with_names(&self.names)
    }

    /// The node of each job.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.clusters.jobs
    }

    /// The node of a job.
    ///
    /// # Panics
    /// If there is no such job.
    #[must_use]
    pub fn node(&self, job: JobId) -> NodeId {
        self.clusters.jobs[job.index()]
    }

    /// The job of a node; `None` if no wanted value needs it, or if it takes no step.
    #[must_use]
    pub fn job(&self, node: NodeId) -> Option<JobId> {
        self.clusters.jobs.binary_search(&node).ok().map(|job| JobId(job as u32))
    }

    /// The signature of each type of the problem. A signature has two types if some of its nodes compute an index that others
    /// bind.
    #[must_use]
    pub fn signatures(&self) -> &[SigId] {
        let Clusters { types, .. } = &self.clusters;
        types
    }
}
