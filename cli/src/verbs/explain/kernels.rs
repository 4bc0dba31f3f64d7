//! The overview: steps and work by kernel, batches per depth, gathered operands, fusion and copies.

use super::{Report, Subject, batching, gathers};
use crate::console::Console;
use crate::failure::Failure;
use crate::limits::footprint_line;
use crate::planning;
use crate::shell::quoted;
use autobatch::runtime_cpu::footprint;
use autobatch_inspector::steps::{Kinds, computing, multiply_adds};
use autobatch_inspector::text::{count, plural, sparkline, table};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Plan, Stage};
use autobatch_planner::schedule::Policy;
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::time::Duration;

/// Width of bar charts.
const BARS: usize = 24;
/// Number of findings to show.
const SHOWN_FINDINGS: usize = 8;
/// A wider search; the report has a hint if it saves batches.
const WIDER: Policy = Policy::Beam(16);
/// The largest number of nodes that the wider search is tried on. Its time grows faster than the graph.
const MAX_SEARCHED: usize = 20_000;

/// The share of one kind of steps in a plan.
struct Share {
    name: String,
    rows: Vec<u32>,
    work: u64,
    source: bool,
}

fn shares(plan: &Plan, graph: Option<&GraphData>) -> Vec<Share> {
    let kinds = Kinds::with_graph(plan, graph);
    let share = |(kind, name): (usize, &String)| {
        let kernel = kinds.kernel(plan, kind);
        let rows: Vec<u32> = kinds.steps(plan, kind).map(|(_, step)| step.rows).collect();
        let all: u64 = rows.iter().map(|&rows| u64::from(rows)).sum();
        Share { name: name.clone(), work: all * multiply_adds(kernel), rows, source: kernel.source }
    };
    kinds.names().iter().enumerate().map(share).collect()
}

pub(super) fn report(subject: &Subject, console: &Console<'_>) -> Result<Report, Failure> {
    let plan = &subject.plan;
    let (certificate, graph) = (&plan.certificate, subject.graph.as_ref());
    let findings = graph.map(|graph| batching::findings(graph, plan));
    let (fused, saved) = (Fused::of(plan), saved_by_wider(subject)?);
    let mut text = String::new();
    let optimal = if certificate.batches == certificate.bound { ", optimal" } else { "" };
    let _ = writeln!(
        text,
        "{}  {}, bound {} (gap {:.0} %{optimal})",
        subject.path,
        plural(u64::from(certificate.batches), "batch"),
        certificate.bound,
        certificate.gap() * 100.0
    );
    let _ = writeln!(text, "footprint {}", footprint_line(plan));
    if let Some(steps) = super::super::plan::source_text(plan) {
        let _ = writeln!(text, "steps    {steps}");
    }
    text += &kernel_table(plan, graph);
    match findings.as_deref() {
        None => text += "batches per depth: unknown without the graph (--graph FILE)\n",
        Some([]) => text += "batches per depth: no kernel has more batches than its longest path\n",
        Some(findings) => {
            text += "more batches than one per depth (most additional batches first)\n";
            for (number, finding) in findings.iter().take(SHOWN_FINDINGS).enumerate() {
                let _ = writeln!(text, "  {}. {}", number + 1, finding.text());
            }
            if findings.len() > SHOWN_FINDINGS {
                let _ = writeln!(text, "  .. and {} more", findings.len() - SHOWN_FINDINGS);
            }
        }
    }
    text += &gathers::summary(plan, graph);
    text += &fused.text(plan);
    if let Some(saved) = saved {
        let (batches, time) = (plural(saved.batches.into(), "batch"), console.time(saved.time));
        let graph = quoted(&subject.graph_path);
        let _ = writeln!(
            text,
            "hint     --policy {WIDER} saves {batches}, about {time} of execution: autobatch plan {graph} --policy {WIDER}"
        );
    }
    let kernels: Vec<Json> = shares(plan, graph)
        .into_iter()
        .map(|share| {
            json!({"kernel": share.name, "steps": share.rows.len(), "rows": share.rows, "multiply_adds": share.work, "source": share.source})
        })
        .collect();
    let rows: u64 = computing(plan).map(|(_, step)| u64::from(step.rows)).sum();
    let hint = saved.map(|saved| {
        json!({"policy": WIDER.to_string(), "saves": saved.batches, "seconds": saved.time.as_secs_f64()})
    });
    let json = json!({
        "file": subject.path, "batches": certificate.batches, "bound": certificate.bound, "gap": certificate.gap(),
        "rows": rows, "kernels": kernels, "missed_batching": findings, "gathered": gathers::Gather::all(plan, graph),
        "direct_rows": certificate.direct, "gathered_rows": certificate.gathered, "copied_rows": certificate.copied,
        "fused": fused, "hint": hint, "footprint": footprint(plan, 1),
    });
    Ok(Report { text, json })
}

