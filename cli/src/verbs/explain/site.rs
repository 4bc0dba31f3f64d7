//! What became of a line of source: which nodes it wrote, which steps execute them, and the
//! cells in whose bodies it stands.

use super::Report;
use crate::failure::Failure;
use crate::spell;
use crate::words::{plural, table};
use autobatch_ir::graph::{GraphData, Site};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::Plan;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub(super) fn report(graph: &GraphData, plan: &Plan, site: &str) -> Result<Report, Failure> {
    let wanted = parse(site)?;
    let is_here = |found: &Site| found.line == wanted.1 && found.file.ends_with(wanted.0);
    let steps = spell::steps_of(graph, plan);
    let mut uses: BTreeMap<SigId, (u64, u64, BTreeSet<u32>)> = BTreeMap::new();
    for node in graph.arena.ids() {
        if is_here(graph.site(graph.arena.node(node).site)) {
            let (all, executed, in_steps) = uses.entry(graph.arena.node(node).sig).or_default();
            *all += 1;
            *executed += u64::from(steps[node.index()].is_some());
            in_steps.extend(steps[node.index()]);
        }
    }
    let mut text = String::new();
    let (mut rows, mut written, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for (sig, (all, executed, in_steps)) in &uses {
        let dead =
            if executed < all { format!(", {} without a step", all - executed) } else { String::new() };
        let span = match (in_steps.first(), in_steps.last()) {
            (Some(first), Some(last)) if first != last => {
                format!("{} of {first}..{last}", plural(in_steps.len() as u64, "step"))
            }
            (Some(only), _) => format!("step {only}"),
            _ => "no step".to_owned(),
        };
        let signature = spell::signature(graph, *sig);
        written.push(json!({
            "signature": signature, "nodes": all, "without_step": all - executed, "steps": in_steps,
        }));
        rows.push(vec![format!("  {signature}"), format!("{}{dead}", plural(*all, "node")), span]);
    }
    if !rows.is_empty() {
        let _ = writeln!(text, "{site} wrote");
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
            let _ = writeln!(text, "{site} stands in the body of @{}: {}", cell.name, ops.join(", "));
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
            "the graph names no source lines".to_owned()
        } else {
            format!("it names {}, ..", known.join(", "))
        };
        return Err(Failure::usage(format!("nothing in the graph was written at {site}")).help(help));
    }
    Ok(Report { text, json: json!({"site": site, "wrote": written, "in_bodies": bodies}) })
}

fn parse(site: &str) -> Result<(&str, u32), Failure> {
    let parts = site.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    parts.ok_or_else(|| {
        Failure::usage(format!("{site:?} is no line of source")).help("write --site src/model.rs:31")
    })
}
