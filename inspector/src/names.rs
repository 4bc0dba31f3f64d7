//! Text for values, nodes and signatures of a graph.

use crate::Refused;
use autobatch_ir::graph::{Callee, GraphData, ParamArg};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::module::Export;
use autobatch_ir::plan::Plan;
use std::collections::BTreeMap;

/// The step of each node; `None` for nodes without a step.
pub fn steps_of(graph: &GraphData, plan: &Plan) -> Vec<Option<u32>> {
    let mut steps = vec![None; graph.arena.len()];
    for (number, step) in plan.steps.iter().enumerate() {
        for node in plan.lanes(step) {
            if let Some(step) = steps.get_mut(node.index()) {
                *step = Some(number as u32);
            }
        }
    }
    steps
}

/// Parses a value, such as `%12`.
pub fn parse_value(graph: &GraphData, text: &str) -> Result<ValueId, Refused> {
    let number = text.strip_prefix('%').unwrap_or(text).parse::<usize>().ok();
    let count = graph.arena.values();
    match number.and_then(ValueId::try_new) {
        Some(value) if value.index() < count => Ok(value),
        Some(value) => {
            Err(Refused::question(format!("the graph has no value {value}: its {count} values start at %0")))
        }
        None => Err(Refused::question(format!("{text:?} is not a value"))
            .help("write values as in the text form, such as %12")),
    }
}

/// The name of the node's first result, or of the node if it has no results.
pub fn first_value(graph: &GraphData, node: NodeId) -> String {
    match graph.arena.results(node).next() {
        Some(value) => ValueId::new(value).to_string(),
        None => node.to_string(),
    }
}

/// `@word`: the name of an op or of a cell. Cells with equal bodies are stored once, so an export with the same
/// parameters gives the name.
pub fn callee(graph: &GraphData, sig: SigId) -> String {
    let signature = graph.sigs.get(sig);
    let is_same = |export: &&Export| {
        let own = graph.module.sigs.get(export.sig);
        own.callee == signature.callee && own.params == signature.params
    };
    match signature.callee {
        Callee::Cell(_) if let Some(export) = graph.module.exports.iter().find(is_same) => {
            format!("@{}", export.name)
        }
        callee => graph.module.callee_name(callee),
    }
}

/// `@word(f32[100], u32; @w, @b)`
pub fn signature(graph: &GraphData, sig: SigId) -> String {
    format!("{}{}{}", callee(graph, sig), attributes(graph, sig), arguments(graph, sig))
}

/// `(f32[100], u32; @w, @b)`
fn arguments(graph: &GraphData, sig: SigId) -> String {
    let signature = graph.sigs.get(sig);
    let operands: Vec<String> = signature.operands.iter().map(|&ty| graph.ty(ty).to_string()).collect();
    let params: Vec<String> = signature.params.iter().map(|&arg| param(graph, arg)).collect();
    let separator = if params.is_empty() { "" } else { "; " };
    format!("({}{separator}{})", operands.join(", "), params.join(", "))
}

/// The number of nodes of each signature. Signatures that differ in attributes only count as one:
/// `@word(f32[100], u32; @w, @b)`.
pub fn nodes_by_signature(graph: &GraphData) -> BTreeMap<String, u64> {
    let mut of_sig = vec![0u64; graph.sigs.items().len()];
    graph.arena.nodes().iter().for_each(|node| of_sig[node.sig.index()] += 1);
    let mut all = BTreeMap::new();
    for (sig, count) in of_sig.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let sig = SigId::new(sig);
        *all.entry(format!("{}{}", callee(graph, sig), arguments(graph, sig))).or_default() += count;
    }
    all
}

/// ` { slope: 0.1 }`; empty for cells and for ops without attributes.
fn attributes(graph: &GraphData, sig: SigId) -> String {
    let Callee::Op(op) = graph.sigs.get(sig).callee else { return String::new() };
    let debug = format!("{op:?}");
    debug.find(" {").map_or_else(String::new, |at| debug[at..].to_owned())
}

/// `@w`
pub fn param(graph: &GraphData, arg: ParamArg) -> String {
    graph.module.param_name(arg)
}

/// `src/lattice.rs:71`; `None` if the graph does not record the line.
pub fn site(graph: &GraphData, node: NodeId) -> Option<String> {
    let site = graph.site(graph.arena.node(node).site);
    (!site.file.is_empty()).then(|| format!("{}:{}", site.file, site.line))
}

/// `instance 3`, with its key if that is another number.
pub fn instance(graph: &GraphData, node: NodeId) -> String {
    let own = graph.numbered_stretches().find(|(_, range)| range.contains(&node.index()));
    match own.and_then(|(instance, _)| instance) {
        None => "common".to_owned(),
        Some((number, key)) if key == number as u64 => format!("instance {number}"),
        Some((number, key)) => format!("instance {number} (key {key})"),
    }
}
