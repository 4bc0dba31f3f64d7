//! The scheduling problem of a graph, for those who look at planning from outside.
//!
//! A policy sees numbered jobs, not nodes. Whoever wants to score an order that another
//! program made, train a table, or say why two values do not share a batch needs the same numbers
//! that the planner uses, so they come from the planner's own clustering.

use crate::cluster::Clusters;
use crate::compile::{self, CompileOptions, Tables};
use crate::grow::Placed;
use crate::price::Work;
use crate::schedule::{CostTable, Price, Problem};
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId, ValueId};

/// The jobs of a graph: the nodes that need a step, numbered in topological order.
#[derive(Default)]
pub struct Jobs {
    clusters: Clusters,
    prices: Vec<Price>,
    pub(crate) names: Vec<u64>,
}

impl Jobs {
    /// The jobs behind the graph's outputs and the values `wanted` besides. The graph must
    /// [verify](GraphData::verify).
    #[must_use]
    pub fn new(graph: &GraphData, wanted: &[ValueId]) -> Self {
        let mut all: Vec<ValueId> = graph.outputs.iter().map(|output| output.value).collect();
        all.extend_from_slice(wanted);
        let mut clusters = Clusters::default();
        clusters.fill(graph, &all, &mut Storage::default(), true, &Placed::default());
        let mut names = Vec::new();
        clusters.names(graph, &mut names);
        Self { clusters, prices: Vec::new(), names }
    }

    /// Prices the problem by a table, as the planner does for a policy that [asks](crate::schedule::Schedule::costs).
    pub fn price(&mut self, graph: &GraphData, training: bool, table: &CostTable) {
        let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
        let price =
            |&sig: &SigId| Work::of(&compile::compile(tables, sig, CompileOptions { training })).price(table);
        self.prices.clear();
        self.prices.extend(self.clusters.types().iter().map(price));
    }

    /// The problem that a policy solves.
    #[must_use]
    pub fn problem(&self) -> Problem<'_> {
        let Clusters { ty, alone, operand_start, operands, .. } = &self.clusters;
        Problem::new(self.signatures().len() as u32, ty, alone, operand_start, operands)
            .expect("clusters are numbered densely and in topological order")
            .with_prices(&self.prices)
            .with_names(&self.names)
    }

    /// The node behind each job.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.clusters.jobs
    }

    /// The job of a node; none if nothing wanted needs it, or if it needs no step.
    #[must_use]
    pub fn job(&self, node: NodeId) -> Option<u32> {
        self.clusters.job(node)
    }

    /// The signature of each type number of the problem. One signature has two numbers where some
    /// nodes compute an index that others bind.
    #[must_use]
    pub fn signatures(&self) -> &[SigId] {
        self.clusters.types()
    }
}
