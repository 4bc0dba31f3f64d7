//! Finds the reason why two values do or do not share a batch.
//!
//! The search tries reasons in an order in which each excludes the following ones: one step, no step, a
//! mark, the signature, a path, the schedule. To judge the schedule, the policy schedules again with the
//! two jobs constrained to become ready together.

mod verdict;

use crate::{Refused, load_policy, names};
use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{Mode, Plan};
use autobatch_planner::passes;
use autobatch_planner::schedule::{Policy, Problem, Scratch};
use autobatch_planner::{JobId, Jobs, Selection, TypeIndex};
use serde_json::{Value as Json, json};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use verdict::{Judge, Pair, SharedBatch, Verdict};

/// A question about two values.
#[derive(Clone, Debug)]
pub struct Question {
    /// The values.
    pub values: [ValueId; 2],
    /// The policy that judges whether a batch could hold both.
    pub policy: Policy,
    /// Whether the policy is a guess: the plan is from a file, which does not record its policy.
    pub assumed: bool,
    /// Whether to run the passes first.
    pub passes: bool,
    /// A value that the program read before it emitted the rest of the graph.
    pub forced: Option<ValueId>,
}

/// An answer, as text and as JSON.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Lines of text.
    pub text: String,
    /// The same facts as JSON.
    pub json: Json,
}

/// Says why two values of a graph share a batch of its plan or do not.
///
/// # Errors
/// If the plan does not fit the graph, a pass fails, or the policy cannot be loaded.
pub fn why(graph: &GraphData, plan: &Plan, question: &Question) -> Result<Answer, Refused> {
    let [a, b] = question.values;
    let steps = names::steps_of(graph, plan);
    let (mut text, mut described) = (String::new(), Vec::new());
    for value in [a, b] {
        let node = graph.arena.producer(value);
        let site = names::site(graph, node);
        let (callee, instance) =
            (names::callee(graph, graph.arena.node(node).sig), names::instance(graph, node));
        described.push(json!({
            "value": value.to_string(), "callee": callee, "step": steps[node.index()], "site": site,
            "instance": instance,
        }));
        let step = steps[node.index()].map_or_else(|| "no step".to_owned(), |step| format!("step {step}"));
        let site = site.map_or_else(String::new, |site| format!("  {site}"));
        let _ = writeln!(text, "{value}  {callee}  {step}{site}   {instance}");
    }
    let judge = Judge { policy: question.policy.clone(), assumed: question.assumed };
    let mut verdict = if question.passes { after_passes(graph, plan.mode, a, b)? } else { None };
    if let (None, Some(forced)) = (&verdict, question.forced) {
        verdict = in_deltas(graph, forced, a, b);
    }
    let verdict = match verdict {
        Some(verdict) => verdict,
        None => judge_by_plan(graph, &steps, &judge.policy, a, b)?,
    };
    let reason = Pair { graph, steps: &steps, values: [a, b] }.text(&verdict, &judge);
    let json =
        json!({"values": described, "verdict": verdict.json(graph, &judge), "text": reason.trim_end()});
    Ok(Answer { text: text + &reason, json })
}

/// The verdict if a pass of the mode decides: it merged both nodes or computed one of them.
fn after_passes(graph: &GraphData, mode: Mode, a: ValueId, b: ValueId) -> Result<Option<Verdict>, Refused> {
    let optimized = passes::optimize(graph, &[], mode, &Selection::of_mode(mode), &mut passes::all)
        .map_err(|failure| Refused::file(failure.to_string()))?;
    let found = |value| optimized.renaming.get(value);
    let producer = |value| graph.arena.producer(value);
    if producer(a) != producer(b) && found(a).is_some() && found(a) == found(b) {
        return Ok(Some(Verdict::Merged));
    }
    let constant = |graph: &GraphData, value| {
        let callee = graph.sigs.get(graph.arena.node(graph.arena.producer(value)).sig).callee;
        matches!(callee, Callee::Op(Op::Fill { .. }))
    };
    let folded = |&value: &ValueId| {
        let now = found(value);
        now.is_some_and(|now| constant(&optimized.graph, now) && !constant(graph, value))
    };
    let reason = "a pass computed it during planning: it depends on constants only";
    Ok([a, b].into_iter().find(folded).map(|value| Verdict::Folded {
        node: producer(value),
        reason,
        step: None,
    }))
}

