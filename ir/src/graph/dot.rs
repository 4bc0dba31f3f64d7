//! Pictures of graphs, for Graphviz: `dot -Tsvg`.
//!
//! One box a node, labelled with its call and its results; boxes of one colour have one
//! signature, so they may share a batch. Instances are frames, wanted values have double borders.
//! Made for graphs that a reader can take in: hundreds of nodes, not millions.

use crate::graph::petgraph::{Edge, NodeGraph};
use crate::graph::{GraphData, Node, Operand, OperandKind};
use crate::id::{NodeId, SigId, ValueId};
use petgraph::dot::{Config, Dot};
use petgraph::visit::EdgeRef;
use std::fmt::Write as _;

impl GraphData {
    /// The graph in the DOT language. The graph must [verify](Self::verify), as emitted and loaded
    /// ones do.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let view = NodeGraph::from(self);
        let mut wanted = vec![false; self.arena.len()];
        for output in &self.outputs {
            wanted[self.arena.producer(output.value).index()] = true;
        }
        let node = |_: &NodeGraph<'_>, (id, node): (NodeId, &Node)| {
            let borders = if wanted[id.index()] { ", peripheries=2" } else { "" };
            format!("label={}, fillcolor=\"{}\"{borders}", quoted(&self.dot_label(id)), colour(node.sig))
        };
        let edge = |_: &NodeGraph<'_>, edge: Edge<'_>| {
            // Which result is taken is plain where there is but one.
            match edge.weight().as_value() {
                Some(value) if self.arena.results(edge.source()).len() > 1 => format!("label=\"{value}\""),
                _ => String::new(),
            }
        };
        let config = [Config::GraphContentOnly, Config::NodeNoLabel, Config::EdgeNoLabel];
        let content = Dot::with_attr_getters(&view, &config, &edge, &node);
        let mut text = String::from("digraph nodes {\n    node [shape=box, style=filled]\n");
        self.dot_clusters(&mut text);
        writeln!(text, "{content:?}}}").expect("a string takes all that is written");
        text
    }

    /// `n3 @node(%0, #17)`, and below it the results with their types.
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
            write!(label, "\n{value}: {}", self.type_of(value)).expect("a string takes all that is written");
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
                .expect("a string takes all that is written");
        }
    }
}

/// A light colour for a signature: hues a golden section apart stay apart longest.
fn colour(sig: SigId) -> String {
    let hue = (sig.index() as f64 * 0.618_033_988_749_895).fract();
    format!("{hue:.3} 0.250 0.950")
}

/// A string of the DOT language, lines centred.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use crate::graph::Graph;
    use crate::module::{Init, ModuleBuilder};
    use crate::types::{INDEX, f32};

    #[test]
    fn a_picture_shows_calls_results_and_instances() {
        let mut m = ModuleBuilder::new("tree");
        let embed = m.table("embed", [10, 4], Init::ZEROS);
        let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([4])]);
        let node = m.cell("node", [f32([4]); 2], |_, [l, r]| [l.tanh() * r]);
        let g = Graph::new(&m.build().unwrap());
        for key in 0..2 {
            g.instance(key);
            let [h, c] = g.call(leaf, 17);
            let [root] = g.call(node, [h, c]);
            g.output(&format!("root{key}"), root);
        }
        insta::assert_snapshot!(g.finish().unwrap().to_dot(), @r#"
    digraph nodes {
        node [shape=box, style=filled]
        subgraph cluster_0 { label="instance 0 (key 0)"; 0; 1 }
        subgraph cluster_1 { label="instance 1 (key 1)"; 2; 3 }
        0 [ label="n0 @leaf[@embed](#17)\n%0: f32[4]\n%1: f32[4]", fillcolor="0.854 0.250 0.950"]
        1 [ label="n1 @node(%0, %1)\n%2: f32[4]", fillcolor="0.326 0.250 0.950", peripheries=2]
        2 [ label="n2 @leaf[@embed](#17)\n%3: f32[4]\n%4: f32[4]", fillcolor="0.854 0.250 0.950"]
        3 [ label="n3 @node(%3, %4)\n%5: f32[4]", fillcolor="0.326 0.250 0.950", peripheries=2]
        0 -> 1 [ label="%0"]
        0 -> 1 [ label="%1"]
        2 -> 3 [ label="%3"]
        2 -> 3 [ label="%4"]
    }
    "#);
    }
}
