//! `plan`: plans a graph and shows the quality and the steps of the plan.

mod passes;

use crate::args::PlanArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{
    Form, form_of, form_to_write, is_adjacent, load_graph, plan_json, write, write_after_passes,
};
use crate::limits::footprint_line;
use crate::output_paths::check_distinct;
use crate::picture;
use crate::planning::{self, Planned};
use crate::progress::Waiting;
use autobatch::runtime_cpu::footprint;
use autobatch_inspector::steps::{Kinds, Reads, computing, other_work, products, short_hash};
use autobatch_inspector::text::{byte_size, count, plural, table};
use autobatch_ir::graph::{Callee, GraphData};
use autobatch_ir::plan::{Plan, Step};
use passes::Rewritten;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;

/// Maximum number of consecutive steps of one kernel that the table shows in full.
const MAX_RUN: usize = 5;
/// Maximum number of lines of the table without `--all`.
const MAX_LINES: usize = 40;
/// How many of them are the last lines of the full table.
const LAST_LINES: usize = 8;

/// Plans a graph and writes the plan.
pub fn plan(args: &PlanArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let form = args.output.as_deref().map(|path| form_of_plan(args, path)).transpose()?;
    check_distinct(args.output.as_deref().as_slice(), &[&args.graph])?;
    let given = load_graph(&args.graph)?;
    let rewritten = passes::rewritten(args, &given)?;
    let graph = &*rewritten.graph;
    let waiting = Waiting::new("planning");
    let planned = planning::plan(&args.graph, graph, &args.planning.options())?;
    drop(waiting);
    let mut written = Vec::new();
    // Files are written before standard output, whose reader may close the pipe at any line.
    if let (Some(path), Some(form)) = (args.output.as_deref(), form) {
        if form != Form::Svg && graph.structure() != given.structure() {
            written.push(Written { path: write_after_passes(path, graph, &args.graph)?, bytes: None });
        }
        let bytes = encoded(args, form, graph, &planned.plan)?;
        write(path, &bytes, console)?;
        if path == "-" {
            return Ok(Answer::Yes);
        }
        written.push(Written { path: path.to_owned(), bytes: Some(bytes.len() as u64) });
    }
    if args.json {
        print_json(args, &rewritten, &planned, &written, console)?;
        return Ok(Answer::Yes);
    }
    console.write_all(rewritten.text().as_bytes())?;
    print_header(args, graph, &planned, console)?;
    writeln!(console)?;
    console.write_all(step_table(graph, &planned.plan, args.all).as_bytes())?;
    console.write_all(next(args, &written).as_bytes())?;
    Ok(Answer::Yes)
}

/// The form of the output file. Rejects forms that contradict other options.
fn form_of_plan(args: &PlanArgs, path: &str) -> Result<Form, Failure> {
    let form = form_to_write(path, false)?;
    if form == Form::Dot {
        let help = format!("draw the graph instead: autobatch show {} --format dot", args.graph);
        return Err(Failure::usage(format!("{path}: plans have no DOT form")).help(help));
    }
    if path == "-" && args.json {
        let message = "-o - and --json both write to standard output";
        return Err(Failure::usage(message).help("write the plan to a file: -o out.plan"));
    }
    if path == "-" && passes::requested(args) {
        let message = "-o - writes only the plan, without the graph after passes that it computes";
        return Err(Failure::usage(message).help("-o out.plan also writes that graph, next to the plan"));
    }
    Ok(form)
}

/// An output file.
struct Written {
    path: String,
    /// The size of a plan or picture; `None` for the graph after passes.
    bytes: Option<u64>,
}

/// Reports the written files and suggests the next commands.
fn next(args: &PlanArgs, written: &[Written]) -> String {
    let mut text = String::new();
    let mut graph = args.graph.as_str();
    for Written { path, bytes } in written {
        let Some(bytes) = bytes else {
            text += &format!("wrote {path}: the graph after passes, which this plan computes\n");
            graph = path;
            continue;
        };
        text += &format!("wrote {path} ({}).", byte_size(*bytes));
        if form_of(path) != Some(Form::Svg) {
            let explain = match is_adjacent(path, graph) {
                true => path.clone(),
                false => format!("{path} --graph {graph}"),
            };
            text += &format!("  Next: autobatch explain {explain}   |   autobatch check {graph} {path}");
        }
        text.push('\n');
    }
    if written.is_empty() {
        text = format!("Next: autobatch explain {graph}   |   autobatch plan {graph} -o out.plan\n");
    }
    text
}

/// Counts of the graph that a plan computes.
struct Counts {
    nodes: u64,
    cells: usize,
    signatures: usize,
}

