//! `plan`: compiles a graph and says how good the plan is, step by step.

use crate::args::{PlanArgs, VerifyArg};
use crate::console::Console;
use crate::facts::{Kinds, Reads, besides_products, brief, computing, products};
use crate::failure::{Answer, Failure};
use crate::files::{Form, bytes_in_words, check_extension, form_of, load_graph, plan_json, write};
use crate::picture;
use crate::planning::{self, Planned};
use crate::words::{count, plural, table};
use autobatch_ir::graph::{Callee, GraphData};
use autobatch_ir::plan::Plan;
use autobatch_planner::Selection;
use autobatch_planner::passes::{self, Step, UnknownPass, Verify};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;
use std::ops::ControlFlow;

/// Steps of one kernel in a row that are shown in full; the middle of longer runs is left out.
const RUN: usize = 5;
/// Lines of the table without `--all`, and how many of them stand at its end.
const LINES: usize = 40;
const LAST_LINES: usize = 8;

/// Plans a graph.
pub fn plan(args: &PlanArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    if let Some(path) = &args.output {
        check_extension(path, false)?;
        if form_of(path) == Some(Form::Dot) {
            let help = format!("draw the graph instead: autobatch show {} --format dot", args.graph);
            return Err(Failure::usage(format!("{path}: plans have no DOT form")).help(help));
        }
    }
    let given = load_graph(&args.graph)?;
    let mut told = String::new();
    let graph = rewritten(args, &given, &mut told)?;
    console.write_all(told.as_bytes())?;
    let planned = planning::plan(&args.graph, &graph, &args.wish.wish())?;
    if args.output.as_deref() != Some("-") {
        if args.json {
            print_json(args, &graph, &planned, console)?;
        } else {
            print_header(args, &graph, &planned, console)?;
            writeln!(console)?;
            console.write_all(step_table(&planned.plan, args.all).as_bytes())?;
        }
    }
    match &args.output {
        Some(path) => save(args, path, &graph, &planned.plan, console)?,
        None if !args.json => {
            writeln!(
                console,
                "Next: autobatch explain {0}   |   autobatch plan {0} -o out.plan",
                args.graph
            )?;
        }
        None => {}
    }
    Ok(Answer::Yes)
}

/// The graph after the passes of its mode, if the options speak of any; `told` gets what they ask to see.
fn rewritten<'g>(
    args: &PlanArgs,
    graph: &'g GraphData,
    told: &mut String,
) -> Result<Cow<'g, GraphData>, Failure> {
    if args.print_after.is_none() && args.stop_after.is_none() && args.verify.is_none() {
        return Ok(Cow::Borrowed(graph));
    }
    let mode = args.wish.wish().mode;
    let mut selection = Selection::of_mode(mode);
    let shown = args.print_after.as_deref().unwrap_or("");
    if !["", "each", "changed"].contains(&shown) {
        let unknown =
            |error: UnknownPass| Failure::usage(error.to_string()).help("autobatch passes lists them");
        selection = selection.with(shown, true).map_err(unknown)?;
    }
    match args.verify {
        Some(VerifyArg::Off) => selection.verify = Verify::Off,
        Some(VerifyArg::Each) => selection.verify = Verify::Each,
        Some(VerifyArg::Prove) => selection.verify = Verify::Prove,
        None => {}
    }
    let most = args.stop_after.unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(Cow::Borrowed(graph));
    }
    let mut ran = 0;
    let mut observe = |step: Step<'_>| {
        ran += 1;
        *told += &format!("after {}\n", step.line);
        match (shown == "each" || shown == step.pass.name, shown == "changed", step.changed) {
            (true, _, true) | (_, true, true) => *told += &step.graph.to_text(),
            (true, _, false) => *told += "the same graph as before\n",
            _ => {}
        }
        if ran == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let optimized = passes::optimize(graph, &[], mode, &selection, &mut observe);
    let optimized = optimized.map_err(|failure| Failure::input(format!("{}: {failure}", args.graph)))?;
    *told += "\n";
    Ok(optimized.graph)
}

