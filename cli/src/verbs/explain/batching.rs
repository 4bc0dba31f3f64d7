//! What was not batched as far as it could be, and whether the order or the signatures are to blame.
//!
//! A type of job needs at least as many steps as its longest path has jobs of it. Where it has
//! more, some place in such a path is spread over several steps: jobs that are equally far down
//! their paths did not meet. Where one callee has several signatures, no order helps: the bound of
//! the problem with these signatures taken as one says what that costs.

use crate::spell;
use crate::words::plural;
use autobatch_ir::graph::{Callee, GraphData};
use autobatch_ir::id::{NodeId, SigId};
use autobatch_ir::plan::Plan;
use autobatch_planner::Jobs;
use autobatch_planner::schedule::{Problem, Scratch, path_sum_bound};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Something in more steps than it needs.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// `@char`
    pub(super) what: String,
    pub(super) steps: u32,
    pub(super) needed: u32,
    pub(super) cause: Cause,
}

/// Why it has more steps.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cause {
    /// The order: jobs equally far down their paths run in these steps; two values to ask about.
    Schedule { place: u32, steps: Vec<u32>, values: [String; 2] },
    /// The signatures: what they are, and what tells them apart.
    Signatures { signatures: Vec<String>, part: String },
    /// Nodes that the model marked as batches of their own.
    Alone { marked: u32 },
}

impl Finding {
    pub(super) fn extra(&self) -> u32 {
        self.steps - self.needed
    }

    /// One line, and the hint that leads further.
    pub(super) fn words(&self) -> String {
        let Self { what, steps, needed, cause } = self;
        let head =
            format!("{what} in {steps} steps, at least {needed} needed.  {} extra.  cause: ", self.extra());
        match cause {
            Cause::Schedule { place, steps, values: [a, b] } => {
                let shown: Vec<String> = steps.iter().take(4).map(u32::to_string).collect();
                let more = if steps.len() > 4 { ", .." } else { "" };
                let place = ordinal(*place);
                format!(
                    "{head}schedule - jobs that are the {place} {what} of their path run in steps {}{more} (--why {a} {b})",
                    shown.join(", ")
                )
            }
            Cause::Signatures { signatures, part } => {
                format!(
                    "{head}{} signatures, which differ in {part} - {}",
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

/// Findings, the most extra steps first.
pub(super) fn findings(graph: &GraphData, plan: &Plan) -> Vec<Finding> {
    let jobs = Jobs::new(graph, &[]);
    let problem = jobs.problem();
    let bound = path_sum_bound(&problem, &mut Scratch::default());
    let steps = spell::steps_of(graph, plan);
    let mut findings = Vec::new();
    let mut steps_of_type: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); problem.types() as usize];
    for (job, &node) in jobs.nodes().iter().enumerate() {
        steps_of_type[problem.ty()[job] as usize].extend(steps[node.index()]);
    }
    for ty in 0..problem.types() {
        let own = steps_of_type[ty as usize].len() as u32;
        let marked = problem.alone().iter().filter(|&&job| problem.ty()[job as usize] == ty).count() as u32;
        let needed = bound.per_type[ty as usize];
        let what = spell::callee(graph, jobs.signatures()[ty as usize]);
        if marked > 0 && own > needed {
            findings.push(Finding {
                what: what.clone(),
                steps: own,
                needed: own.saturating_sub(marked).max(needed),
                cause: Cause::Alone { marked },
            });
        }
        if own > needed + marked
            && let Some(cause) = spread(graph, &jobs, &problem, &steps, ty)
        {
            findings.push(Finding { what, steps: own, needed: needed + marked, cause });
        }
    }
    findings.extend(split_callees(graph, &jobs, &problem, &bound.per_type));
    findings.retain(|finding| finding.extra() > 0);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.extra()));
    findings
}

/// The place in paths of a type that is spread over the most steps.
fn spread(
    graph: &GraphData,
    jobs: &Jobs,
    problem: &Problem<'_>,
    steps: &[Option<u32>],
    ty: u32,
) -> Option<Cause> {
    let mut place = vec![0u32; problem.len()];
    let mut by_place: BTreeMap<u32, BTreeMap<u32, NodeId>> = BTreeMap::new();
    for job in 0..problem.len() {
        let below = problem.operands(job).iter().map(|&operand| place[operand as usize]).max().unwrap_or(0);
        place[job] = below + u32::from(problem.ty()[job] == ty);
        if problem.ty()[job] == ty {
            let node = jobs.nodes()[job];
            if let Some(step) = steps[node.index()] {
                by_place.entry(place[job]).or_default().entry(step).or_insert(node);
            }
        }
    }
    let (place, steps) =
        by_place.into_iter().max_by_key(|(place, steps)| (steps.len(), std::cmp::Reverse(*place)))?;
    let mut nodes = steps.values();
    let (&a, &b) = (nodes.next()?, nodes.next()?);
    let values = [spell::first_value(graph, a), spell::first_value(graph, b)];
    Some(Cause::Schedule { place, steps: steps.into_keys().collect(), values })
}

/// Callees whose signatures would need fewer steps if they were one.
fn split_callees(graph: &GraphData, jobs: &Jobs, problem: &Problem<'_>, per_type: &[u32]) -> Vec<Finding> {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (ty, &sig) in jobs.signatures().iter().enumerate() {
        groups.entry(kind(graph, sig)).or_default().push(ty as u32);
    }
    let mut findings = Vec::new();
    for (what, types) in groups.into_iter().filter(|(_, types)| types.len() > 1) {
        let needed = longest_path(problem, &types);
        let steps: u32 = types.iter().map(|&ty| per_type[ty as usize]).sum();
        if steps > needed {
            let sigs: Vec<SigId> = types.iter().map(|&ty| jobs.signatures()[ty as usize]).collect();
            let part = super::why::signature_part(graph, sigs[0], sigs[1]);
            let example = |ty: u32| {
                let first = problem.ty().iter().position(|&other| other == ty);
                first.and_then(|job| spell::site(graph, jobs.nodes()[job]))
            };
            let signatures = types.iter().zip(&sigs).map(|(&ty, &sig)| {
                let site = example(ty).map_or_else(String::new, |site| format!("{site} "));
                format!("{site}{}", spell::signature(graph, sig))
            });
            findings.push(Finding {
                what,
                steps,
                needed,
                cause: Cause::Signatures { signatures: signatures.collect(), part },
            });
        }
    }
    findings
}

/// The most jobs of these types on any path.
fn longest_path(problem: &Problem<'_>, types: &[u32]) -> u32 {
    let mut place = vec![0u32; problem.len()];
    for job in 0..problem.len() {
        let below = problem.operands(job).iter().map(|&operand| place[operand as usize]).max().unwrap_or(0);
        place[job] = below + u32::from(types.contains(&problem.ty()[job]));
    }
    place.into_iter().max().unwrap_or(0)
}

/// What two signatures must have in common for it to be worth saying that they differ: the cell,
/// or the op whatever its attributes are.
fn kind(graph: &GraphData, sig: SigId) -> String {
    match graph.sigs.get(sig).callee {
        Callee::Op(op) => op.spelling().to_owned(),
        Callee::Cell(_) => spell::callee(graph, sig),
    }
}