/// The verdict if `forced` needs one value, which was therefore planned early, but not the other.
fn in_deltas(graph: &GraphData, forced: ValueId, a: ValueId, b: ValueId) -> Option<Verdict> {
    let mut first = vec![false; graph.arena.len()];
    first[graph.arena.producer(forced).index()] = true;
    let nodes: Vec<NodeId> = graph.arena.ids().collect();
    for &node in nodes.iter().rev() {
        if first[node.index()] {
            for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                first[graph.arena.producer(value).index()] = true;
            }
        }
    }
    let is_first = |value| first[graph.arena.producer(value).index()];
    match (is_first(a), is_first(b)) {
        (true, false) => Some(Verdict::DifferentDelta { early: a, late: b, forced }),
        (false, true) => Some(Verdict::DifferentDelta { early: b, late: a, forced }),
        _ => None,
    }
}

/// The verdict from the plan and the schedule.
fn judge_by_plan(
    graph: &GraphData,
    steps: &[Option<u32>],
    policy: &Policy,
    a: ValueId,
    b: ValueId,
) -> Result<Verdict, Refused> {
    let (a, b) = (graph.arena.producer(a), graph.arena.producer(b));
    let jobs = Jobs::new(graph, &[]);
    for node in [a, b] {
        if let Some(verdict) = without_step(graph, &jobs, steps, node) {
            return Ok(verdict);
        }
    }
    let (Some(step_a), Some(step_b)) = (steps[a.index()], steps[b.index()]) else {
        let message = "the plan has no step for a value that an output of the graph needs";
        return Err(Refused::file(message).help("autobatch check GRAPH PLAN finds the errors of a plan"));
    };
    if step_a == step_b {
        return Ok(Verdict::SameStep { step: step_a });
    }
    if let Some(&node) = [a, b].iter().find(|node| graph.alone.contains(node)) {
        return Ok(Verdict::MarkedAlone { node });
    }
    let problem = jobs.problem();
    let [job_a, job_b] =
        [a, b].map(|node| jobs.job(node).expect("a node with a step that is not a source is a job"));
    if problem.ty_of(job_a) != problem.ty_of(job_b) {
        let part = signature_part(graph, graph.arena.node(a).sig, graph.arena.node(b).sig);
        return Ok(Verdict::Signature { part });
    }
    let (early, late) = if job_a < job_b { (job_a, job_b) } else { (job_b, job_a) };
    if let Some(path) = path(&problem, early, late) {
        return Ok(Verdict::Depends { path: path.into_iter().map(|job| jobs.node(job)).collect() });
    }
    if *policy == Policy::None {
        return Ok(Verdict::NoBatching);
    }
    let shared = shared_batch(&problem, policy, early, late)?;
    let (first, second) = if step_a < step_b { (step_a, job_b) } else { (step_b, job_a) };
    let blocking = problem.operands(second).map(|operand| jobs.node(operand));
    let last = blocking.filter_map(|node| steps[node.index()].map(|step| (step, Reverse(node)))).max();
    Ok(match last {
        Some((step, Reverse(waits_for))) if step >= first => Verdict::NotReady { waits_for, shared },
        _ => Verdict::PolicyChoice { shared },
    })
}

/// The verdict on a node that is not a job: a list, a source or a dead node.
fn without_step(graph: &GraphData, jobs: &Jobs, steps: &[Option<u32>], node: NodeId) -> Option<Verdict> {
    if jobs.job(node).is_some() {
        return None;
    }
    let signature = graph.signature(node);
    if signature.is_list() {
        let reason = "a list is a name for other values and has no storage";
        return Some(Verdict::Folded { node, reason, step: None });
    }
    if let Some(step) = steps[node.index()] {
        let reason = "it is a constant, an input or a parameter";
        return Some(Verdict::Folded { node, reason, step: Some(step) });
    }
    Some(Verdict::Dead { node })
}

