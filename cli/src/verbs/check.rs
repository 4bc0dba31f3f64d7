//! `check`: proves that a plan computes its graph, or scores an external order of batches.

use super::plan::gap_text;
use crate::args::CheckArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{load_graph, load_plan, one_standard_input, read};
use crate::limits::{LimitArgs, with_parameters};
use crate::planning;
use crate::progress::Waiting;
use autobatch_inspector::steps::computing;
use autobatch_inspector::text::{count, plural, sparkline};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_oracle::check::{Disagreements, PROBES, Proof, Wanted, check as prove};
use autobatch_planner::Jobs;
use autobatch_planner::schedule::{self, Batches, Policy, Scratch, StopReason, path_sum_bound};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// Checks a plan or an order of batches.
pub fn check(args: &CheckArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.ignore_closed_pipe();
    one_standard_input(std::iter::once(&args.graph).chain(&args.plan).chain(&args.batches))?;
    let graph = load_graph(&args.graph)?;
    let checked = match (&args.plan, &args.batches) {
        (Some(plan), _) => check_plan(&graph, args, plan)?,
        (None, Some(order)) => check_order(&graph, order)?,
        (None, None) => {
            let help = "name a plan, or an order of batches with --batches FILE";
            return Err(Failure::usage("check needs a plan or an order of batches").help(help));
        }
    };
    if args.json {
        writeln!(console, "{:#}", checked.json)?;
    } else {
        console.write_all(checked.text.as_bytes())?;
    }
    Ok(checked.answer)
}

/// The answer, as text and as JSON.
struct Checked {
    answer: Answer,
    text: String,
    json: serde_json::Value,
}

fn check_plan(graph: &GraphData, args: &CheckArgs, path: &str) -> Result<Checked, Failure> {
    let (graph_path, plan) = (&*args.graph, load_plan(path)?);
    // The proof follows every row, so a plan that describes more rows than memory holds is refused like its execution.
    let limits = LimitArgs { memory_limit: args.memory_limit, work_limit: Some(u64::MAX) };
    limits.check(path, &with_parameters(&plan, 1, &graph.module, false))?;
    let proof = match proof(&plan, graph) {
        Ok(proof) => proof,
        Err(disagreements) => {
            let text = format!(
                "not proven: {path} and {graph_path} disagree\n{disagreements}\n  = help: make a new plan: autobatch plan {graph_path} -o {}\n",
                new_plan_path(path)
            );
            let json = json!({
                "graph": graph_path, "plan": path, "proven": false, "disagreements": disagreements.to_string(),
            });
            return Ok(Checked { answer: Answer::No, text, json });
        }
    };
    let forward = plan.forward_steps();
    let computing = computing(&plan).filter(|(number, _)| *number < forward);
    let nodes: u64 = computing.map(|(_, step)| u64::from(step.rows)).sum();
    let certificate = &plan.certificate;
    let reads = certificate.direct + certificate.gathered;
    let mut text = format!(
        "proven: {path} computes {graph_path}: {}, {}, {}\n",
        plural(nodes, "node"),
        plural(reads, "operand read"),
        plural(plan.kernels.len() as u64, "kernel"),
    );
    if proof.has_reverse() {
        let _ = writeln!(
            text,
            "reverse proven by structure: {}, gradients of {} and {}, {} followed",
            plural(proof.losses.len() as u64, "loss"),
            plural(proof.params.len() as u64, "parameter"),
            plural(proof.values.len() as u64, "value"),
            plural(proof.reverse_rows, "operand row"),
        );
        let _ = writeln!(
            text,
            "derivatives tested by example: {} equal to the reference on at least {PROBES} random lanes each",
            plural(proof.derivatives as u64, "kernel"),
        );
    }
    let _ =
        writeln!(text, "batches {}  bound {}  {}", certificate.batches, certificate.bound, gap_text(&plan));
    let reverse = proof.has_reverse().then(|| {
        json!({
            "losses": proof.losses.len(), "parameters": proof.params.len(), "values": proof.values.len(),
            "operand_rows": proof.reverse_rows, "kernels_by_example": proof.derivatives,
        })
    });
    let json = json!({
        "graph": graph_path, "plan": path, "proven": true, "nodes": nodes, "operand_reads": reads,
        "kernels": plan.kernels.len(), "reverse": reverse, "batches": certificate.batches,
        "bound": certificate.bound, "gap": certificate.gap(),
    });
    Ok(Checked { answer: Answer::Yes, text, json })
}

/// Proves that a plan from a file computes the outputs of a graph.
fn proof(plan: &Verified<Plan>, graph: &GraphData) -> Result<Proof, Disagreements> {
    let _waiting = Waiting::new("proving");
    prove(plan, graph, Wanted { values: &[], training: plan.mode == Mode::Train })
}

/// A path beside a plan for a new plan. Advice must not overwrite a file of the user.
fn new_plan_path(path: &str) -> String {
    let path = std::path::Path::new(path);
    let form = path.extension().and_then(|extension| extension.to_str()).unwrap_or("abp");
    path.with_extension(format!("new.{form}")).display().to_string()
}

/// A graph or plan with the path of its file.
pub(super) struct InFile<'a, T> {
    pub(super) path: &'a str,
    pub(super) content: &'a T,
}

