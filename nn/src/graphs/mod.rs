//! Layers over graphs: every node reads the list of its neighbours.
//!
//! A layer takes one value per node, and per node the numbers of its neighbours. Nodes of any degree share a batch, and so do the
//! nodes of all graphs; no layer pads a list or writes a row per edge.

mod gated;

pub use gated::{GatedGraph, GatedSum};

use autobatch_ir::{Graph, Type, Value};
use std::panic::Location;

/// For each node the list of its neighbours' values. An invalid neighbour fails the graph and gives no lists.
#[track_caller]
fn lists_of<'g>(
    g: &'g Graph,
    element: Type,
    nodes: &[Value<'g>],
    neighbours: &[impl AsRef<[u32]>],
) -> Option<Vec<Value<'g>>> {
    let caller = Location::caller();
    if nodes.len() != neighbours.len() {
        let message =
            format!("{} nodes need as many lists of neighbours, found {}", nodes.len(), neighbours.len());
        let _ = g.refuse("graph layer", &message, "give one list of neighbours for each node", caller);
        return None;
    }
    let mut lists = Vec::with_capacity(nodes.len());
    for (node, near) in neighbours.iter().enumerate() {
        let near = near.as_ref();
        if let Some(&wrong) = near.iter().find(|&&at| at as usize >= nodes.len()) {
            let message =
                format!("node {node} has the neighbour {wrong}, but there are {} nodes", nodes.len());
            let _ = g.refuse("graph layer", &message, "number the nodes of each graph from 0", caller);
            return None;
        }
        lists.push(g.list_of(element, near.iter().map(|&at| nodes[at as usize])));
    }
    Some(lists)
}