/// The savings of the wider search.
#[derive(Clone, Copy)]
struct Saved {
    batches: u32,
    /// The expected time of as many steps, by the table of policy `auto`.
    time: Duration,
}

/// Returns the savings of the wider search, if it saves batches.
fn saved_by_wider(subject: &Subject) -> Result<Option<Saved>, Failure> {
    let certificate = &subject.plan.certificate;
    let is_worthwhile =
        |graph: &&GraphData| certificate.batches > certificate.bound && graph.arena.len() <= MAX_SEARCHED;
    let Some(graph) = subject.graph.as_ref().filter(is_worthwhile) else { return Ok(None) };
    let wider = planning::schedule(graph, &WIDER)?.len() as u32;
    let Some(batches) = certificate.batches.checked_sub(wider).filter(|&saved| saved > 0) else {
        return Ok(None);
    };
    let step = planning::policy(&Policy::Auto)?.costs().map_or(0.0, |table| table.typical().fixed);
    let time = Duration::from_nanos((f64::from(batches) * step) as u64);
    Ok(Some(Saved { batches, time }))
}

fn kernel_table(plan: &Plan, graph: Option<&GraphData>) -> String {
    let shares = shares(plan, graph);
    let all: u64 = shares.iter().map(|share| share.work).sum::<u64>().max(1);
    let mut rows = Vec::new();
    for share in shares.iter().filter(|share| !share.source) {
        let (least, most) = (share.rows.iter().min().unwrap_or(&0), share.rows.iter().max().unwrap_or(&0));
        rows.push(vec![
            format!("  {}", share.name),
            plural(share.rows.len() as u64, "batch"),
            format!("{:.0} % of multiply-adds", share.work as f64 * 100.0 / all as f64),
            format!("rows {least} {} {most}", sparkline(&share.rows, BARS)),
        ]);
    }
    table(&rows, &[0, 3])
}

/// The effect of fusion, and the kernels that still copy.
#[derive(Debug, Default, Serialize)]
struct Fused {
    ops: u64,
    stages: u64,
    kernels: u64,
    copying_kernels: u64,
}

impl Fused {
    fn of(plan: &Plan) -> Self {
        let mut fused = Self::default();
        for kernel in plan.kernels.iter().filter(|kernel| !kernel.source) {
            let before = fused.stages;
            for stage in &kernel.stages {
                if let Stage::Map { code, .. } = stage
                    && code.len() > 1
                {
                    fused.ops += code.len() as u64;
                    fused.stages += 1;
                }
            }
            fused.kernels += u64::from(fused.stages > before);
            fused.copying_kernels += u64::from(kernel.only_moves());
        }
        fused
    }

    /// `fused    18 elementwise ops into 2 stages of 2 kernels`
    fn text(&self, plan: &Plan) -> String {
        let mut text = match self.stages {
            0 => String::new(),
            _ => format!(
                "fused    {} into {} of {}\n",
                plural(self.ops, "elementwise op"),
                plural(self.stages, "stage"),
                plural(self.kernels, "kernel")
            ),
        };
        if plan.certificate.copied > 0 {
            let _ = writeln!(
                text,
                "copied   {} by {} without other work",
                plural(plan.certificate.copied, "row"),
                plural(self.copying_kernels, "kernel")
            );
        }
        text
    }
}

/// `1,904 of 5,318 operand rows`
pub(super) fn share_of_rows(plan: &Plan) -> String {
    let certificate = &plan.certificate;
    format!(
        "{} of {} operand rows",
        count(certificate.gathered),
        count(certificate.gathered + certificate.direct)
    )
}
