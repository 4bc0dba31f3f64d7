//! Nodes as a graph of petgraph, without copying the arena.
//!
//! Nodes are nodes, edges are operands that name values: from the node that makes the
//! value to the one that takes it. A node that takes a value twice has two edges from it.
//! Incoming edges are read off the arena; for outgoing ones the view holds an index, made by two
//! counting passes.
//!
//! For verifiers, pictures and small analyses. Work per minibatch walks the arena itself, whose
//! order is a topological one: that is an order of magnitude faster than a generic algorithm.

use crate::graph::{Arena, GraphData, Node, Operand};
use crate::id::NodeId;
use petgraph::visit::{
    Data, EdgeRef, GraphBase, GraphProp, IntoEdgeReferences, IntoNeighbors, IntoNeighborsDirected,
    IntoNodeIdentifiers, IntoNodeReferences, NodeCompactIndexable, NodeCount, NodeIndexable, VisitMap,
    Visitable,
};
use petgraph::{Directed, Direction};

/// A view of a graph's nodes that speaks petgraph's visit traits.
#[derive(Clone, Debug)]
pub struct NodeGraph<'a> {
    arena: &'a Arena,
    /// Where the users of each node begin in `users`; one more than there are nodes.
    starts: Vec<u32>,
    /// Who takes a result of each node, once for each operand, ascending.
    users: Vec<NodeId>,
}

impl<'a> From<&'a GraphData> for NodeGraph<'a> {
    fn from(data: &'a GraphData) -> Self {
        Self::new(&data.arena)
    }
}

impl<'a> NodeGraph<'a> {
    /// The view of an arena: a graph's or a cell body's.
    #[must_use]
    pub fn new(arena: &'a Arena) -> Self {
        let producers = |id| producers(arena, arena.operands(id));
        let mut starts = vec![0u32; arena.len() + 1];
        for producer in arena.ids().flat_map(producers) {
            starts[producer.index() + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut next = starts.clone();
        // Every place is written below; the filler is any id.
        let edges = starts.last().map_or(0, |&edges| edges as usize);
        let mut users = vec![NodeId::new(0); edges];
        for user in arena.ids() {
            for producer in producers(user) {
                let place = &mut next[producer.index()];
                users[*place as usize] = user;
                *place += 1;
            }
        }
        Self { arena, starts, users }
    }

    /// The arena that is looked at.
    #[must_use]
    pub const fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// The nodes that take a result of `node`, ascending, once for each operand.
    #[must_use]
    pub fn users(&self, node: NodeId) -> &[NodeId] {
        let at = node.index();
        &self.users[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

fn producers<'a>(arena: &'a Arena, operands: &'a [Operand]) -> Neighbors<'a> {
    Neighbors(Side::Producers(arena, operands.iter()))
}

/// The nodes at the other ends of a node's edges.
#[derive(Clone, Debug)]
pub struct Neighbors<'a>(Side<'a>);

#[derive(Clone, Debug)]
enum Side<'a> {
    Users(std::slice::Iter<'a, NodeId>),
    Producers(&'a Arena, std::slice::Iter<'a, Operand>),
}

impl Iterator for Neighbors<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        match &mut self.0 {
            Side::Users(users) => users.next().copied(),
            Side::Producers(arena, operands) => {
                operands.find_map(|operand| operand.as_value()).map(|value| arena.producer(value))
            }
        }
    }
}

/// An operand that names a value.
#[derive(Clone, Copy, Debug)]
pub struct Edge<'a> {
    source: NodeId,
    target: NodeId,
    place: u32,
    operand: &'a Operand,
}

impl<'a> EdgeRef for Edge<'a> {
    type NodeId = NodeId;
    type EdgeId = u32;
    type Weight = Operand;

    fn source(&self) -> NodeId {
        self.source
    }

    fn target(&self) -> NodeId {
        self.target
    }

    fn weight(&self) -> &Operand {
        self.operand
    }

    /// The operand's place in the arena's pool.
    fn id(&self) -> u32 {
        self.place
    }
}

/// All edges, in the order of the operand pool.
#[derive(Clone, Debug)]
pub struct Edges<'a> {
    arena: &'a Arena,
    node: usize,
    place: usize,
}

impl<'a> Iterator for Edges<'a> {
    type Item = Edge<'a>;

