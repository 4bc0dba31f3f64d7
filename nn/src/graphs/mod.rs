//! Layers over graphs: every node reads the list of its neighbours.
//!
//! A layer takes one value per node, and per node the numbers of its neighbours. Nodes of any degree share a batch, and so do the
//! nodes of all graphs; no layer pads a list or writes a row per edge.

mod attention;
mod gated;

pub use attention::{GraphAttention, GraphAttentionOptions};
pub use gated::{GatedGraph, GatedSum};

use autobatch_ir::{Graph, Type, Value};
use std::panic::Location;

/// Whether the list of a node begins with the node itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Itself {
    /// Only if it is its own neighbour.
    AsGiven,
    /// Always, and once.
    First,
}

/// The lists of the neighbours' values of each node.
struct Neighbours<'n, N> {
    near: &'n [N],
    itself: Itself,
}

impl<'n, N: AsRef<[u32]>> Neighbours<'n, N> {
    /// The neighbours of `nodes` nodes. An invalid neighbour fails the graph and gives nothing.
    #[track_caller]
    fn new(g: &Graph, nodes: usize, near: &'n [N], itself: Itself) -> Option<Self> {
        let caller = Location::caller();
        if nodes != near.len() {
            let message = format!("{nodes} nodes need as many lists of neighbours, found {}", near.len());
            let _ = g.refuse("graph layer", &message, "give one list of neighbours for each node", caller);
            return None;
        }
        let wrong = |near: &N| near.as_ref().iter().copied().find(|&at| at as usize >= nodes);
        if let Some((node, wrong)) =
            near.iter().map(wrong).enumerate().find_map(|(node, at)| Some((node, at?)))
        {
            let message = format!("node {node} has the neighbour {wrong}, but there are {nodes} nodes");
            let _ = g.refuse("graph layer", &message, "number the nodes of each graph from 0", caller);
            return None;
        }
        Some(Self { near, itself })
    }

    /// The list of the values that a node reads.
    #[track_caller]
    fn list<'g>(&self, g: &'g Graph, element: Type, node: usize, values: &[Value<'g>]) -> Value<'g> {
        let near = self.near[node].as_ref().iter().map(|&at| at as usize);
        match self.itself {
            Itself::AsGiven => g.list_of(element, near.map(|at| values[at])),
            Itself::First => {
                let others = near.filter(|&at| at != node);
                g.list_of(element, std::iter::once(node).chain(others).map(|at| values[at]))
            }
        }
    }
}