/// Facts of a graph that headers name.
struct Shape {
    applications: u64,
    cells: usize,
    signatures: usize,
}

fn shape(graph: &GraphData, plan: &Plan) -> Shape {
    let (mut cells, mut signatures) = (BTreeSet::new(), BTreeSet::new());
    let mut applications = 0;
    for (_, step) in computing(plan) {
        applications += u64::from(step.rows);
        for &app in plan.lanes(step) {
            let sig = graph.arena.app(app).sig;
            signatures.insert(sig);
            if let Callee::Cell(cell) = graph.sigs.get(sig).callee {
                cells.insert(cell);
            }
        }
    }
    Shape { applications, cells: cells.len(), signatures: signatures.len() }
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
    let mean = shape.applications as f64 / f64::from(certificate.batches.max(1));
    let reads = certificate.direct + certificate.tabled;
    writeln!(
        console,
        "{}   {}, {} of {}, {}      module {}  {}",
        args.graph,
        plural(graph.instances() as u64, "instance"),
        plural(shape.applications, "application"),
        plural(shape.cells as u64, "cell"),
        plural(shape.signatures as u64, "signature"),
        graph.module.name,
        brief(plan.structure),
    )?;
    writeln!(console, "policy      {} ({})", args.wish.policy, planned.batches.why)?;
    writeln!(
        console,
        "batches     {}     bound {}     {}",
        certificate.batches,
        certificate.bound,
        gap_in_words(plan)
    )?;
    let applications = count(shape.applications);
    writeln!(console, "rows        {applications}  mean {mean:.1} a step, largest {}", count(largest))?;
    writeln!(
        console,
        "operands    {} rows: {} in place, {} read through tables; {} rows copied",
        count(reads),
        count(certificate.direct),
        count(certificate.tabled),
        count(certificate.copied),
    )?;
    let per_app = planned.took / (shape.applications.max(1) as u32);
    let per_app = match console.millis(per_app) {
        Some(_) => format!("{} ns", per_app.as_nanos()),
        None => "..".to_owned(),
    };
    writeln!(
        console,
        "memory      {} of slabs ({} without reuse)       planned in {} ({per_app} an application)",
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

fn save(
    args: &PlanArgs,
    path: &str,
    graph: &GraphData,
    plan: &Plan,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let bytes = match form_of(path) {
        Some(Form::Text | Form::Dot) | None => plan.to_text().into_bytes(),
        Some(Form::Binary) => plan.to_bytes(),
        Some(Form::Json) => plan_json(plan)?.into_bytes(),
        Some(Form::Svg) => picture::graph(graph, plan, &args.wish.policy.to_string()).into_bytes(),
    };
    write(path, &bytes, console)?;
    if path != "-" && !args.json {
        let size = bytes_in_words(bytes.len() as u64);
        let next = match form_of(path) {
            Some(Form::Svg) => String::new(),
            _ => format!("  Next: autobatch explain {path}   |   autobatch check {} {path}", args.graph),
        };
        writeln!(console, "wrote {path} ({size}).{next}")?;
    }
    Ok(())
}

fn print_json(
    args: &PlanArgs,
    graph: &GraphData,
    planned: &Planned,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
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
                "product": products(plan.kernel(step), step.rows),
            })
        })
        .collect();
    let certificate = &plan.certificate;
    let answer = json!({
        "graph": args.graph, "module": graph.module.name, "structure": format!("{:032x}", plan.structure),
        "instances": graph.instances(), "applications": shape.applications, "cells": shape.cells,
        "signatures": shape.signatures, "policy": args.wish.policy.to_string(),
        "why": planned.batches.why.to_string(), "batches": certificate.batches,
        "reverse_batches": certificate.reverse_batches, "bound": certificate.bound,
        "gap": certificate.gap(), "direct_rows": certificate.direct, "table_rows": certificate.tabled,
        "copied_rows": certificate.copied, "slab_bytes": certificate.slab_bytes,
        "slab_bytes_without_reuse": planned.without_reuse, "planning_ms": console.millis(planned.took),
        "steps": steps,
    });
    writeln!(console, "{answer:#}")?;
    Ok(())
}
