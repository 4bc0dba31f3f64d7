//! Values, nodes and signatures of a graph in words.

use crate::failure::Failure;
use autobatch_ir::graph::{Callee, GraphData, ParamArg};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::Plan;
use std::collections::BTreeMap;

/// The step that computes each node, where one does.
pub(crate) fn steps_of(graph: &GraphData, plan: &Plan) -> Vec<Option<u32>> {
    let mut steps = vec![None; graph.arena.len()];
    for (number, step) in plan.steps.iter().enumerate() {
        for node in plan.lanes(step) {
            if let Some(place) = steps.get_mut(node.index()) {
                *place = Some(number as u32);
            }
        }
    }
    steps
}

/// The value that a text names: `%12`.
pub(crate) fn value(graph: &GraphData, text: &str) -> Result<ValueId, Failure> {
    let number = text.strip_prefix('%').unwrap_or(text).parse::<usize>().ok();
    let there = graph.arena.values();
    match number.and_then(ValueId::try_new) {
        Some(value) if value.index() < there => Ok(value),
        Some(value) => {
            Err(Failure::usage(format!("the graph has no value {value}: it has {there}, from %0 on")))
        }
        None => Err(Failure::usage(format!("{text:?} is no value"))
            .help("values are spelled %12, as in the text form")),
    }
}

/// The value's name or, of a node, that of its first result.
pub(crate) fn first_value(graph: &GraphData, node: NodeId) -> String {
    match graph.arena.results(node).next() {
        Some(value) => ValueId::new(value).to_string(),
        None => node.to_string(),
    }
}

/// `@word`
pub(crate) fn callee(graph: &GraphData, sig: SigId) -> String {
    graph.module.callee_name(graph.sigs.get(sig).callee)
}

/// `@word(f32[100], u32; @w, @b)`
pub(crate) fn signature(graph: &GraphData, sig: SigId) -> String {
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

/// How many nodes have each signature, attributes apart: `@word(f32[100], u32; @w, @b)`.
pub(crate) fn nodes_by_signature(graph: &GraphData) -> BTreeMap<String, u64> {
    let mut of_sig = vec![0u64; graph.sigs.items().len()];
    graph.arena.nodes().iter().for_each(|node| of_sig[node.sig.index()] += 1);
    let mut all = BTreeMap::new();
    for (sig, count) in of_sig.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let sig = SigId::new(sig);
        *all.entry(format!("{}{}", callee(graph, sig), arguments(graph, sig))).or_default() += count;
    }
    all
}

/// ` { slope: 0.1 }`, or nothing for cells and for ops without attributes.
fn attributes(graph: &GraphData, sig: SigId) -> String {
    let Callee::Op(op) = graph.sigs.get(sig).callee else { return String::new() };
    let all = format!("{op:?}");
    all.find(" {").map_or_else(String::new, |at| all[at..].to_owned())
}

/// `@w`
pub(crate) fn param(graph: &GraphData, arg: ParamArg) -> String {
    graph.module.param_name(arg)
}

/// `src/lattice.rs:71`, or nothing for what was written by hand.
pub(crate) fn site(graph: &GraphData, node: NodeId) -> Option<String> {
    let site = graph.site(graph.arena.node(node).site);
    (!site.file.is_empty()).then(|| format!("{}:{}", site.file, site.line))
}

/// `instance 3`, with its key where that is another number.
pub(crate) fn instance(graph: &GraphData, node: NodeId) -> String {
    let own = graph.numbered_stretches().find(|(_, range)| range.contains(&node.index()));
    match own.and_then(|(instance, _)| instance) {
        None => "common".to_owned(),
        Some((number, key)) if key == number as u64 => format!("instance {number}"),
        Some((number, key)) => format!("instance {number} (key {key})"),
    }
}
