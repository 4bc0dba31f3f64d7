//! Graphs as petgraph's graphs, for pictures and cross-checks with generic algorithms.
//!
//! An edge is an operand that reads a value: it goes from the producer of the value to its reader. A
//! node that reads a value twice has two edges from its producer.
//!
//! Work on every minibatch walks the arena instead, whose order is a topological order: that is about
//! ten times faster than a generic algorithm.

use crate::graph::{Arena, Operand};
use crate::id::NodeId;
use petgraph::graph::DiGraph;

impl Arena {
    /// The nodes as a graph of petgraph. The index of a node is its position in the arena, and edges
    /// are in the order of the operand pool.
    #[must_use]
    pub fn to_petgraph(&self) -> DiGraph<NodeId, Operand> {
        let mut graph = DiGraph::with_capacity(self.len(), self.operand_pool().len());
        let nodes: Vec<_> = self.ids().map(|id| graph.add_node(id)).collect();
        for reader in self.ids() {
            for &operand in self.operands(reader) {
                let Some(value) = operand.as_value() else { continue };
                graph.add_edge(nodes[self.producer(value).index()], nodes[reader.index()], operand);
            }
        }
        graph
    }
}