fn counts(graph: &GraphData, plan: &Plan) -> Counts {
    let (mut cells, mut signatures) = (BTreeSet::new(), BTreeSet::new());
    let mut nodes = 0;
    for (_, step) in computing(plan) {
        nodes += u64::from(step.rows);
        for &node in plan.lanes(step) {
            let sig = graph.arena.node(node).sig;
            signatures.insert(sig);
            if let Callee::Cell(cell) = graph.sigs.get(sig).callee {
                cells.insert(cell);
            }
        }
    }
    Counts { nodes, cells: cells.len(), signatures: signatures.len() }
}

/// The gap between the batches of the plan and the lower bound.
pub(super) fn gap_text(plan: &Plan) -> String {
    let certificate = &plan.certificate;
    if certificate.batches == certificate.bound {
        return "gap 0 %  optimal, proven by the path-sum bound".to_owned();
    }
    format!("gap {:.0} %", certificate.gap() * 100.0)
}

/// `87: 85 batches and 2 steps for inputs and constants`; `None` if every step is a batch. The certificate counts the batches of
/// the forward direction, so those of the reverse are named apart.
pub(super) fn source_text(plan: &Plan) -> Option<String> {
    let (all, computing) = (plan.steps.len(), computing(plan).count());
    let ahead = (plan.certificate.batches as usize).min(computing);
    let parts = [
        (computing - ahead, format!("{} of the reverse", computing - ahead)),
        (all - computing, format!("{} for inputs and constants", plural((all - computing) as u64, "step"))),
    ];
    let others: Vec<String> = parts.into_iter().filter(|part| part.0 > 0).map(|part| part.1).collect();
    let batches = plural(ahead as u64, "batch");
    (!others.is_empty()).then(|| format!("{all}: {batches} and {}", others.join(" and ")))
}

fn print_header(
    args: &PlanArgs,
    graph: &GraphData,
    planned: &Planned,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let (plan, counts) = (&planned.plan, counts(graph, &planned.plan));
    let certificate = &plan.certificate;
    let largest = computing(plan).map(|(_, step)| step.rows).max().unwrap_or(0);
    let mean = counts.nodes as f64 / f64::from(certificate.batches.max(1));
    let reads = certificate.direct + certificate.gathered;
    writeln!(
        console,
        "{}   {}, {} of {}, {}      module {}  {}",
        args.graph,
        plural(graph.instances() as u64, "instance"),
        plural(counts.nodes, "node"),
        plural(counts.cells as u64, "cell"),
        plural(counts.signatures as u64, "signature"),
        graph.module.name,
        short_hash(plan.structure),
    )?;
    writeln!(console, "policy      {} ({})", args.planning.options().policy, planned.batches.why)?;
    writeln!(
        console,
        "batches     {}     bound {}     {}",
        certificate.batches,
        certificate.bound,
        gap_text(plan)
    )?;
    if let Some(text) = source_text(plan) {
        writeln!(console, "steps       {text}")?;
    }
    let nodes = count(counts.nodes);
    writeln!(console, "rows        {nodes}  mean {mean:.1} per batch, largest {}", count(largest))?;
    writeln!(
        console,
        "operands    {} rows: {} direct, {} gathered; {} rows copied",
        count(reads),
        count(certificate.direct),
        count(certificate.gathered),
        count(certificate.copied),
    )?;
    let per_node = planned.took / (counts.nodes.max(1) as u32);
    let per_node = match console.millis(per_node) {
        Some(_) => format!("{} ns", per_node.as_nanos()),
        None => "..".to_owned(),
    };
    writeln!(
        console,
        "memory      {} of slabs ({} without reuse)       planned in {} ({per_node} per node)",
        byte_size(certificate.slab_bytes),
        byte_size(planned.without_reuse),
        console.time(planned.took),
    )?;
    writeln!(console, "footprint   {}", footprint_line(plan))?;
    Ok(())
}

/// A line of the table of steps.
enum Line {
    Step(Vec<String>),
    /// A remark on lines that are left out.
    Remark(String),
}

impl Line {
    fn cells(&self) -> Vec<String> {
        match self {
            Self::Step(cells) => cells.clone(),
            // A remark must not widen the column of kernel names, so it is appended to the formatted line.
            Self::Remark(_) => vec!["..".to_owned()],
        }
    }

    fn remark(&self) -> String {
        match self {
            Self::Step(_) => String::new(),
            Self::Remark(text) => format!("  {text}"),
        }
    }
}

