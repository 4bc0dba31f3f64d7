//! A graph's nodes behind petgraph's visit traits, without a copy of the arena.
//!
//! An edge is an operand that reads a value: it goes from the producer of the value to its reader. A
//! node that reads a value twice has two edges from its producer. The arena stores incoming edges;
//! the view adds the outgoing ones.
//!
//! Pictures and cross-checks of verifiers use the view, so it implements only the traits that
//! `petgraph::dot` and `toposort` need. Work on every minibatch walks the arena instead, whose order
//! is a topological order: that is about ten times faster than a generic algorithm.

use crate::graph::{Arena, GraphData, Node, Operand};
use crate::id::NodeId;
use petgraph::visit::{
    Data, GraphBase, GraphProp, IntoEdgeReferences, IntoNeighbors, IntoNeighborsDirected,
    IntoNodeIdentifiers, IntoNodeReferences, NodeIndexable, Visitable,
};
use petgraph::{Directed, Direction};
use std::collections::HashSet;
use std::vec::IntoIter;

/// A view of an arena that implements petgraph's visit traits.
#[derive(Clone, Debug)]
pub struct PetgraphView<'a> {
    arena: &'a Arena,
    /// The readers of each node's results, once for each operand, ascending.
    readers: Vec<Vec<NodeId>>,
}

impl<'a> From<&'a GraphData> for PetgraphView<'a> {
    fn from(data: &'a GraphData) -> Self {
        Self::new(&data.arena)
    }
}

impl<'a> PetgraphView<'a> {
    /// The view of an arena, which belongs to a graph or to a cell body.
    #[must_use]
    pub fn new(arena: &'a Arena) -> Self {
        let mut readers = vec![Vec::new(); arena.len()];
        for (producer, reader, _) in edges(arena) {
            readers[producer.index()].push(reader);
        }
        Self { arena, readers }
    }
}

/// All edges in the order of the operand pool: producer, reader and operand.
fn edges(arena: &Arena) -> impl Iterator<Item = (NodeId, NodeId, &Operand)> {
    arena.ids().flat_map(move |reader| {
        let values = arena.operands(reader).iter().filter_map(|operand| Some((operand, operand.as_value()?)));
        values.map(move |(operand, value)| (arena.producer(value), reader, operand))
    })
}

impl GraphBase for PetgraphView<'_> {
    type NodeId = NodeId;
    type EdgeId = (NodeId, NodeId);
}

impl Data for PetgraphView<'_> {
    type NodeWeight = Node;
    type EdgeWeight = Operand;
}

impl GraphProp for PetgraphView<'_> {
    type EdgeType = Directed;
}

impl NodeIndexable for PetgraphView<'_> {
    fn node_bound(&self) -> usize {
        self.arena.len()
    }

    fn to_index(&self, node: NodeId) -> usize {
        node.index()
    }

    fn from_index(&self, index: usize) -> NodeId {
        NodeId::new(index)
    }
}

impl Visitable for PetgraphView<'_> {
    type Map = HashSet<NodeId>;

    fn visit_map(&self) -> Self::Map {
        HashSet::new()
    }

    fn reset_map(&self, map: &mut Self::Map) {
        map.clear();
    }
}

impl IntoNodeIdentifiers for &PetgraphView<'_> {
    type NodeIdentifiers = IntoIter<NodeId>;

    fn node_identifiers(self) -> Self::NodeIdentifiers {
        self.arena.ids().collect::<Vec<_>>().into_iter()
    }
}

impl<'v> IntoNodeReferences for &'v PetgraphView<'_> {
    type NodeRef = (NodeId, &'v Node);
    type NodeReferences = IntoIter<Self::NodeRef>;

    fn node_references(self) -> Self::NodeReferences {
        self.arena.ids().zip(self.arena.nodes()).collect::<Vec<_>>().into_iter()
    }
}

impl<'v> IntoEdgeReferences for &'v PetgraphView<'_> {
    type EdgeRef = (NodeId, NodeId, &'v Operand);
    type EdgeReferences = IntoIter<Self::EdgeRef>;

    fn edge_references(self) -> Self::EdgeReferences {
        edges(self.arena).collect::<Vec<_>>().into_iter()
    }
}

impl IntoNeighbors for &PetgraphView<'_> {
    type Neighbors = IntoIter<NodeId>;

    fn neighbors(self, node: NodeId) -> Self::Neighbors {
        self.neighbors_directed(node, Direction::Outgoing)
    }
}

impl IntoNeighborsDirected for &PetgraphView<'_> {
    type NeighborsDirected = IntoIter<NodeId>;

    fn neighbors_directed(self, node: NodeId, direction: Direction) -> Self::NeighborsDirected {
        let neighbors: Vec<NodeId> = match direction {
            Direction::Outgoing => self.readers[node.index()].clone(),
            Direction::Incoming => {
                let values = self.arena.operands(node).iter().filter_map(|operand| operand.as_value());
                values.map(|value| self.arena.producer(value)).collect()
            }
        };
        neighbors.into_iter()
    }
}
