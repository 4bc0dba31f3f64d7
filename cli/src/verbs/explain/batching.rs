//! Kernels with more batches than one per depth, and whether the schedule or the signatures cause it.
//!
//! A type of jobs needs at least as many batches as the longest path has jobs of the type. If the plan
//! has more, the jobs at some depth of these paths are spread over several batches: the schedule is the
//! cause. If one callee has several signatures, no schedule can batch them together. The bound of the
//! problem with these signatures merged shows the cost. Signatures that differ in weights alone, such as the
//! two directions of a BiLSTM, are no missed batching.

use autobatch_inspector::names;
use autobatch_inspector::text::plural;
use autobatch_ir::graph::{Callee, GraphData};
use autobatch_ir::id::{NodeId, SigId};
use autobatch_ir::plan::Plan;
use autobatch_planner::schedule::{Problem, Scratch, path_sum_bound};
use autobatch_planner::{Jobs, TypeIndex};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A callee with more batches than it needs.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// `@char`
    pub(super) callee: String,
    pub(super) batches: u32,
    pub(super) needed: u32,
    pub(super) cause: Cause,
}

/// The cause of additional batches.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cause {
    /// The schedule: jobs of the same depth run in these steps. The two values are examples for `--why`.
    Schedule { depth: u32, steps: Vec<u32>, values: [String; 2] },
    /// The signatures, and the part in which they differ.
    Signatures { signatures: Vec<String>, part: String },
    /// The number of nodes that the model marked as batches of their own.
    Alone { marked: u32 },
}

impl Finding {
    pub(super) fn extra(&self) -> u32 {
        self.batches - self.needed
    }

    /// One line, with a hint for further questions.
    pub(super) fn text(&self) -> String {
        let Self { callee, batches, needed, cause } = self;
        let head = format!(
            "{callee} in {batches} batches, at least {needed} needed.  {} extra.  cause: ",
            self.extra()
        );
        match cause {
            Cause::Schedule { depth, steps, values: [a, b] } => {
                let shown: Vec<String> = steps.iter().take(4).map(u32::to_string).collect();
                let more = if steps.len() > 4 { ", .." } else { "" };
                let depth = ordinal(*depth);
                format!(
                    "{head}schedule - jobs that are the {depth} {callee} of their path run in steps {}{more} (--why {a} {b})",
                    shown.join(", ")
                )
            }
            Cause::Signatures { signatures, part } => {
                format!(
                    "{callee} in {batches} batches.  No schedule merges its {} signatures, which differ in {part}; one signature would need {needed} - {}",
                    signatures.len(),
                    signatures.join(" | ")
                )
            }
            Cause::Alone { marked } => {
                format!("{head}marked alone: {}", plural(u64::from(*marked), "node"))
            }
        }
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// All findings, the most additional batches first.
pub(super) fn findings(graph: &GraphData, plan: &Plan) -> Vec<Finding> {
    let jobs = Jobs::new(graph, &[]);
    let problem = jobs.problem();
    let bound = path_sum_bound(&problem, &mut Scratch::default());
    let steps = names::steps_of(graph, plan);
    let mut findings = Vec::new();
    let mut steps_of_type: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); problem.types() as usize];
    for (ty, node) in problem.ty().iter().zip(jobs.nodes()) {
        steps_of_type[ty.index()].extend(steps[node.index()]);
    }
    for ty in (0..problem.types()).map(TypeIndex) {
        let own = steps_of_type[ty.index()].len() as u32;
        let marked = problem.alone().iter().filter(|&&job| problem.ty_of(job) == ty).count() as u32;
        let needed = bound.per_type[ty.index()];
        let callee = names::callee(graph, jobs.signatures()[ty.index()]);
        if marked > 0 && own > needed {
            findings.push(Finding {
                callee: callee.clone(),
                batches: own,
                needed: own.saturating_sub(marked).max(needed),
                cause: Cause::Alone { marked },
            });
        }
        if own > needed + marked
            && let Some(cause) = spread(graph, &jobs, &problem, &steps, ty)
        {
            findings.push(Finding { callee, batches: own, needed: needed + marked, cause });
        }
    }
    findings.extend(split_callees(graph, &jobs, &problem, &bound.per_type));
    findings.retain(|finding| finding.extra() > 0);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.extra()));
    findings
}

