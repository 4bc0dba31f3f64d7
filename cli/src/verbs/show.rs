//! `show`: a graph or plan in another form.

use crate::args::{Format, ShowArgs};
use crate::console::Console;
use crate::facts::{Kinds, brief, computing};
use crate::failure::{Answer, Failure};
use crate::files::{Form, Loaded, bytes_in_words, check_extension, form_of, load, plan_json, write};
use crate::picture;
use crate::planning;
use crate::words::plural;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Plan;
use std::fmt::Write as _;

/// Shows a graph or plan.
pub fn show(args: &ShowArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let loaded = load(&args.file)?;
    check_extension(&args.output, matches!(loaded, Loaded::Graph(_)))?;
    let bytes = match loaded {
        Loaded::Graph(graph) => show_graph(args, &graph)?,
        Loaded::Plan(plan) => show_plan(args, &plan.into_inner())?,
    };
    write(&args.output, &bytes, console)?;
    Ok(Answer::Yes)
}

/// What is asked for by name, or by the extension of the output; none for a binary file.
fn format(args: &ShowArgs) -> Option<Format> {
    args.format.or_else(|| match form_of(&args.output) {
        Some(Form::Json) => Some(Format::Json),
        Some(Form::Dot) => Some(Format::Dot),
        Some(Form::Svg) => Some(Format::Svg),
        Some(Form::Binary) => None,
        Some(Form::Text) | None => Some(Format::Text),
    })
}

fn show_graph(args: &ShowArgs, graph: &GraphData) -> Result<Vec<u8>, Failure> {
    Ok(match format(args) {
        None => graph.to_bytes(),
        Some(Format::Text) => graph.to_text().into_bytes(),
        Some(Format::Json) => graph_json(graph)?,
        Some(Format::Dot) => graph.to_dot().into_bytes(),
        Some(Format::Summary) => graph.to_string().into_bytes(),
        Some(Format::Svg) => {
            let planned = planning::plan(&args.file, graph, &args.wish.wish())?;
            picture::graph(graph, &planned.plan, &args.wish.policy.to_string()).into_bytes()
        }
    })
}

fn show_plan(args: &ShowArgs, plan: &Plan) -> Result<Vec<u8>, Failure> {
    Ok(match format(args) {
        None => plan.to_bytes(),
        Some(Format::Text) => plan.to_text().into_bytes(),
        Some(Format::Json) => plan_json(plan)?.into_bytes(),
        Some(Format::Svg) => picture::memory(plan).into_bytes(),
        Some(Format::Summary) => summary(plan).into_bytes(),
        Some(Format::Dot) => {
            let help = "show the graph it was made from, or the plan as svg";
            return Err(Failure::usage(format!("{}: plans have no DOT form", args.file)).help(help));
        }
    })
}

/// A graph as a JSON document.
pub(super) fn graph_json(graph: &GraphData) -> Result<Vec<u8>, Failure> {
    let text = graph
        .to_json(true)
        .map_err(|error| Failure::input(format!("the graph has no JSON form: {error}")))?;
    Ok(text.into_bytes())
}

/// A plan in a few lines.
pub(super) fn summary(plan: &Plan) -> String {
    let mut text = String::new();
    let rows: u64 = computing(plan).map(|(_, step)| u64::from(step.rows)).sum();
    let _ = writeln!(
        text,
        "plan of module {}, structure {}: {}, bound {}, {}, {} of slabs",
        plan.module,
        brief(plan.structure),
        plural(u64::from(plan.certificate.batches), "step"),
        plan.certificate.bound,
        plural(rows, "row"),
        bytes_in_words(plan.certificate.slab_bytes),
    );
    if plan.certificate.reverse_batches > 0 {
        let _ =
            writeln!(text, "  in reverse: {}", plural(u64::from(plan.certificate.reverse_batches), "step"));
    }
    let kinds = Kinds::of(plan);
    for (kind, name) in kinds.names().iter().enumerate() {
        let rows: u64 = kinds.steps(plan, kind).map(|(_, step)| u64::from(step.rows)).sum();
        let steps = plural(kinds.steps(plan, kind).count() as u64, "step");
        let _ = writeln!(text, "  {name}: {steps}, {}", plural(rows, "row"));
    }
    text
}
