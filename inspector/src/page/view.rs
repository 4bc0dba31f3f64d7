//! A graph and its plan as columns of numbers, which the page draws.

use crate::lifetimes::Lifetimes;
use crate::names;
use crate::steps::{Kinds, Reads, multiply_adds, other_work, products};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Plan;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// The figures of a plan.
pub(super) fn summary(plan: &Plan) -> Json {
    let certificate = &plan.certificate;
    json!({
        "batches": certificate.batches, "bound": certificate.bound, "gathered": certificate.gathered,
        "direct": certificate.direct, "copied": certificate.copied, "bytes": certificate.slab_bytes,
        "steps": plan.steps.len(), "waves": plan.waves.len(), "mode": plan.mode,
    })
}

/// Everything that the page draws. Columns are parallel: entry `i` of each belongs to node or step `i`.
pub(super) fn view(graph: &GraphData, plan: &Plan) -> Json {
    json!({
        "module": graph.module.name, "summary": summary(plan), "nodes": nodes(graph, plan), "steps": steps(graph, plan),
    })
}

fn nodes(graph: &GraphData, plan: &Plan) -> Json {
    let mut instance = vec![-1i64; graph.arena.len()];
    for (number, range) in graph.numbered_stretches() {
        let number = number.map_or(-1, |(number, _)| number as i64);
        instance[range].fill(number);
    }
    let step: Vec<i64> =
        names::steps_of(graph, plan).into_iter().map(|step| step.map_or(-1, i64::from)).collect();
    let mut callees: BTreeMap<u32, String> = BTreeMap::new();
    let (mut sig, mut value, mut site, mut edges) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut sites: BTreeMap<String, usize> = BTreeMap::new();
    for node in graph.arena.ids() {
        let own = graph.arena.node(node).sig;
        callees.entry(own.index() as u32).or_insert_with(|| names::callee(graph, own));
        sig.push(own.index());
        value.push(graph.arena.results(node).next().map_or(-1, |value| value as i64));
        let line = names::site(graph, node).unwrap_or_default();
        let next = sites.len();
        site.push(*sites.entry(line).or_insert(next));
        let operands = graph.arena.operands(node).iter().filter_map(|operand| operand.as_value());
        edges.push(operands.map(|value| graph.arena.producer(value).index()).collect::<Vec<_>>());
    }
    let mut lines = vec![String::new(); sites.len()];
    sites.into_iter().for_each(|(line, number)| lines[number] = line);
    json!({
        "instance": instance, "step": step, "sig": sig, "callees": callees, "value": value, "site": site,
        "sites": lines, "operands": edges,
    })
}

fn steps(graph: &GraphData, plan: &Plan) -> Json {
    let kinds = Kinds::with_graph(plan, Some(graph));
    let lifetimes = Lifetimes::of(plan);
    let mut wave_of = vec![0usize; plan.steps.len()];
    plan.waves().enumerate().for_each(|(wave, steps)| wave_of[steps].fill(wave));
    let forward = plan.forward_steps();
    let steps: Vec<Json> = (plan.steps.iter().enumerate())
        .map(|(number, step)| {
            let kernel = plan.kernel(step);
            let live: u64 = lifetimes.live[number].iter().sum();
            json!({
                "name": kinds.step_name(number), "kind": kinds.of_step(number), "rows": step.rows, "wave": wave_of[number],
                "reads": Reads::of(plan, step).text(), "products": products(kernel, step.rows),
                "other": other_work(plan, step), "work": u64::from(step.rows) * multiply_adds(kernel), "live": live,
                "source": kernel.source, "reverse": number >= forward,
            })
        })
        .collect();
    json!(steps)
}
