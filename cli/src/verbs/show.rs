//! `show`: converts a graph or plan to another form.

use crate::args::{Arrangement, Format, ShowArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Form, Loaded, check_extension, form_of, form_to_write, load, plan_json, write};
use crate::output_paths::check_distinct;
use crate::{picture, planning};
use autobatch_inspector::names;
use autobatch_inspector::steps::{Kinds, computing, short_hash};
use autobatch_inspector::text::{byte_size, plural};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::Plan;
use autobatch_planner::Jobs;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// Number of signatures in the summary of a graph.
const SHOWN_SIGNATURES: usize = 20;

/// Shows a graph or plan in the selected form.
pub fn show(args: &ShowArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    check_distinct(&[&args.output], &[&args.file])?;
    let loaded = load(&args.file)?;
    let is_graph = matches!(loaded, Loaded::Graph(_));
    let format = format(args, is_graph)?;
    if !(is_graph && format == Some(Format::Svg)) {
        args.planning.reject_if_given("show plans only for the picture of a graph")?;
    }
    let bytes = match loaded {
        Loaded::Graph(graph) => show_graph(args, format, &graph)?,
        Loaded::Plan(plan) => show_plan(args, format, &plan.into_inner())?,
    };
    write(&args.output, &bytes, console)?;
    if args.output != "-" {
        writeln!(console, "wrote {} ({})", args.output, byte_size(bytes.len() as u64))?;
    }
    Ok(Answer::Yes)
}

/// The form that `--format` or the extension of the output selects; `None` is the binary form. A
/// contradiction between the two is an error, because the file would not read back.
fn format(args: &ShowArgs, is_graph: bool) -> Result<Option<Format>, Failure> {
    let Some(requested) = args.format else { return Ok(format_of(form_to_write(&args.output, is_graph)?)) };
    check_extension(&args.output, is_graph)?;
    match form_of(&args.output) {
        Some(form) if format_of(form) != Some(requested) => {
            let name = format!("{requested:?}").to_lowercase();
            let message = format!("{}: the extension contradicts --format {name}", args.output);
            Err(Failure::usage(message).help("remove --format, or name another file"))
        }
        _ => Ok(Some(requested)),
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
            let options = args.planning.options();
            let planned = planning::plan(&args.file, graph, &options)?;
            let picture = match args.picture {
                Arrangement::Timeline => picture::graph(graph, &planned.plan, &options.policy.to_string()),
                Arrangement::Instances => picture::instances(graph, &planned.plan),
            };
            picture.into_bytes()
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
            let help = "show the graph of the plan, or the plan as svg";
            return Err(Failure::usage(format!("{}: plans have no DOT form", args.file)).help(help));
        }
    })
}

/// Encodes a graph as a JSON document.
pub(super) fn graph_json(graph: &GraphData) -> Result<Vec<u8>, Failure> {
    let text = graph
        .to_json(true)
        .map_err(|error| Failure::input(format!("cannot encode the graph as JSON: {error}")))?;
    Ok(text.into_bytes())
}

/// The summary of a graph: its nodes that need a step, by signature.
fn graph_summary(graph: &GraphData) -> String {
    let jobs = Jobs::new(graph, &[]);
    let mut by_signature: BTreeMap<SigId, u64> = BTreeMap::new();
    for &node in jobs.nodes() {
        *by_signature.entry(graph.arena.node(node).sig).or_default() += 1;
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "graph of module {}, structure {}: {}, {} of {}, {}",
        graph.module.name,
        short_hash(graph.structure()),
        plural(graph.instances() as u64, "instance"),
        plural(jobs.nodes().len() as u64, "node"),
        plural(by_signature.len() as u64, "signature"),
        plural(graph.outputs.len() as u64, "output"),
    );
    let rest = (graph.arena.len() - jobs.nodes().len()) as u64;
    let _ = writeln!(
        text,
        "  and {} without a step: constants, inputs, parameters, lists and unused nodes",
        plural(rest, "node")
    );
    let mut rows: Vec<(u64, String)> =
        by_signature.into_iter().map(|(sig, nodes)| (nodes, names::signature(graph, sig))).collect();
    rows.sort_by(|(few, a), (many, b)| many.cmp(few).then_with(|| a.cmp(b)));
    let skipped = rows.len().saturating_sub(SHOWN_SIGNATURES);
    for (nodes, signature) in rows.into_iter().take(SHOWN_SIGNATURES) {
        let _ = writeln!(text, "  {signature}: {}", plural(nodes, "node"));
    }
    if skipped > 0 {
        let _ = writeln!(text, "  .. and {}", plural(skipped as u64, "more signature"));
    }
    text
}

/// The summary of a plan.
pub(super) fn summary(plan: &Plan) -> String {
    let mut text = String::new();
    let rows: u64 = computing(plan).map(|(_, step)| u64::from(step.rows)).sum();
    let _ = writeln!(
        text,
        "plan of module {}, structure {}: {}, bound {}, {}, {} of slabs",
        plan.module,
        short_hash(plan.structure),
        plural(u64::from(plan.certificate.batches), "batch"),
        plan.certificate.bound,
        plural(rows, "row"),
        byte_size(plan.certificate.slab_bytes),
    );
    if plan.certificate.reverse_batches > 0 {
        let _ =
            writeln!(text, "  in reverse: {}", plural(u64::from(plan.certificate.reverse_batches), "batch"));
    }
    let kinds = Kinds::of(plan);
    for (kind, name) in kinds.names().iter().enumerate() {
        let rows: u64 = kinds.steps(plan, kind).map(|(_, step)| u64::from(step.rows)).sum();
        let steps = plural(kinds.steps(plan, kind).count() as u64, "step");
        let _ = writeln!(text, "  {name}: {steps}, {}", plural(rows, "row"));
    }
    text
}