/// The depth in the paths of a type whose jobs are spread over the most steps.
fn spread(
    graph: &GraphData,
    jobs: &Jobs,
    problem: &Problem<'_>,
    steps: &[Option<u32>],
    ty: TypeIndex,
) -> Option<Cause> {
    let depth = depths(problem, &[ty]);
    let mut by_depth: BTreeMap<u32, BTreeMap<u32, NodeId>> = BTreeMap::new();
    for (job, depth) in problem.jobs().zip(depth) {
        if problem.ty_of(job) == ty {
            let node = jobs.node(job);
            if let Some(step) = steps[node.index()] {
                by_depth.entry(depth).or_default().entry(step).or_insert(node);
            }
        }
    }
    let (depth, steps) =
        by_depth.into_iter().max_by_key(|(depth, steps)| (steps.len(), std::cmp::Reverse(*depth)))?;
    let mut nodes = steps.values();
    let (&a, &b) = (nodes.next()?, nodes.next()?);
    let values = [names::first_value(graph, a), names::first_value(graph, b)];
    Some(Cause::Schedule { depth, steps: steps.into_keys().collect(), values })
}

/// Callees whose signatures would need fewer batches if they were one signature.
fn split_callees(graph: &GraphData, jobs: &Jobs, problem: &Problem<'_>, per_type: &[u32]) -> Vec<Finding> {
    let mut groups: BTreeMap<String, Vec<TypeIndex>> = BTreeMap::new();
    for (ty, &sig) in (0..).map(TypeIndex).zip(jobs.signatures()) {
        groups.entry(callee_name(graph, sig)).or_default().push(ty);
    }
    let mut findings = Vec::new();
    for (callee, types) in groups.into_iter().filter(|(_, types)| types.len() > 1) {
        let needed = depths(problem, &types).into_iter().max().unwrap_or(0);
        let batches: u32 = types.iter().map(|ty| per_type[ty.index()]).sum();
        if batches > needed {
            let sigs: Vec<SigId> = types.iter().map(|ty| jobs.signatures()[ty.index()]).collect();
            let part = autobatch_inspector::why::signature_part(graph, sigs[0], sigs[1]);
            // No schedule and no change of shapes batches nodes with different weights: nothing is missed.
            let differs_in_weights =
                |&sig: &SigId| autobatch_inspector::why::signature_part(graph, sigs[0], sig) == "weights";
            if sigs[1..].iter().all(differs_in_weights) {
                continue;
            }
            let example = |ty: TypeIndex| {
                let first = problem.ty().iter().position(|&other| other == ty);
                first.and_then(|job| names::site(graph, jobs.nodes()[job]))
            };
            let signatures = types.iter().zip(&sigs).map(|(&ty, &sig)| {
                let site = example(ty).map_or_else(String::new, |site| format!("{site} "));
                format!("{site}{}", names::signature(graph, sig))
            });
            findings.push(Finding {
                callee,
                batches,
                needed,
                cause: Cause::Signatures { signatures: signatures.collect(), part },
            });
        }
    }
    findings
}

/// For each job, the maximum number of jobs of these types on a path that ends there.
fn depths(problem: &Problem<'_>, types: &[TypeIndex]) -> Vec<u32> {
    let mut depth = vec![0u32; problem.len()];
    for job in problem.jobs() {
        let below = problem.operands(job).map(|operand| depth[operand.index()]).max().unwrap_or(0);
        depth[job.index()] = below + u32::from(types.contains(&problem.ty_of(job)));
    }
    depth
}

/// The name of a cell's body, or of an op without its attributes. A report groups signatures by this name.
fn callee_name(graph: &GraphData, sig: SigId) -> String {
    match graph.sigs.get(sig).callee {
        Callee::Op(op) => op.spelling().to_owned(),
        callee @ Callee::Cell(_) => graph.module.callee_name(callee),
    }
}
