//! `plan`: compiles a graph and says how good the plan is, step by step.

mod passes;

use crate::args::PlanArgs;
use crate::console::Console;
use crate::facts::{Kinds, Reads, besides_products, brief, computing, products};
use crate::failure::{Answer, Failure};
use crate::files::{
    Form, bytes_in_words, form_of, form_to_write, load_graph, plan_json, write, write_after_passes,
};
use crate::picture;
use crate::places::apart;
use crate::planning::{self, Planned};
use crate::words::{count, plural, table};
use autobatch_ir::graph::{Callee, GraphData};
use autobatch_ir::plan::Plan;
use passes::Rewritten;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;

/// Steps of one kernel in a row that are shown in full; the middle of longer runs is left out.
const RUN: usize = 5;
/// Lines of the table without `--all`, and how many of them stand at its end.
const LINES: usize = 40;
const LAST_LINES: usize = 8;

/// Plans a graph.
pub fn plan(args: &PlanArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let form = args.output.as_deref().map(|path| form_of_plan(args, path)).transpose()?;
    apart(args.output.as_deref().as_slice(), &[&args.graph])?;
    let given = load_graph(&args.graph)?;
    let rewritten = passes::rewritten(args, &given)?;
    let graph = &*rewritten.graph;
    let planned = planning::plan(&args.graph, graph, &args.wish.wish())?;
    let mut written = Vec::new();
    // Files come first: whoever reads standard output may stop reading at any line.
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
    console.write_all(rewritten.words().as_bytes())?;
    print_header(args, graph, &planned, console)?;
    writeln!(console)?;
    console.write_all(step_table(&planned.plan, args.all).as_bytes())?;
    console.write_all(next(args, &written).as_bytes())?;
    Ok(Answer::Yes)
}

/// The form of the plan that is written, if it goes with the other options.
fn form_of_plan(args: &PlanArgs, path: &str) -> Result<Form, Failure> {
    let form = form_to_write(path, false)?;
    if form == Form::Dot {
        let help = format!("draw the graph instead: autobatch show {} --format dot", args.graph);
        return Err(Failure::usage(format!("{path}: plans have no DOT form")).help(help));
    }
    if path == "-" && args.json {
        let message = "-o - writes the plan where --json writes the answer";
        return Err(Failure::usage(message).help("write the plan to a file: -o out.plan"));
    }
    if path == "-" && passes::wanted(args) {
        let message = "-o - writes the plan alone, and it is one of the graph after passes";
        return Err(Failure::usage(message).help("-o out.plan writes that graph beside the plan"));
    }
    Ok(form)
}

/// A file that was written.
struct Written {
    path: String,
    /// The size of a plan or picture; none for the graph after passes.
    bytes: Option<u64>,
}

/// What was written, and what to do next.
fn next(args: &PlanArgs, written: &[Written]) -> String {
    let mut text = String::new();
    let mut graph = args.graph.as_str();
    for Written { path, bytes } in written {
        let Some(bytes) = bytes else {
            text += &format!("wrote {path}: the graph after passes, which the plan computes\n");
            graph = path;
            continue;
        };
        text += &format!("wrote {path} ({}).", bytes_in_words(*bytes));
        if form_of(path) != Some(Form::Svg) {
            text += &format!("  Next: autobatch explain {path}   |   autobatch check {graph} {path}");
        }
        text.push('\n');
    }
    if written.is_empty() {
        text = format!("Next: autobatch explain {graph}   |   autobatch plan {graph} -o out.plan\n");
    }
    text
}

/// Facts of a graph that headers name.
struct Shape {
    nodes: u64,
    cells: usize,
    signatures: usize,
}

fn shape(graph: &GraphData, plan: &Plan) -> Shape {
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
    Shape { nodes, cells: cells.len(), signatures: signatures.len() }
}

/// How far the plan is above its bound, and whether that proves anything.
pub(super) fn gap_in_words(plan: &Plan) -> String {
    let certificate = &plan.certificate;
    if certificate.batches == certificate.bound {
        return "gap 0 %  optimal, proven by the path-sum bound".to_owned();
    }
    format!("gap {:.0} %", certificate.gap() * 100.0)
}

fn print_header(
    args: &PlanArgs,
    graph: &GraphData,
    planned: &Planned,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let (plan, shape) = (&planned.plan, shape(graph, &planned.plan));
    let certificate = &plan.certificate;
    let largest = computing(plan).map(|(_, step)| step.rows).max().unwrap_or(0);
    let mean = shape.nodes as f64 / f64::from(certificate.batches.max(1));
    let reads = certificate.direct + certificate.gathered;
    writeln!(
        console,
        "{}   {}, {} of {}, {}      module {}  {}",
        args.graph,
        plural(graph.instances() as u64, "instance"),
        plural(shape.nodes, "node"),
        plural(shape.cells as u64, "cell"),
        plural(shape.signatures as u64, "signature"),
        graph.module.name,
        brief(plan.structure),
    )?;
    writeln!(console, "policy      {} ({})", args.wish.wish().policy, planned.batches.why)?;
    writeln!(
        console,
        "batches     {}     bound {}     {}",
        certificate.batches,
        certificate.bound,
        gap_in_words(plan)
    )?;
    let nodes = count(shape.nodes);
    writeln!(console, "rows        {nodes}  mean {mean:.1} a step, largest {}", count(largest))?;
    writeln!(
        console,
        "operands    {} rows: {} in place, {} read through tables; {} rows copied",
        count(reads),
        count(certificate.direct),
        count(certificate.gathered),
        count(certificate.copied),
    )?;
    let per_node = planned.took / (shape.nodes.max(1) as u32);
    let per_node = match console.millis(per_node) {
        Some(_) => format!("{} ns", per_node.as_nanos()),
        None => "..".to_owned(),
    };
    writeln!(
        console,
        "memory      {} of slabs ({} without reuse)       planned in {} ({per_node} a node)",
        bytes_in_words(certificate.slab_bytes),
        bytes_in_words(planned.without_reuse),
        console.time(planned.took),
    )?;
    Ok(())
}

