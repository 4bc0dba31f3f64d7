//! Graphs as petgraph's graphs: edges, and generic algorithms that agree with the order of the arena.

#![allow(clippy::unwrap_used, reason = "a missing value fails the test")]

use autobatch_ir::graph::Graph;
use autobatch_ir::id::NodeId;
use autobatch_ir::{GraphData, ModuleBuilder, f32};
use petgraph::Direction;
use petgraph::algo::{dominators, has_path_connecting, is_cyclic_directed, tarjan_scc, toposort};
use petgraph::graph::NodeIndex;
use petgraph::visit::{Dfs, EdgeRef, Reversed, Topo, Walker};
use std::collections::BTreeSet;

/// A graph whose nodes read random earlier values, some twice, and some through lists.
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
fn generic_topological_orders_agree_with_the_arena() {
    for seed in 0..20 {
        let data = tangle(seed, 60);
        let view = data.arena.to_petgraph();
        assert!(!is_cyclic_directed(&view));
        let order = toposort(&view, None).expect("the arena order is a topological order");
        let topo: Vec<NodeIndex> = Topo::new(&view).iter(&view).collect();
        for order in [order, topo, view.node_indices().collect()] {
            let mut rank = vec![usize::MAX; data.arena.len()];
            order.iter().enumerate().for_each(|(place, node)| rank[node.index()] = place);
            let forward = view.edge_references().all(|edge| {
                let [source, target] = [edge.source(), edge.target()].map(|node| rank[node.index()]);
                source < target
            });
            assert!(order.len() == data.arena.len() && forward, "seed {seed}");
        }
        assert_eq!(tarjan_scc(&view).len(), data.arena.len());
    }
}

#[test]
fn both_directions_list_the_same_edges() {
    let data = tangle(3, 60);
    let view = data.arena.to_petgraph();
    let mut edges: Vec<_> = view.edge_references().map(|edge| (edge.source(), edge.target())).collect();
    let readers = |node| view.neighbors(node).map(move |reader| (node, reader));
    let mut outgoing: Vec<_> = view.node_indices().flat_map(readers).collect();
    let producers = |node| {
        let producers = view.neighbors_directed(node, Direction::Incoming);
        producers.map(move |producer| (producer, node))
    };
    let mut incoming: Vec<_> = view.node_indices().flat_map(producers).collect();
    for list in [&mut edges, &mut outgoing, &mut incoming] {
        list.sort_unstable();
    }
    assert_eq!(edges, outgoing);
    assert_eq!(edges, incoming);
    assert!(edges.len() > data.arena.len());
    let values = data.arena.operand_pool().iter().filter(|operand| operand.as_value().is_some());
    assert!(view.edge_weights().eq(values));
    assert!(view.node_weights().copied().eq(data.arena.ids()));
}

#[test]
fn a_backward_search_finds_all_dependencies() {
    let data = tangle(5, 60);
    let view = data.arena.to_petgraph();
    let last = NodeId::new(data.arena.len() - 1);
    let index = |node: NodeId| NodeIndex::new(node.index());
    let search = Dfs::new(Reversed(&view), index(last)).iter(Reversed(&view));
    let found: BTreeSet<NodeId> = search.map(|index| view[index]).collect();
    let mut expected = BTreeSet::from([last]);
    for node in data.arena.ids().rev() {
        if expected.contains(&node) {
            let values = data.arena.operands(node).iter().filter_map(|operand| operand.as_value());
            expected.extend(values.map(|value| data.arena.producer(value)));
        }
    }
    assert_eq!(found, expected);
    for node in data.arena.ids() {
        assert_eq!(has_path_connecting(&view, index(node), index(last), None), expected.contains(&node));
    }
}

#[test]
fn the_common_input_dominates_its_dependents() {
    let data = tangle(7, 40);
    let view = data.arena.to_petgraph();
    let input = NodeIndex::new(0);
    let tree = dominators::simple_fast(&view, input);
    for node in view.node_indices().skip(1) {
        assert!(tree.dominators(node).expect("the node is reachable").any(|above| above == input));
        let immediate = tree.immediate_dominator(node).expect("only the root has none");
        assert!(immediate < node, "a node is dominated by earlier nodes");
    }
}

#[test]
fn an_empty_graph_has_no_nodes() {
    let data = GraphData::new(ModuleBuilder::new("empty").build().unwrap());
    let view = data.arena.to_petgraph();
    assert_eq!((view.node_count(), view.edge_count()), (0, 0));
    assert_eq!(toposort(&view, None), Ok(Vec::new()));
}
