//! Pictures of graphs for Graphviz: `dot -Tsvg`.
//!
//! A box shows a node with its callee and its results; its tooltip shows the whole call. Each cell with its
//! weights has a colour, and ops are grey. Frames show instances; double borders show outputs. The picture
//! runs from left to right and is at most 40 inches wide. The format suits graphs of hundreds of nodes.

use crate::graph::{Callee, GraphData, Operand, OperandKind};
use crate::id::{NodeId, SigId, ValueId};
use petgraph::dot::{Config, Dot};
use petgraph::graph::{DiGraph, EdgeReference, NodeIndex};
use std::collections::BTreeMap;
use std::fmt::Write as _;

impl GraphData {
    /// The graph in the DOT language. The graph must [verify](Self::verify); emitted and loaded graphs do.
    #[must_use]
    pub fn to_dot(&self) -> String {
        type Nodes = DiGraph<NodeId, Operand>;
        let nodes = self.arena.to_petgraph();
        let mut is_output = vec![false; self.arena.len()];
        for output in &self.outputs {
            is_output[self.arena.producer(output.value).index()] = true;
        }
        let colours = self.cell_colours();
        let node = |_: &Nodes, (_, &id): (NodeIndex, &NodeId)| {
            let borders = if is_output[id.index()] { ", peripheries=2" } else { "" };
            let fill = colours.get(&self.arena.node(id).sig).copied().unwrap_or(OP_COLOUR);
            let [label, tooltip] = [self.dot_label(id), self.dot_call(id)].map(|text| quoted(&text));
            format!("label={label}, tooltip={tooltip}, fillcolor=\"{fill}\"{borders}")
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
        let mut text = String::from(
            "digraph nodes {\n    rankdir=LR; size=\"40,30\"; nodesep=0.12; ranksep=0.35\n    node [shape=box, style=\"filled,rounded\", height=0.3, fontname=\"sans-serif\"]\n",
        );
        self.dot_clusters(&mut text);
        writeln!(text, "{content:?}}}").expect("writing to a string does not fail");
        text
    }

    /// The colour of each cell with its weights, in the order of first use.
    fn cell_colours(&self) -> BTreeMap<SigId, &'static str> {
        let mut colours = BTreeMap::new();
        for node in self.arena.nodes() {
            let next = COLOURS[colours.len() % COLOURS.len()];
            if matches!(self.sigs.get(node.sig).callee, Callee::Cell(_)) {
                colours.entry(node.sig).or_insert(next);
            }
        }
        colours
    }

    /// The label of a node: `@node`, then its results.
    fn dot_label(&self, id: NodeId) -> String {
        let results: Vec<String> =
            self.arena.results(id).map(|place| ValueId::new(place).to_string()).collect();
        format!("{}\n{}", self.module.callee_name(self.signature(id).callee), results.join(", "))
    }

    /// The call of a node: `n3 @node(%0, #17)`, then its results with their types.
    fn dot_call(&self, id: NodeId) -> String {
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

/// The colours of cells: ten light colours that black text can be read on.
const COLOURS: [&str; 10] = [
    "#8fb7dc", "#f9b97c", "#98d08f", "#f2999a", "#cfa9cc", "#7fcac4", "#e6cf7a", "#c9a58b", "#eeb3c8",
    "#b9c4cf",
];
/// The colour of ops.
const OP_COLOUR: &str = "#ececec";

/// A string of the DOT language with centred lines.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