/// The name of the first part in which two signatures differ.
#[must_use]
pub fn signature_part(graph: &GraphData, a: SigId, b: SigId) -> String {
    let (one, two) = (graph.sigs.get(a), graph.sigs.get(b));
    match (one.callee, two.callee) {
        (Callee::Op(x), Callee::Op(y)) if x.spelling() != y.spelling() => return "callee".to_owned(),
        // The ordinal of a dropout separates its noise from that of other dropouts; models do not set it.
        (Callee::Op(Op::Dropout { rate: x, .. }), Callee::Op(Op::Dropout { rate: y, .. }))
            if x == y && one.callee != two.callee && one.operands == two.operands =>
        {
            return "dropout site".to_owned();
        }
        (Callee::Op(x), Callee::Op(y)) if x != y && one.operands == two.operands => {
            return "attribute".to_owned();
        }
        (Callee::Op(_), Callee::Op(_)) => {}
        (x, y) if x != y => return "callee".to_owned(),
        _ => {}
    }
    if one.operands != two.operands {
        return "operand type".to_owned();
    }
    if one.params != two.params {
        return "weights".to_owned();
    }
    "the source of indices: computed in one, a binding in the other".to_owned()
}

/// A path from an earlier job to a later job.
fn path(problem: &Problem<'_>, from: JobId, to: JobId) -> Option<Vec<JobId>> {
    let mut next = vec![None; problem.len()];
    let mut todo = vec![to];
    while let Some(job) = todo.pop() {
        for operand in problem.operands(job) {
            if operand >= from && next[operand.index()].is_none() {
                next[operand.index()] = Some(job);
                todo.push(operand);
            }
        }
    }
    let mut path = vec![from];
    while let Some(job) = next[path.last()?.index()] {
        path.push(job);
    }
    (path.len() > 1).then_some(path)
}

/// Schedules again, with each of two independent jobs waiting also for the operands of the other.
fn shared_batch(problem: &Problem<'_>, policy: &Policy, a: JobId, b: JobId) -> Result<SharedBatch, Refused> {
    let operands: Vec<Vec<JobId>> = problem
        .jobs()
        .map(|job| {
            let other = if job == a {
                Some(b)
            } else if job == b {
                Some(a)
            } else {
                None
            };
            let own = problem.operands(job);
            own.chain(other.into_iter().flat_map(|other| problem.operands(other))).collect()
        })
        .collect();
    let order = topological(&operands);
    let mut number = vec![JobId(0); order.len()];
    problem.jobs().zip(&order).for_each(|(new, job)| number[job.index()] = new);
    let ty: Vec<TypeIndex> = order.iter().map(|&job| problem.ty_of(job)).collect();
    let mut alone: Vec<JobId> = problem.alone().iter().map(|job| number[job.index()]).collect();
    alone.sort_unstable();
    let (mut start, mut flat) = (vec![0u32], Vec::new());
    for job in &order {
        flat.extend(operands[job.index()].iter().map(|operand| number[operand.index()]));
        start.push(flat.len() as u32);
    }
    let Ok(constrained) = Problem::new(problem.types(), &ty, &alone, &start, &flat) else {
        return Ok(SharedBatch::Never);
    };
    let policy = load_policy(policy)?;
    let mut scratch = Scratch::default();
    let before = policy.schedule(problem, &mut scratch).len() as i64;
    let batches = policy.schedule(&constrained, &mut scratch);
    let together = batches.iter().any(|batch| [a, b].iter().all(|job| batch.contains(&number[job.index()])));
    Ok(if together { SharedBatch::MoreBatches(batches.len() as i64 - before) } else { SharedBatch::Never })
}

/// A topological order of jobs; of several ready jobs, the smallest number comes first.
fn topological(operands: &[Vec<JobId>]) -> Vec<JobId> {
    let mut waits: Vec<usize> = operands.iter().map(Vec::len).collect();
    let mut consumers: Vec<Vec<JobId>> = vec![Vec::new(); operands.len()];
    for (job, operands) in (0..).map(JobId).zip(operands) {
        operands.iter().for_each(|operand| consumers[operand.index()].push(job));
    }
    let all = (0..operands.len() as u32).map(JobId);
    let mut ready: BinaryHeap<Reverse<JobId>> =
        all.filter(|job| waits[job.index()] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(operands.len());
    while let Some(Reverse(job)) = ready.pop() {
        order.push(job);
        for &consumer in &consumers[job.index()] {
            waits[consumer.index()] -= 1;
            if waits[consumer.index()] == 0 {
                ready.push(Reverse(consumer));
            }
        }
    }
    order
}