/// The steps as a table; without `all`, the middles of long stretches are left out.
fn step_table(plan: &Plan, all: bool) -> String {
    let kinds = Kinds::of(plan);
    let mut rows =
        vec![["step", "kernel", "rows", "operands", "product", "besides"].map(str::to_owned).to_vec()];
    let mut said: Vec<Option<String>> = vec![None; kinds.names().len()];
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut number = 0;
    for run in plan.steps.chunk_by(|a, b| (a.kernel, plan.stores(a)) == (b.kernel, plan.stores(b))) {
        let kind = kinds.of_step(number);
        let name = &kinds.names()[kind];
        for (place, step) in run.iter().enumerate() {
            let skipped = run.len().saturating_sub(3);
            if !all && run.len() > RUN && place >= 2 && place < run.len() - 1 {
                if place == 2 {
                    let (first, last) = (run[2].rows, run[run.len() - 2].rows);
                    let text = format!("{skipped} more {name} steps, {first} down to {last} rows");
                    let text = if first < last { text.replace(" down to ", " up to ") } else { text };
                    lines.push(vec!["..".to_owned(), text]);
                }
                continue;
            }
            let besides = besides_products(plan, step);
            let known = &mut said[kind];
            let shown = if known.as_ref() == Some(&besides) { "\"".to_owned() } else { besides.clone() };
            *known = Some(besides);
            lines.push(vec![
                (number + place).to_string(),
                name.clone(),
                count(step.rows),
                Reads::of(plan, step).words(),
                products(plan.kernel(step), step.rows),
                shown,
            ]);
        }
        number += run.len();
    }
    if !all && lines.len() > LINES {
        let skipped = lines.len() - LINES;
        let text = format!("{skipped} more lines  (--all shows every step)");
        lines.splice(LINES - LAST_LINES..LINES - LAST_LINES + skipped, [vec!["..".to_owned(), text]]);
    }
    // Remarks are wider than a kernel's name and must not widen its column.
    let remarks: Vec<Option<String>> =
        lines.iter().map(|line| (line.len() == 2).then(|| line[1].clone())).collect();
    rows.extend(lines.into_iter().map(|line| if line.len() == 2 { vec![line[0].clone()] } else { line }));
    let text = table(&rows, &[1, 3, 4, 5]);
    let remarks = std::iter::once(None).chain(remarks);
    text.lines()
        .zip(remarks)
        .map(|(line, remark)| match remark {
            Some(remark) => format!("{line}  {remark}\n"),
            None => format!("{line}\n"),
        })
        .collect()
}

fn encoded(args: &PlanArgs, form: Form, graph: &GraphData, plan: &Plan) -> Result<Vec<u8>, Failure> {
    Ok(match form {
        Form::Text | Form::Dot => plan.to_text().into_bytes(),
        Form::Binary => plan.to_bytes(),
        Form::Json => plan_json(plan)?.into_bytes(),
        Form::Svg => picture::graph(graph, plan, &args.wish.wish().policy.to_string()).into_bytes(),
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
    let (plan, shape) = (&planned.plan, shape(graph, &planned.plan));
    let kinds = Kinds::of(plan);
    let steps: Vec<serde_json::Value> = plan
        .steps
        .iter()
        .enumerate()
        .map(|(number, step)| {
            json!({
                "step": number, "kernel": kinds.step_name(number), "rows": step.rows,
                "source": plan.kernel(step).source, "operands": Reads::of(plan, step),
                "product": products(plan.kernel(step), step.rows), "besides": besides_products(plan, step),
            })
        })
        .collect();
    let certificate = &plan.certificate;
    let answer = json!({
        "graph": args.graph, "module": graph.module.name, "structure": format!("{:032x}", plan.structure),
        "instances": graph.instances(), "nodes": shape.nodes, "cells": shape.cells,
        "signatures": shape.signatures, "policy": args.wish.wish().policy.to_string(),
        "why": planned.batches.why.to_string(), "batches": certificate.batches,
        "reverse_batches": certificate.reverse_batches, "bound": certificate.bound,
        "gap": certificate.gap(), "direct_rows": certificate.direct, "table_rows": certificate.gathered,
        "copied_rows": certificate.copied, "slab_bytes": certificate.slab_bytes,
        "slab_bytes_without_reuse": planned.without_reuse, "planning_ms": console.millis(planned.took),
        "passes": rewritten.told, "verified": rewritten.checked,
        "written": written.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), "steps": steps,
    });
    writeln!(console, "{answer:#}")?;
    Ok(())
}