/// Proves that a plan computes a graph. Equal structure hashes are not enough, because the structure
/// does not cover the bodies of cells.
pub(super) fn check_computes(
    plan: &InFile<'_, Verified<Plan>>,
    graph: &InFile<'_, GraphData>,
) -> Result<(), Failure> {
    let InFile { path, content: plan } = plan;
    let InFile { path: graph_path, content: graph } = graph;
    let mismatch = |message: String| {
        Failure::input(message)
            .help(format!("make a new plan: autobatch plan {graph_path} -o {}", new_plan_path(path)))
    };
    if plan.structure != graph.structure() {
        return Err(mismatch(format!("{path} is a plan of another structure than {graph_path}")));
    }
    let not_proven = |disagreements: Disagreements| {
        let found = disagreements.found();
        let first = found.first().map(ToString::to_string).unwrap_or_default();
        let more = found.len().saturating_sub(1);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        mismatch(format!("{path} does not compute {graph_path}: {first}{more}"))
    };
    proof(plan, graph).map(drop).map_err(not_proven)
}

/// The JSON form of an order: a list of batches, or an object with the list as `batches`.
#[derive(Deserialize)]
#[serde(untagged)]
enum OrderDocument {
    List(Vec<Vec<NodeName>>),
    Object { batches: Vec<Vec<NodeName>> },
}

/// A node: its number, `"n12"`, or one of its results, `"%12"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum NodeName {
    Number(u64),
    Text(String),
}

impl NodeName {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    fn node(&self, graph: &GraphData) -> Option<NodeId> {
        let parse = |text: &str| text.parse::<usize>().ok();
        let node = match self {
            Self::Number(number) => usize::try_from(*number).ok(),
            Self::Text(text) => match text.strip_prefix('%') {
                Some(value) => {
                    let value = parse(value).filter(|&value| value < graph.arena.values());
                    value.map(|value| graph.arena.producer(ValueId::new(value)).index())
                }
                None => parse(text.strip_prefix('n').unwrap_or(text)),
            },
        };
        node.filter(|&node| node < graph.arena.len()).map(NodeId::new)
    }
}

fn check_order(graph: &GraphData, path: &str) -> Result<Checked, Failure> {
    let jobs = Jobs::new(graph, &[]);
    let problem = jobs.problem();
    let batches = read_order(graph, &jobs, path)?;
    let bound = path_sum_bound(&problem, &mut Scratch::default()).total;
    if let Err(error) = schedule::check(&problem, &batches) {
        let text = format!("not valid: {error}\n  = job n is {}\n", job_numbering(&jobs));
        let json = json!({"order": path, "valid": false, "error": error.to_string()});
        return Ok(Checked { answer: Answer::No, text, json });
    }
    let sizes: Vec<u32> = batches.iter().map(|batch| batch.len() as u32).collect();
    let gap = batches.len() as f64 / f64::from(bound.max(1)) - 1.0;
    let mut text = format!(
        "valid: {} of {}\nbound {bound}   gap {:.0} %   rows {} largest {}\n",
        plural(batches.len() as u64, "batch"),
        plural(problem.len() as u64, "node"),
        gap * 100.0,
        sparkline(&sizes, 24),
        count(sizes.iter().copied().max().unwrap_or(0))
    );
    let mut policies = BTreeMap::new();
    for policy in [Policy::Depth, Policy::Ratio, Policy::Beam(8)] {
        let found = planning::schedule(graph, &policy)?.len();
        let more = found as i64 - batches.len() as i64;
        let _ = writeln!(text, "{policy}: {} ({more:+})", plural(found as u64, "batch"));
        policies.insert(policy.to_string(), found);
    }
    let json = json!({
        "order": path, "valid": true, "batches": batches.len(), "nodes": problem.len(), "bound": bound,
        "gap": gap, "rows": sizes, "batches_by_policy": policies,
    });
    Ok(Checked { answer: Answer::Yes, text, json })
}

/// Explains the numbers of jobs in messages of the scheduler. Nodes without a step are not jobs.
fn job_numbering(jobs: &Jobs) -> String {
    let first = jobs.nodes().first().map_or_else(|| "none".to_owned(), ToString::to_string);
    format!("the n-th node that needs a step, starting at 0; job 0 is {first}")
}

/// Reads batches of jobs. Nodes that need no step are allowed in the file and ignored.
fn read_order(graph: &GraphData, jobs: &Jobs, path: &str) -> Result<Batches, Failure> {
    let bytes = read(path)?;
    let help = "expected [[0, 1], [2]] or {\"batches\": ..}: numbers of nodes, or values such as \"%12\"";
    let json: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::input(format!("{path}: {error}")).help(help))?;
    let document = OrderDocument::deserialize(json)
        .map_err(|_| Failure::input(format!("{path}: expected a list of batches")).help(help))?;
    let (OrderDocument::List(lists) | OrderDocument::Object { batches: lists }) = document;
    let (mut start, mut items) = (vec![0u32], Vec::new());
    for (number, list) in lists.iter().enumerate() {
        let mut batch = Vec::new();
        for name in list {
            let Some(node) = name.node(graph) else {
                let message = format!(
                    "{path}: batch {number} contains {}, but the graph has no such node",
                    name.text()
                );
                return Err(Failure::input(message).help(help));
            };
            batch.extend(jobs.job(node));
        }
        batch.sort_unstable();
        if !batch.is_empty() {
            items.extend(batch);
            start.push(items.len() as u32);
        }
    }
    Ok(Batches { start, items, bound: None, why: StopReason::Rule })
}