    fn next(&mut self) -> Option<Edge<'a>> {
        let nodes = self.arena.nodes();
        loop {
            let operand = self.arena.operand_pool().get(self.place)?;
            // The operand belongs to the last node that begins at or before it.
            while nodes.get(self.node + 1).is_some_and(|next| next.operands as usize <= self.place) {
                self.node += 1;
            }
            let place = self.place as u32;
            self.place += 1;
            if let Some(value) = operand.as_value() {
                let source = self.arena.producer(value);
                return Some(Edge { source, target: NodeId::new(self.node), place, operand });
            }
        }
    }
}

/// The ids of all nodes, in order.
#[derive(Clone, Debug)]
pub struct Nodes(std::ops::Range<usize>);

impl Iterator for Nodes {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        self.0.next().map(NodeId::new)
    }
}

/// All nodes with their ids, in order.
#[derive(Clone, Debug)]
pub struct NodeReferences<'a>(std::iter::Enumerate<std::slice::Iter<'a, Node>>);

impl<'a> Iterator for NodeReferences<'a> {
    type Item = (NodeId, &'a Node);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(number, node)| (NodeId::new(number), node))
    }
}

/// Which nodes were visited.
#[derive(Clone, Debug, Default)]
pub struct Visited(Vec<bool>);

impl VisitMap<NodeId> for Visited {
    fn visit(&mut self, node: NodeId) -> bool {
        !std::mem::replace(&mut self.0[node.index()], true)
    }

    fn is_visited(&self, node: &NodeId) -> bool {
        self.0[node.index()]
    }

    fn unvisit(&mut self, node: NodeId) -> bool {
        std::mem::replace(&mut self.0[node.index()], false)
    }
}

impl GraphBase for NodeGraph<'_> {
    type NodeId = NodeId;
    type EdgeId = u32;
}

impl Data for NodeGraph<'_> {
    type NodeWeight = Node;
    type EdgeWeight = Operand;
}

impl GraphProp for NodeGraph<'_> {
    type EdgeType = Directed;
}

impl NodeCount for NodeGraph<'_> {
    fn node_count(&self) -> usize {
        self.arena.len()
    }
}

impl NodeIndexable for NodeGraph<'_> {
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

impl NodeCompactIndexable for NodeGraph<'_> {}

impl Visitable for NodeGraph<'_> {
    type Map = Visited;

    fn visit_map(&self) -> Visited {
        Visited(vec![false; self.arena.len()])
    }

    fn reset_map(&self, map: &mut Visited) {
        map.0.clear();
        map.0.resize(self.arena.len(), false);
    }
}

impl IntoNodeIdentifiers for &NodeGraph<'_> {
    type NodeIdentifiers = Nodes;

    fn node_identifiers(self) -> Nodes {
        Nodes(0..self.arena.len())
    }
}

impl<'v> IntoNodeReferences for &'v NodeGraph<'_> {
    type NodeRef = (NodeId, &'v Node);
    type NodeReferences = NodeReferences<'v>;

    fn node_references(self) -> NodeReferences<'v> {
        NodeReferences(self.arena.nodes().iter().enumerate())
    }
}

impl<'v> IntoNeighbors for &'v NodeGraph<'_> {
    type Neighbors = Neighbors<'v>;

    fn neighbors(self, node: NodeId) -> Neighbors<'v> {
        Neighbors(Side::Users(self.users(node).iter()))
    }
}

impl<'v> IntoNeighborsDirected for &'v NodeGraph<'_> {
    type NeighborsDirected = Neighbors<'v>;

    fn neighbors_directed(self, node: NodeId, direction: Direction) -> Neighbors<'v> {
        match direction {
            Direction::Outgoing => self.neighbors(node),
            Direction::Incoming => producers(self.arena, self.arena.operands(node)),
        }
    }
}

