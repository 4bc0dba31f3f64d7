//! The scheduling problem of a graph, for those who look at planning from outside.
//!
//! A policy sees numbered nodes, not applications. Whoever wants to score an order that another
//! program made, train a table, or say why two values do not share a batch needs the same numbers
//! that the planner uses, so they come from the planner's own clustering.

use crate::cluster::{Clusters, NONE};
use crate::schedule::Problem;
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{AppId, SigId, ValueId};

/// The nodes of a graph: the applications that need a step, numbered in topological order.
#[derive(Default)]
pub struct Nodes {
    clusters: Clusters,
}

impl Nodes {
    /// The nodes behind the graph's outputs and the values `wanted` besides. The graph must
    /// [verify](GraphData::verify).
    #[must_use]
    pub fn new(graph: &GraphData, wanted: &[ValueId]) -> Self {
        let mut all: Vec<ValueId> = graph.outputs.iter().map(|output| output.value).collect();
        all.extend_from_slice(wanted);
        let mut clusters = Clusters::default();
        clusters.fill(graph, &all, &mut Storage::default());
        Self { clusters }
    }

    /// The problem that a policy solves.
    #[must_use]
    pub fn problem(&self) -> Problem<'_> {
        let Clusters { types, ty, alone, operand_start, operands, .. } = &self.clusters;
        Problem::new(types.len() as u32, ty, alone, operand_start, operands)
            .expect("clusters are numbered densely and in topological order")
    }

    /// The application behind each node.
    #[must_use]
    pub fn apps(&self) -> &[AppId] {
        &self.clusters.nodes
    }

    /// The node of an application; none if nothing wanted needs it, or if it needs no step.
    #[must_use]
    pub fn node(&self, app: AppId) -> Option<u32> {
        self.clusters.node_of.get(app.index()).copied().filter(|&node| node != NONE)
    }

    /// The signature of each type number of the problem. One signature has two numbers where some
    /// applications compute an index that others bind.
    #[must_use]
    pub fn signatures(&self) -> &[SigId] {
        &self.clusters.types
    }
}
