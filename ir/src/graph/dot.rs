//! Pictures of graphs for Graphviz: `dot -Tsvg`.
//!
//! A box shows a node with its call and its results. Boxes of one colour have one signature, so they
//! may share a batch. Frames show instances; double borders show outputs. The format suits graphs of
//! hundreds of nodes.

use crate::graph::{GraphData, Operand, OperandKind};
use crate::id::{NodeId, SigId, ValueId};
use petgraph::dot::{Config, Dot};
use petgraph::graph::{DiGraph, EdgeReference, NodeIndex};
use std::fmt::Write as _;

impl GraphData {
    /// The graph in the DOT language. The graph must [verify](Self::verify); emitted and loaded graphs
    /// do.
    #[must_use]
    pub fn to_dot(&self) -> String {
        type Nodes = DiGraph<NodeId, Operand>;
        let nodes = self.arena.to_petgraph();
        let mut is_output = vec![false; self.arena.len()];
        for output in &self.outputs {
            is_output[self.arena.producer(output.value).index()] = true;
        }
        let node = |_: &Nodes, (_, &id): (NodeIndex, &NodeId)| {
            let borders = if is_output[id.index()] { ", peripheries=2" } else { "" };
            let fill = colour(self.arena.node(id).sig);
            format!("label={}, fillcolor=\"{fill}\"{borders}", quoted(&self.dot_label(id)))
        };
        let edge = |_: &Nodes, edge: EdgeReference<'_, Operand>| match edge.weight().as_value() {
            // A node with a single result needs no label on its edges.
            Some(value) if self.arena.results(self.arena.producer(value)).len() > 1 => {
                format!("label=\"{value}\"")
            }
            _ => String::new(),
        };
        let config = [Config::GraphContentOnly, Config::NodeNoLabel, Config::EdgeNoLabel];
        let content = Dot::with_attr_getters(&nodes, &config, &edge, &node);
        let mut text = String::from("digraph nodes {\n    node [shape=box, style=filled]\n");
        self.dot_clusters(&mut text);
        writeln!(text, "{content:?}}}").expect("writing to a string does not fail");
        text
    }

    /// The label of a node: `n3 @node(%0, #17)`, then its results with their types.
    fn dot_label(&self, id: NodeId) -> String {
        let signature = self.signature(id);
        let operand = |operand: &Operand| match operand.kind() {
            Some(OperandKind::Value(value)) => value.to_string(),
            Some(OperandKind::Index(slot)) => self
                .bindings
                .words
                .get(slot as usize)
                .map_or_else(|| "#?".to_owned(), |word| format!("#{word}")),
            Some(OperandKind::Data(_)) | None => "..".to_owned(),
        };
        let operands: Vec<String> = self.arena.operands(id).iter().map(operand).collect();
        let params: Vec<String> = signature.params.iter().map(|&arg| self.module.param_name(arg)).collect();
        let params = if params.is_empty() { String::new() } else { format!("[{}]", params.join(", ")) };
        let name = self.module.callee_name(signature.callee);
        let mut label = format!("{id} {name}{params}({})", operands.join(", "));
        for value in self.arena.results(id).map(ValueId::new) {
            write!(label, "\n{value}: {}", self.type_of(value)).expect("writing to a string does not fail");
        }
        label
    }

    fn dot_clusters(&self, text: &mut String) {
        for (number, (instance, range)) in self.numbered_stretches().enumerate() {
            let Some((instance, key)) = instance else { continue };
            let label = quoted(&format!("instance {instance} (key {key})"));
            let nodes: Vec<String> = range.map(|node| node.to_string()).collect();
            let nodes = nodes.join("; ");
            writeln!(text, "    subgraph cluster_{number} {{ label={label}; {nodes} }}")
                .expect("writing to a string does not fail");
        }
    }
}

/// A light colour for a signature. Steps of the golden ratio keep the hues of neighbours distinct.
fn colour(sig: SigId) -> String {
    let hue = (sig.index() as f64 * 0.618_033_988_749_895).fract();
    format!("{hue:.3} 0.250 0.950")
}

/// A string of the DOT language with centred lines.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