/// The table of steps. Without `all`, it leaves out the middle of long runs of one kernel.
fn step_table(graph: &GraphData, plan: &Plan, all: bool) -> String {
    let kinds = Kinds::with_graph(plan, Some(graph));
    let mut previous: Vec<Option<String>> = vec![None; kinds.names().len()];
    let mut lines: Vec<Line> = Vec::new();
    let mut number = 0;
    for run in plan.steps.chunk_by(|a, b| (a.kernel, plan.stores(a)) == (b.kernel, plan.stores(b))) {
        let kind = kinds.of_step(number);
        let name = &kinds.names()[kind];
        let hidden = if all || run.len() <= MAX_RUN { 0..0 } else { 2..run.len() - 1 };
        for (at, step) in run.iter().enumerate() {
            if at == hidden.start && !hidden.is_empty() {
                lines.push(Line::Remark(hidden_steps(name, &run[hidden.clone()])));
            }
            if hidden.contains(&at) {
                continue;
            }
            let other = other_work(plan, step);
            let repeats = previous[kind].as_ref() == Some(&other);
            let shown = if repeats { "\"".to_owned() } else { other.clone() };
            previous[kind] = Some(other);
            lines.push(Line::Step(vec![
                (number + at).to_string(),
                name.clone(),
                count(step.rows),
                Reads::of(plan, step).text(),
                products(plan.kernel(step), step.rows),
                shown,
            ]));
        }
        number += run.len();
    }
    if !all && lines.len() > MAX_LINES {
        let skipped = lines.len() - MAX_LINES;
        let remark = Line::Remark(format!("{skipped} more lines  (--all shows every step)"));
        lines.splice(MAX_LINES - LAST_LINES..MAX_LINES - LAST_LINES + skipped, [remark]);
    }
    let head = ["step", "kernel", "rows", "operands", "product", "other work"].map(str::to_owned).to_vec();
    lines.insert(0, Line::Step(head));
    let cells: Vec<Vec<String>> = lines.iter().map(Line::cells).collect();
    let text = table(&cells, &[1, 3, 4, 5]);
    text.lines().zip(&lines).map(|(cells, line)| format!("{cells}{}\n", line.remark())).collect()
}

/// The remark on steps of one kernel that the table leaves out.
fn hidden_steps(name: &str, steps: &[Step]) -> String {
    let [first, last] = [steps.first(), steps.last()].map(|step| step.map_or(0, |step| step.rows));
    let direction = if first < last { "up" } else { "down" };
    format!("{} more {name} steps, {first} {direction} to {last} rows", steps.len())
}

fn encoded(args: &PlanArgs, form: Form, graph: &GraphData, plan: &Plan) -> Result<Vec<u8>, Failure> {
    Ok(match form {
        Form::Text | Form::Dot => plan.to_text().into_bytes(),
        Form::Binary => plan.to_bytes(),
        Form::Json => plan_json(plan)?.into_bytes(),
        Form::Svg => picture::graph(graph, plan, &args.planning.options().policy.to_string()).into_bytes(),
    })
}

fn print_json(
    args: &PlanArgs,
    rewritten: &Rewritten<'_>,
    planned: &Planned,
    written: &[Written],
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let graph = &*rewritten.graph;
    let (plan, counts) = (&planned.plan, counts(graph, &planned.plan));
    let kinds = Kinds::with_graph(plan, Some(graph));
    let steps: Vec<serde_json::Value> = plan
        .steps
        .iter()
        .enumerate()
        .map(|(number, step)| {
            json!({
                "step": number, "kernel": kinds.step_name(number), "rows": step.rows,
                "source": plan.kernel(step).source, "operands": Reads::of(plan, step),
                "product": products(plan.kernel(step), step.rows), "other_work": other_work(plan, step),
            })
        })
        .collect();
    let certificate = &plan.certificate;
    let answer = json!({
        "graph": args.graph, "module": graph.module.name, "structure": format!("{:032x}", plan.structure),
        "instances": graph.instances(), "nodes": counts.nodes, "cells": counts.cells,
        "signatures": counts.signatures, "policy": args.planning.options().policy.to_string(),
        "why": planned.batches.why.to_string(), "batches": certificate.batches,
        "reverse_batches": certificate.reverse_batches, "bound": certificate.bound,
        "gap": certificate.gap(), "direct_rows": certificate.direct, "gathered_rows": certificate.gathered,
        "copied_rows": certificate.copied, "slab_bytes": certificate.slab_bytes,
        "slab_bytes_without_reuse": planned.without_reuse, "footprint": footprint(plan, 1), "planning_ms": console.millis(planned.took),
        "passes": rewritten.passes, "verified": rewritten.checked,
        "written": written.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), "steps": steps,
    });
    writeln!(console, "{answer:#}")?;
    Ok(())
}
