//! What differs between two graphs.
//!
//! Numbers of types, signatures and source lines are private to a graph: a graph that was read has
//! others than the one that was emitted. So graphs are compared by their text, which spells them out,
//! apart from its references to source lines, which are compared by what they refer to.

use super::{Difference, first, numbers, words};
use crate::facts::brief;
use crate::spell::nodes_by_signature;
use autobatch_ir::graph::{Cut, GraphData, Output, OutputKind, Site};
use autobatch_ir::id::{NodeId, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// What differs, the coarse before the fine.
pub(super) fn differences(a: &GraphData, b: &GraphData) -> Vec<Difference> {
    let mut all: Vec<Difference> = [
        words("module", a.module.name.clone(), b.module.name.clone()),
        words("structure", brief(a.structure()), brief(b.structure())),
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
    let (mine, theirs) = (nodes_by_signature(a), nodes_by_signature(b));
    for name in mine.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let number = |side: &BTreeMap<String, u64>| side.get(name).copied().unwrap_or(0);
        all.extend(numbers(name.as_str(), number(&mine), number(&theirs)));
    }
    let (one, two) = (Spelled::of(&a.to_text()), Spelled::of(&b.to_text()));
    all.extend(one.nodes_that_differ(&two));
    all.extend(one.declarations_that_differ(&two));
    all.extend(one.cells_that_differ(&two));
    all.extend(first("first instance that differs", &a.cuts, &b.cuts, cut));
    all.extend(first("first output that differs", &a.outputs, &b.outputs, output));
    let shared = |_: usize, value: &ValueId| format!("shared {value}");
    all.extend(first("first mark that differs", &a.shared, &b.shared, shared));
    let alone = |_: usize, node: &NodeId| format!("alone {node}");
    all.extend(first("first mark that differs", &a.alone, &b.alone, alone));
    // Where there is more or less of something, lines stand elsewhere: that says nothing new.
    if all.is_empty() {
        all.extend(first("first source line that differs", &sites(a), &sites(b), site));
    }
    all
}

fn cut(_: usize, cut: &Cut) -> String {
    match cut.key {
        Some(key) => format!("instance {key} from {}", NodeId::new(cut.first as usize)),
        None => format!("common from {}", NodeId::new(cut.first as usize)),
    }
}

fn output(_: usize, output: &Output) -> String {
    let kind = match output.kind {
        OutputKind::Value => "output",
        OutputKind::Loss => "loss",
    };
    format!("{kind} {:?} {}", output.name, output.value)
}

fn site(_: usize, site: &&Site) -> String {
    if site.file.is_empty() {
        "unknown".to_owned()
    } else {
        format!("{}:{}:{}", site.file, site.line, site.column)
    }
}

/// Where everything was written, in the order of the text.
fn sites(graph: &GraphData) -> Vec<&Site> {
    let module = &graph.module;
    let params = module.params.iter().map(|param| param.site);
    let cells = module.cells.iter().flat_map(|cell| {
        std::iter::once(cell.site).chain(cell.body.arena.nodes().iter().map(|node| node.site))
    });
    let declared = params.chain(cells).map(|id| module.sites.get(id));
    declared.chain(graph.arena.nodes().iter().map(|node| graph.site(node.site))).collect()
}

/// The text of a graph, taken apart; without references to source lines.
#[derive(Default)]
struct Spelled {
    /// Parameters, tables and exports by what they declare.
    declarations: BTreeMap<String, String>,
    /// Heads and bodies of cells by name.
    cells: BTreeMap<String, Vec<String>>,
    /// The nodes with the numbers bound to them.
    nodes: Vec<String>,
}

impl Spelled {
    fn of(text: &str) -> Self {
        let mut spelled = Self::default();
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
                    spelled.declarations.insert(format!("{kind} {declared}"), line.replacen(&named, "", 1));
                }
                (None, "cell") => {
                    let line = without_sites(line);
                    let name = line["cell ".len()..].split(['[', '(']).next().unwrap_or("").to_owned();
                    spelled.cells.insert(name.clone(), vec![line]);
                    cell = Some(name);
                }
                (None, "") if !line.is_empty() => {
                    spelled.nodes.push(without_sites(line).trim_start().to_owned());
                }
                (None, _) => {}
                (Some(_), "}") => cell = None,
                (Some(name), _) => {
                    let body = spelled.cells.entry(name.clone()).or_default();
                    body.push(without_sites(line).trim_start().to_owned());
                }
            }
        }
        spelled
    }

    /// The first node that differs, or else the first whose bound numbers do.
    fn nodes_that_differ(&self, other: &Self) -> Option<Difference> {
        let unbound = |side: &Self| -> Vec<String> {
            side.nodes.iter().map(|line| without_bound_numbers(line)).collect()
        };
        let (mine, theirs) = (unbound(self), unbound(other));
        let structure = mine.iter().zip(&theirs).position(|(x, y)| x != y);
        let numbers = || self.nodes.iter().zip(&other.nodes).position(|(x, y)| x != y);
        let (what, place) = match structure {
            Some(place) => ("first that differs", place),
            None => ("first bound number that differs", numbers()?),
        };
        words(what, self.nodes[place].as_str(), other.nodes[place].as_str())
    }

    fn declarations_that_differ(&self, other: &Self) -> Vec<Difference> {
        let names: BTreeSet<&String> = self.declarations.keys().chain(other.declarations.keys()).collect();
        let said = |side: &Self, name| side.declarations.get(name).cloned().unwrap_or_else(|| "-".to_owned());
        names
            .into_iter()
            .filter_map(|name| words(name.as_str(), said(self, name), said(other, name)))
            .collect()
    }

    /// The first line of each cell that differs.
    fn cells_that_differ(&self, other: &Self) -> Vec<Difference> {
        let names: BTreeSet<&String> = self.cells.keys().chain(other.cells.keys()).collect();
        let differs = |name: &String| match (self.cells.get(name), other.cells.get(name)) {
            (Some(mine), Some(theirs)) => {
                first(format!("in cell {name}"), mine, theirs, |_, line| line.clone())
            }
            (Some(_), None) => words(format!("cell {name}"), "declared", "-"),
            _ => words(format!("cell {name}"), "-", "declared"),
        };
        names.into_iter().filter_map(differs).collect()
    }
}

/// A line without ` !3`. Lines with texts in quotes have none.
fn without_sites(line: &str) -> String {
    let mut parts = line.split(" !");
    let mut text = parts.next().unwrap_or("").to_owned();
    parts.for_each(|part| text += part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    text
}

/// A line with `#` for `#17` and for `#[0.25, 0.5]`.
fn without_bound_numbers(line: &str) -> String {
    let mut parts = line.split('#');
    let mut text = parts.next().unwrap_or("").to_owned();
    for part in parts {
        text.push('#');
        let end = if part.starts_with('[') { part.find(']').map(|at| at + 1) } else { part.find([',', ')']) };
        text += &part[end.unwrap_or(part.len())..];
    }
    text
}