impl<'v> IntoEdgeReferences for &'v NodeGraph<'_> {
    type EdgeRef = Edge<'v>;
    type EdgeReferences = Edges<'v>;

    fn edge_references(self) -> Edges<'v> {
        Edges { arena: self.arena, node: 0, place: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use crate::module::ModuleBuilder;
    use crate::types::f32;
    use petgraph::algo::{dominators, has_path_connecting, is_cyclic_directed, tarjan_scc, toposort};
    use petgraph::visit::{Dfs, Reversed, Topo, Walker};
    use std::collections::BTreeSet;

    /// A graph whose nodes take random earlier values, some twice, through lists too.
    fn tangle(seed: u64, size: usize) -> GraphData {
        let mut m = ModuleBuilder::new("tangle");
        let cell = m.cell("two", [f32([2]); 2], |_, [a, b]| [a + b, a * b]);
        let module = m.build().unwrap();
        let g = Graph::new(&module);
        let mut values = vec![g.input(&[1.0, 2.0])];
        let mut state = seed;
        for _ in 0..size {
            let mut pick = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                values[(state >> 33) as usize % values.len()]
            };
            let (a, b, c) = (pick(), pick(), pick());
            match seed.wrapping_add(values.len() as u64) % 3 {
                0 => values.extend(g.call(cell, [a, b])),
                1 => values.push(g.list([a, b, c]).sum()),
                _ => values.push(a.tanh()),
            }
        }
        g.finish().unwrap()
    }

    #[test]
    fn a_generic_topological_order_agrees_with_the_arena() {
        for seed in 0..20 {
            let data = tangle(seed, 60);
            let view = NodeGraph::from(&data);
            assert!(!is_cyclic_directed(&view));
            let order = toposort(&view, None).expect("creation order is one");
            let topo: Vec<NodeId> = Topo::new(&view).iter(&view).collect();
            for order in [order, topo, data.arena.ids().collect()] {
                let mut rank = vec![usize::MAX; data.arena.len()];
                order.iter().enumerate().for_each(|(place, node)| rank[node.index()] = place);
                let forward = |edge: Edge<'_>| rank[edge.source().index()] < rank[edge.target().index()];
                assert!(
                    order.len() == data.arena.len() && view.edge_references().all(forward),
                    "seed {seed}"
                );
            }
            assert_eq!(tarjan_scc(&view).len(), data.arena.len());
        }
    }

    #[test]
    fn both_directions_list_the_same_edges() {
        let data = tangle(3, 60);
        let view = NodeGraph::from(&data);
        let mut edges: Vec<_> = view.edge_references().map(|edge| (edge.source(), edge.target())).collect();
        let mut outgoing: Vec<_> =
            data.arena.ids().flat_map(|node| view.neighbors(node).map(move |user| (node, user))).collect();
        let incoming = |node| {
            let producers = (&view).neighbors_directed(node, Direction::Incoming);
            producers.map(move |producer| (producer, node))
        };
        let mut incoming: Vec<_> = data.arena.ids().flat_map(incoming).collect();
        for list in [&mut edges, &mut outgoing, &mut incoming] {
            list.sort_unstable();
        }
        assert_eq!(edges, outgoing);
        assert_eq!(edges, incoming);
        assert!(edges.len() > data.arena.len());
        assert!(
            view.edge_references()
                .all(|edge| data.arena.operand_pool()[edge.id() as usize] == *edge.weight())
        );
        assert!(view.node_references().all(|(id, node)| data.arena.node(id) == node));
    }

    #[test]
    fn what_a_value_depends_on_is_found_backwards() {
        let data = tangle(5, 60);
        let view = NodeGraph::from(&data);
        let last = NodeId::new(data.arena.len() - 1);
        let found: BTreeSet<NodeId> = Dfs::new(Reversed(&view), last).iter(Reversed(&view)).collect();
        let mut wanted = BTreeSet::from([last]);
        for node in data.arena.ids().rev() {
            if wanted.contains(&node) {
                wanted.extend(producers(&data.arena, data.arena.operands(node)));
            }
        }
        assert_eq!(found, wanted);
        for node in data.arena.ids() {
            assert_eq!(has_path_connecting(&view, node, last, None), wanted.contains(&node));
        }
    }

    #[test]
    fn the_common_input_dominates_what_is_made_of_it() {
        let data = tangle(7, 40);
        let view = NodeGraph::from(&data);
        let input = NodeId::new(0);
        let tree = dominators::simple_fast(&view, input);
        for node in data.arena.ids().skip(1) {
            assert!(tree.dominators(node).expect("reachable").any(|above| above == input));
            let immediate = tree.immediate_dominator(node).expect("only the root has none");
            assert!(immediate < node, "a node is dominated by earlier ones");
        }
    }

    #[test]
    fn an_empty_graph_has_no_nodes() {
        let data = GraphData::new(ModuleBuilder::new("empty").build().unwrap());
        let view = NodeGraph::from(&data);
        assert_eq!((view.node_count(), view.edge_references().count()), (0, 0));
        assert_eq!(toposort(&view, None), Ok(Vec::new()));
    }
}
