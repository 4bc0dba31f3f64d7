//! `show`: a graph or plan in another form.

use crate::args::{Format, ShowArgs};
use crate::console::Console;
use crate::facts::{Kinds, brief, computing};
use crate::failure::{Answer, Failure};
use crate::files::{
    Form, Loaded, bytes_in_words, check_extension, form_of, form_to_write, load, plan_json, write,
};
use crate::places::apart;
use crate::words::plural;
use crate::{picture, planning, spell};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::Plan;
use autobatch_planner::Jobs;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Signatures of a graph that its summary names.
const SIGNATURES: usize = 20;

/// Shows a graph or plan.
pub fn show(args: &ShowArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    apart(&[&args.output], &[&args.file])?;
    let loaded = load(&args.file)?;
    let is_graph = matches!(loaded, Loaded::Graph(_));
    let format = format(args, is_graph)?;
    if !(is_graph && format == Some(Format::Svg)) {
        args.wish.none_given("only for the picture of a graph is anything planned")?;
    }
    let bytes = match loaded {
        Loaded::Graph(graph) => show_graph(args, format, &graph)?,
        Loaded::Plan(plan) => show_plan(args, format, &plan.into_inner())?,
    };
    write(&args.output, &bytes, console)?;
    Ok(Answer::Yes)
}

/// What is asked for by name, or by the extension of the output; none for a binary file. The two may
/// not contradict each other: the file would not read back.
fn format(args: &ShowArgs, is_graph: bool) -> Result<Option<Format>, Failure> {
    let Some(asked) = args.format else { return Ok(format_of(form_to_write(&args.output, is_graph)?)) };
    check_extension(&args.output, is_graph)?;
    match form_of(&args.output) {
        Some(form) if format_of(form) != Some(asked) => {
            let name = format!("{asked:?}").to_lowercase();
            let message = format!("{}: another form than --format {name} has this extension", args.output);
            Err(Failure::usage(message).help("leave --format out, or name another file"))
        }
        _ => Ok(Some(asked)),
    }
}

fn format_of(form: Form) -> Option<Format> {
    match form {
        Form::Text => Some(Format::Text),
        Form::Json => Some(Format::Json),
        Form::Dot => Some(Format::Dot),
        Form::Svg => Some(Format::Svg),
        Form::Binary => None,
    }
}

fn show_graph(args: &ShowArgs, format: Option<Format>, graph: &GraphData) -> Result<Vec<u8>, Failure> {
    Ok(match format {
        None => graph.to_bytes(),
        Some(Format::Text) => graph.to_text().into_bytes(),
        Some(Format::Json) => graph_json(graph)?,
        Some(Format::Dot) => graph.to_dot().into_bytes(),
        Some(Format::Summary) => graph_summary(graph).into_bytes(),
        Some(Format::Svg) => {
            let wish = args.wish.wish();
            let planned = planning::plan(&args.file, graph, &wish)?;
            picture::graph(graph, &planned.plan, &wish.policy.to_string()).into_bytes()
        }
    })
}

fn show_plan(args: &ShowArgs, format: Option<Format>, plan: &Plan) -> Result<Vec<u8>, Failure> {
    Ok(match format {
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

/// A graph in a few lines: how many nodes need a step, by what they have in common.
fn graph_summary(graph: &GraphData) -> String {
    let nodes = Jobs::new(graph, &[]);
    let mut by_signature: BTreeMap<SigId, u64> = BTreeMap::new();
    for &node in nodes.nodes() {
        *by_signature.entry(graph.arena.node(node).sig).or_default() += 1;
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "graph of module {}, structure {}: {}, {} of {}, {}",
        graph.module.name,
        brief(graph.structure()),
        plural(graph.instances() as u64, "instance"),
        plural(nodes.nodes().len() as u64, "node"),
        plural(by_signature.len() as u64, "signature"),
        plural(graph.outputs.len() as u64, "output"),
    );
    let rest = (graph.arena.len() - nodes.nodes().len()) as u64;
    let _ = writeln!(
        text,
        "  and {} without a step: constants, inputs, parameters, lists and what no output needs",
        plural(rest, "node")
    );
    let mut rows: Vec<(u64, String)> =
        by_signature.into_iter().map(|(sig, nodes)| (nodes, spell::signature(graph, sig))).collect();
    rows.sort_by(|(few, a), (many, b)| many.cmp(few).then_with(|| a.cmp(b)));
    let skipped = rows.len().saturating_sub(SIGNATURES);
    for (nodes, signature) in rows.into_iter().take(SIGNATURES) {
        let _ = writeln!(text, "  {signature}: {}", plural(nodes, "node"));
    }
    if skipped > 0 {
        let _ = writeln!(text, "  .. and {}", plural(skipped as u64, "more signature"));
    }
    text
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
