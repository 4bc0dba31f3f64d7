//! `check`: proves that a plan computes its graph, or scores an order that another program made.

use super::plan::gap_in_words;
use crate::args::CheckArgs;
use crate::console::Console;
use crate::facts::computing;
use crate::failure::{Answer, Failure};
use crate::files::{load_graph, load_plan, one_standard_input, read};
use crate::planning;
use crate::words::{count, plural, sparkline};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_oracle::check::{Disagreements, PROBES, Proof, Wanted, check as prove};
use autobatch_planner::Jobs;
use autobatch_planner::schedule::{self, Batches, Policy, Scratch, Why, path_sum_bound};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// Checks a plan or an order.
pub fn check(args: &CheckArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.work_on();
    one_standard_input(std::iter::once(&args.graph).chain(&args.plan).chain(&args.batches))?;
    let graph = load_graph(&args.graph)?;
    let checked = match (&args.plan, &args.batches) {
        (Some(plan), _) => check_plan(&graph, &args.graph, plan)?,
        (None, Some(order)) => check_order(&graph, order)?,
        (None, None) => {
            let help = "name a plan, or an order with --batches FILE";
            return Err(Failure::usage("nothing to check").help(help));
        }
    };
    if args.json {
        writeln!(console, "{:#}", checked.json)?;
    } else {
        console.write_all(checked.text.as_bytes())?;
    }
    Ok(checked.answer)
}

/// The answer, for people and for machines.
struct Checked {
    answer: Answer,
    text: String,
    json: serde_json::Value,
}

fn check_plan(graph: &GraphData, graph_path: &str, path: &str) -> Result<Checked, Failure> {
    let plan = load_plan(path)?;
    let proof = match proof(&plan, graph) {
        Ok(proof) => proof,
        Err(disagreements) => {
            let text = format!(
                "not proven: {path} and {graph_path} disagree\n{disagreements}\n  = help: plan it anew: autobatch plan {graph_path} -o {path}\n"
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
            "reverse by structure: {}, gradients of {} and {}, {} followed",
            plural(proof.losses.len() as u64, "loss"),
            plural(proof.params.len() as u64, "parameter"),
            plural(proof.values.len() as u64, "value"),
            plural(proof.reverse_rows, "operand row"),
        );
        let _ = writeln!(
            text,
            "derivatives by example: {} equal to the reference on {PROBES} random lanes or more each",
            plural(proof.derivatives as u64, "kernel"),
        );
    }
    let _ = writeln!(
        text,
        "batches {}  bound {}  {}",
        certificate.batches,
        certificate.bound,
        gap_in_words(&plan)
    );
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
    prove(plan, graph, Wanted { values: &[], training: plan.mode == Mode::Train })
}

/// That a plan from a file computes a graph. The structure alone would not do: it says nothing of what cells compute.
pub(super) fn computes(
    (path, plan): (&str, &Verified<Plan>),
    (graph_path, graph): (&str, &GraphData),
) -> Result<(), Failure> {
    let refused = |message: String| {
        Failure::input(message).help(format!("plan it: autobatch plan {graph_path} -o {path}"))
    };
    if plan.structure != graph.structure() {
        return Err(refused(format!("{path} is a plan of another structure than {graph_path}")));
    }
    let disagree = |disagreements: Disagreements| {
        let found = disagreements.found();
        let first = found.first().map(ToString::to_string).unwrap_or_default();
        let more = found.len().saturating_sub(1);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        refused(format!("{path} does not compute {graph_path}: {first}{more}"))
    };
    proof(plan, graph).map(drop).map_err(disagree)
}

/// An order as other programs write it: a list of batches, bare or under a name.
#[derive(Deserialize)]
#[serde(untagged)]
enum OrderDoc {
    Bare(Vec<Vec<Named>>),
    Named { batches: Vec<Vec<Named>> },
}

/// A node: its number in the graph, `"a12"`, or one of its results, `"%12"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    Number(u64),
    Text(String),
}

impl Named {
    fn spelled(&self) -> String {
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
                None => parse(text.strip_prefix('a').unwrap_or(text)),
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
        let text = format!("not valid: {error}\n  = job n is {}\n", job_zero(&jobs));
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
        let ours = planning::schedule(graph, &policy)?.len();
        let more = ours as i64 - batches.len() as i64;
        let _ = writeln!(text, "{policy}: {} ({more:+})", plural(ours as u64, "batch"));
        policies.insert(policy.to_string(), ours);
    }
    let json = json!({
        "order": path, "valid": true, "batches": batches.len(), "nodes": problem.len(), "bound": bound,
        "gap": gap, "rows": sizes, "batches_by_policy": policies,
    });
    Ok(Checked { answer: Answer::Yes, text, json })
}

/// Jobs are numbered without sources, lists and what is not needed.
fn job_zero(jobs: &Jobs) -> String {
    let first = jobs.nodes().first().map_or_else(|| "none".to_owned(), ToString::to_string);
    format!("the n-th node that needs a step, from 0; job 0 is {first}")
}

/// Batches of jobs; nodes that need no step may be named and are left out.
fn read_order(graph: &GraphData, jobs: &Jobs, path: &str) -> Result<Batches, Failure> {
    let bytes = read(path)?;
    let help = "expected [[0, 1], [2]] or {\"batches\": ..}: nodes by number, or values such as \"%12\"";
    let json: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::input(format!("{path}: {error}")).help(help))?;
    let document = OrderDoc::deserialize(json)
        .map_err(|_| Failure::input(format!("{path}: no list of batches")).help(help))?;
    let (OrderDoc::Bare(lists) | OrderDoc::Named { batches: lists }) = document;
    let (mut start, mut items) = (vec![0u32], Vec::new());
    for (number, list) in lists.iter().enumerate() {
        let mut batch = Vec::new();
        for named in list {
            let Some(node) = named.node(graph) else {
                let message = format!(
                    "{path}: batch {number} names {}, which the graph does not have",
                    named.spelled()
                );
                return Err(Failure::input(message).help(help));
            };
            batch.extend(jobs.job(node).map(|job| job.0));
        }
        batch.sort_unstable();
        if !batch.is_empty() {
            items.extend(batch);
            start.push(items.len() as u32);
        }
    }
    Ok(Batches { start, items, bound: None, why: Why::Rule })
}
