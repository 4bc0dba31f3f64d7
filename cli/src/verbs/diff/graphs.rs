//! Differences of two graphs.
//!
//! The ids of types, signatures and source lines belong to one graph: reading a graph assigns new ids.
//! The comparison therefore uses the text form, which contains no ids except references to source
//! lines. Source lines are compared separately.

use super::{Difference, first_difference, numbers, texts};
use autobatch_inspector::names::nodes_by_signature;
use autobatch_inspector::steps::short_hash;
use autobatch_ir::graph::{Cut, GraphData, Output, OutputKind, Site};
use autobatch_ir::id::{NodeId, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// The differences, the most general first.
pub(super) fn differences(a: &GraphData, b: &GraphData) -> Vec<Difference> {
    let mut all: Vec<Difference> = [
        texts("module", a.module.name.clone(), b.module.name.clone()),
        texts("structure", short_hash(a.structure()), short_hash(b.structure())),
        numbers("instances", a.instances() as u64, b.instances() as u64),
        numbers("nodes", a.arena.len() as u64, b.arena.len() as u64),
        numbers("values", a.arena.values() as u64, b.arena.values() as u64),
        numbers("outputs", a.outputs.len() as u64, b.outputs.len() as u64),
        numbers("parameters", a.module.params.len() as u64, b.module.params.len() as u64),
        numbers("cells", a.module.cells.len() as u64, b.module.cells.len() as u64),
        numbers("bound words", a.bindings.words.len() as u64, b.bindings.words.len() as u64),
        numbers("bound floats", a.bindings.floats.len() as u64, b.bindings.floats.len() as u64),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (in_a, in_b) = (nodes_by_signature(a), nodes_by_signature(b));
    for name in in_a.keys().chain(in_b.keys()).collect::<BTreeSet<_>>() {
        let number = |side: &BTreeMap<String, u64>| side.get(name).copied().unwrap_or(0);
        all.extend(numbers(name.as_str(), number(&in_a), number(&in_b)));
    }
    let (text_a, text_b) = (GraphText::of(&a.to_text()), GraphText::of(&b.to_text()));
    all.extend(text_a.node_difference(&text_b));
    all.extend(text_a.declaration_differences(&text_b));
    all.extend(text_a.cell_differences(&text_b));
    all.extend(first_difference("first instance that differs", &a.cuts, &b.cuts, cut));
    all.extend(first_difference("first output that differs", &a.outputs, &b.outputs, output));
    let shared = |value: &ValueId| format!("shared {value}");
    all.extend(first_difference("first mark that differs", &a.shared, &b.shared, shared));
    let alone = |node: &NodeId| format!("alone {node}");
    all.extend(first_difference("first mark that differs", &a.alone, &b.alone, alone));
    // Any other difference also shifts source lines, so they are compared only in its absence.
    if all.is_empty() {
        all.extend(first_difference("first source line that differs", &sites(a), &sites(b), site));
    }
    all
}

fn cut(cut: &Cut) -> String {
    match cut.key {
        Some(key) => format!("instance {key} from {}", NodeId::new(cut.first as usize)),
        None => format!("common from {}", NodeId::new(cut.first as usize)),
    }
}

fn output(output: &Output) -> String {
    let kind = match output.kind {
        OutputKind::Value => "output",
        OutputKind::Loss => "loss",
    };
    format!("{kind} {:?} {}", output.name, output.value)
}

fn site(site: &&Site) -> String {
    if site.file.is_empty() {
        "unknown".to_owned()
    } else {
        format!("{}:{}:{}", site.file, site.line, site.column)
    }
}

/// The source lines of all declarations and nodes, in the order of the text.
fn sites(graph: &GraphData) -> Vec<&Site> {
    let module = &graph.module;
    let params = module.params.iter().map(|param| param.site);
    let cells = module.cells.iter().flat_map(|cell| {
        std::iter::once(cell.site).chain(cell.body.arena.nodes().iter().map(|node| node.site))
    });
    let declared = params.chain(cells).map(|id| module.sites.get(id));
    declared.chain(graph.arena.nodes().iter().map(|node| graph.site(node.site))).collect()
}

/// The parts of the text of a graph, without references to source lines.
#[derive(Default)]
struct GraphText {
    /// Parameters, tables and exports by kind and name.
    declarations: BTreeMap<String, String>,
    /// The lines of each cell by name.
    cells: BTreeMap<String, Vec<String>>,
    /// The nodes with their bindings.
    nodes: Vec<String>,
}

impl GraphText {
    fn of(text: &str) -> Self {
        let mut parts = Self::default();
        let mut cell: Option<String> = None;
        for line in text.lines() {
            let word = line.split(' ').next().unwrap_or("");
            match (&cell, word) {
                (None, "param" | "table" | "export") => {
                    let line = without_sites(line);
                    let declared = line.split(' ').nth(1).unwrap_or("").to_owned();
                    let (kind, named) = match word {
                        "export" => ("export", format!("export {declared} = ")),
                        _ => ("parameter", format!("{declared} ")),
                    };
                    parts.declarations.insert(format!("{kind} {declared}"), line.replacen(&named, "", 1));
                }
                (None, "cell") => {
                    let line = without_sites(line);
                    let name = line["cell ".len()..].split(['[', '(']).next().unwrap_or("").to_owned();
                    parts.cells.insert(name.clone(), vec![line]);
                    cell = Some(name);
                }
                (None, "") if !line.is_empty() => {
                    parts.nodes.push(without_sites(line).trim_start().to_owned());
                }
                (None, _) => {}
                (Some(_), "}") => cell = None,
                (Some(name), _) => {
                    let body = parts.cells.entry(name.clone()).or_default();
                    body.push(without_sites(line).trim_start().to_owned());
                }
            }
        }
        parts
    }

    /// The first node that differs, or else the first node with other bindings.
    fn node_difference(&self, other: &Self) -> Option<Difference> {
        let unbound =
            |side: &Self| -> Vec<String> { side.nodes.iter().map(|line| without_bindings(line)).collect() };
        let (a, b) = (unbound(self), unbound(other));
        let structure = a.iter().zip(&b).position(|(x, y)| x != y);
        let bindings = || self.nodes.iter().zip(&other.nodes).position(|(x, y)| x != y);
        let (property, at) = match structure {
            Some(at) => ("first node that differs", at),
            None => ("first binding that differs", bindings()?),
        };
        texts(property, self.nodes[at].as_str(), other.nodes[at].as_str())
    }

    fn declaration_differences(&self, other: &Self) -> Vec<Difference> {
        let names: BTreeSet<&String> = self.declarations.keys().chain(other.declarations.keys()).collect();
        let text = |side: &Self, name| side.declarations.get(name).cloned().unwrap_or_else(|| "-".to_owned());
        names
            .into_iter()
            .filter_map(|name| texts(name.as_str(), text(self, name), text(other, name)))
            .collect()
    }

    /// The first line that differs of each cell.
    fn cell_differences(&self, other: &Self) -> Vec<Difference> {
        let names: BTreeSet<&String> = self.cells.keys().chain(other.cells.keys()).collect();
        let differs = |name: &String| match (self.cells.get(name), other.cells.get(name)) {
            (Some(a), Some(b)) => first_difference(format!("in cell {name}"), a, b, Clone::clone),
            (Some(_), None) => texts(format!("cell {name}"), "declared", "-"),
            _ => texts(format!("cell {name}"), "-", "declared"),
        };
        names.into_iter().filter_map(differs).collect()
    }
}

/// A line without references such as ` !3`. Lines with quoted text contain no references.
fn without_sites(line: &str) -> String {
    let mut parts = line.split(" !");
    let mut text = parts.next().unwrap_or("").to_owned();
    parts.for_each(|part| text += part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    text
}

/// A line with `#` in place of bindings such as `#17` and `#[0.25, 0.5]`.
fn without_bindings(line: &str) -> String {
    let mut parts = line.split('#');
    let mut text = parts.next().unwrap_or("").to_owned();
    for part in parts {
        text.push('#');
        let end = if part.starts_with('[') { part.find(']').map(|at| at + 1) } else { part.find([',', ')']) };
        text += &part[end.unwrap_or(part.len())..];
    }
    text
}
