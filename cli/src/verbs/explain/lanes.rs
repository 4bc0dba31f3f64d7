//! `--lanes`: the lanes of each instance in the steps of one kernel.
//!
//! Each line of the table is an instance and each column is a step. A cell is the number of lanes of the
//! instance in the step, or with `--labels` the bound word of its lane. The report compares the lanes
//! with padding, which makes every step as wide as the widest.

use super::Report;
use crate::failure::Failure;
use autobatch_inspector::steps::Kinds;
use autobatch_inspector::text::{count, plural, table};
use autobatch_ir::graph::{GraphData, OperandKind};
use autobatch_ir::id::NodeId;
use autobatch_ir::plan::Plan;
use serde_json::{Value as Json, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of instances to show.
const SHOWN_INSTANCES: usize = 48;
/// Number of steps to show.
const SHOWN_STEPS: usize = 32;

/// Reports on one kernel, by default the one with the most steps.
pub(super) fn report(
    graph: &GraphData,
    plan: &Plan,
    kernel: Option<&str>,
    labels: bool,
) -> Result<Report, Failure> {
    let kinds = Kinds::with_graph(plan, Some(graph));
    let kind = select(plan, &kinds, kernel)?;
    let steps: Vec<_> = kinds.steps(plan, kind).map(|(_, step)| step).collect();
    let instances = instances(graph);
    // The lanes of each instance, by the column of their step.
    let mut lines: BTreeMap<Option<usize>, BTreeMap<usize, Vec<NodeId>>> = BTreeMap::new();
    for (column, step) in steps.iter().enumerate() {
        for &node in plan.lanes(step) {
            lines.entry(instances[node.index()]).or_default().entry(column).or_default().push(node);
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    let lanes = |line: &BTreeMap<usize, Vec<NodeId>>| line.values().map(Vec::len).sum::<usize>();
    lines.sort_by_key(|(_, line)| Reverse((line.len(), lanes(line))));

    let columns = steps.len().min(SHOWN_STEPS);
    let more = steps.len() - columns;
    let mut rows = Vec::new();
    let head = std::iter::once("instance".to_owned()).chain((0..columns).map(|column| column.to_string()));
    rows.push(
        head.chain((more > 0).then(|| format!(".. {}", plural(more as u64, "more step"))))
            .collect::<Vec<_>>(),
    );
    for (instance, line) in lines.iter().take(SHOWN_INSTANCES) {
        let name = instance.map_or_else(|| "common".to_owned(), |number| number.to_string());
        let cell = |column: usize| match (line.get(&column).map(Vec::as_slice), labels) {
            (None, _) => ".".to_owned(),
            (Some([node]), true) => label(graph, *node).unwrap_or_else(|| "1".to_owned()),
            (Some(nodes), _) => nodes.len().to_string(),
        };
        rows.push(std::iter::once(name).chain((0..columns).map(cell)).collect());
    }
    let hidden = lines.len().saturating_sub(SHOWN_INSTANCES);
    let packed: u64 = steps.iter().map(|step| u64::from(step.rows)).sum();
    let widest = steps.iter().map(|step| step.rows).max().unwrap_or(0);
    let padded = u64::from(widest) * steps.len() as u64;
    let sizes: Vec<u32> = steps.iter().map(|step| step.rows).collect();
    let shown: Vec<String> = sizes.iter().take(SHOWN_STEPS).map(u32::to_string).collect();
    let etc = if more > 0 { " .." } else { "" };
    let mut text = format!(
        "{}   {} of {}   batch sizes {}{etc}\npadding needs {}, batching needs {}{}\n\n{}",
        kinds.names()[kind],
        plural(steps.len() as u64, "step"),
        plural(lines.len() as u64, "instance"),
        shown.join(" "),
        plural(padded, "lane"),
        count(packed),
        saved(padded, packed),
        table(&rows, &[0]),
    );
    if hidden > 0 {
        text += &format!(".. {}\n", plural(hidden as u64, "more instance"));
    }
    text += "\nsorted by number of steps; outputs keep the order of emission\n";
    let cell = |(column, nodes): (&usize, &Vec<NodeId>)| {
        let words: Vec<Option<String>> = nodes.iter().map(|&node| label(graph, node)).collect();
        json!({"step": column, "lanes": nodes.len(), "labels": labels.then_some(words)})
    };
    let lines: Vec<Json> = lines
        .iter()
        .map(|(instance, line)| json!({"instance": instance, "cells": line.iter().map(cell).collect::<Vec<_>>()}))
        .collect();
    let json = json!({
        "kernel": kinds.names()[kind], "batch_sizes": sizes, "padded_lanes": padded, "lanes": packed,
        "instances": lines,
    });
    Ok(Report { text, json })
}

/// ` (-20 %)`; empty if batching saves nothing over padding.
fn saved(padded: u64, packed: u64) -> String {
    let saved = 100.0 - packed as f64 * 100.0 / padded.max(1) as f64;
    match saved {
        _ if padded == packed => String::new(),
        ..0.5 => " (under 1 % less)".to_owned(),
        _ => format!(" (-{saved:.0} %)"),
    }
}

/// The kind of steps with the given name, or the kind with the most steps (the first of equals).
fn select(plan: &Plan, kinds: &Kinds, name: Option<&str>) -> Result<usize, Failure> {
    let names = kinds.names();
    let bare = |name: &str| name.trim_start_matches('@').to_owned();
    if let Some(requested) = name {
        let found = names.iter().position(|name| bare(name) == bare(requested));
        return found.ok_or_else(|| {
            Failure::usage(format!("the plan has no kernel {requested:?}"))
                .help(format!("its kernels are {}", names.join(", ")))
        });
    }
    let computes = |&kind: &usize| !kinds.kernel(plan, kind).source;
    let steps = |kind: usize| (kinds.steps(plan, kind).count(), Reverse(kind));
    (0..names.len())
        .filter(computes)
        .max_by_key(|&kind| steps(kind))
        .ok_or_else(|| Failure::usage("the plan has no steps that compute nodes"))
}

/// The instance of each node; `None` for common nodes.
fn instances(graph: &GraphData) -> Vec<Option<usize>> {
    let mut instances = vec![None; graph.arena.len()];
    for (instance, range) in graph.numbered_stretches() {
        instances[range].fill(instance.map(|(number, _)| number));
    }
    instances
}

/// The bound index word of the node, or else of one of its operands.
fn label(graph: &GraphData, node: NodeId) -> Option<String> {
    let bound = |node: NodeId| {
        let slots = graph.arena.operands(node).iter().filter_map(|operand| match operand.kind() {
            Some(OperandKind::Index(slot)) => Some(slot),
            _ => None,
        });
        slots.filter_map(|slot| graph.bindings.words.get(slot as usize)).next()
    };
    let own = bound(node);
    let read = || {
        let values = graph.arena.operands(node).iter().filter_map(|operand| operand.as_value());
        // An operand of the same signature is the previous state, not the input of this lane.
        let sig = graph.arena.node(node).sig;
        let mut producers =
            values.map(|value| graph.arena.producer(value)).filter(|&made| graph.arena.node(made).sig != sig);
        producers.find_map(bound)
    };
    own.or_else(read).map(|word| format!("#{word}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_inspector::names;
    use autobatch_ir::graph::Graph;
    use autobatch_ir::module::ModuleBuilder;

    #[test]
    fn nodes_before_the_first_instance_belong_to_no_instance() {
        let g = Graph::new(&ModuleBuilder::new("m").build().expect("empty"));
        let x = g.zeros(2);
        g.instance(5);
        g.output("y", x.tanh());
        let graph = g.finish().expect("sound");
        assert_eq!(instances(&graph), [None, Some(0)]);
        assert_eq!(names::instance(&graph, NodeId::new(1)), "instance 0 (key 5)");
    }
}
