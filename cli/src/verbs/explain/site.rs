//! The nodes and steps of a source line, and the cells whose bodies contain it.

use super::Report;
use crate::failure::Failure;
use autobatch_inspector::names;
use autobatch_inspector::text::{plural, table};
use autobatch_ir::graph::{GraphData, Site};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::Plan;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Reports on a source line, written `src/model.rs:31`.
pub(super) fn report(graph: &GraphData, plan: &Plan, site: &str) -> Result<Report, Failure> {
    let (file, line) = parse(site)?;
    let is_here = |found: &Site| found.line == line && found.file.ends_with(file);
    let steps = names::steps_of(graph, plan);
    let mut uses: BTreeMap<SigId, Uses> = BTreeMap::new();
    for node in graph.arena.ids() {
        if is_here(graph.site(graph.arena.node(node).site)) {
            let uses = uses.entry(graph.arena.node(node).sig).or_default();
            uses.nodes += 1;
            uses.without_step += u64::from(steps[node.index()].is_none());
            uses.steps.extend(steps[node.index()]);
        }
    }
    let mut text = String::new();
    let (mut rows, mut emitted, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for (sig, Uses { nodes, without_step, steps }) in &uses {
        let dead = if *without_step > 0 { format!(", {without_step} without a step") } else { String::new() };
        let span = match (steps.first(), steps.last()) {
            (Some(first), Some(last)) if first != last => {
                format!("{} from {first} to {last}", plural(steps.len() as u64, "step"))
            }
            (Some(only), _) => format!("step {only}"),
            _ => "no step".to_owned(),
        };
        let signature = names::signature(graph, *sig);
        emitted.push(json!({
            "signature": signature, "nodes": nodes, "without_step": without_step, "steps": steps,
        }));
        rows.push(vec![format!("  {signature}"), format!("{}{dead}", plural(*nodes, "node")), span]);
    }
    if !rows.is_empty() {
        let _ = writeln!(text, "{site} emitted");
        text += &table(&rows, &[0, 1, 2]);
    }
    for cell in &graph.module.cells {
        let ops: Vec<String> = cell
            .body
            .arena
            .nodes()
            .iter()
            .filter(|node| is_here(graph.module.sites.get(node.site)))
            .map(|node| graph.module.callee_name(graph.module.sigs.get(node.sig).callee))
            .collect();
        if !ops.is_empty() {
            bodies.push(json!({"cell": cell.name, "ops": ops}));
            let _ = writeln!(text, "{site} is in the body of @{}: {}", cell.name, ops.join(", "));
        }
    }
    if text.is_empty() {
        let lines: BTreeSet<String> = graph
            .sites
            .items()
            .iter()
            .filter(|found| !found.file.is_empty())
            .map(|found| format!("{}:{}", found.file, found.line))
            .collect();
        let known: Vec<String> = lines.into_iter().take(8).collect();
        let help = if known.is_empty() {
            "the graph does not record source lines".to_owned()
        } else {
            format!("the graph records {}, ..", known.join(", "))
        };
        return Err(Failure::usage(format!("no node of the graph was emitted at {site}")).help(help));
    }
    Ok(Report { text, json: json!({"site": site, "emitted": emitted, "in_bodies": bodies}) })
}

/// The nodes of one signature that a source line emitted.
#[derive(Default)]
struct Uses {
    nodes: u64,
    without_step: u64,
    steps: BTreeSet<u32>,
}

fn parse(site: &str) -> Result<(&str, u32), Failure> {
    let parts = site.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    parts.ok_or_else(|| {
        Failure::usage(format!("{site:?} is not a source line")).help("write --site src/model.rs:31")
    })
}
