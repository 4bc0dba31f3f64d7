//! `--why`: the one reason why two values do not share a batch, or that they do.
//!
//! Reasons are looked for in the order in which they exclude each other: one step, no step, a mark,
//! the signature, a path, and at last the order that was chosen, which is judged by letting the
//! policy plan again with the two bound together.

use super::spell;
use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::planning;
use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::{AppId, SigId, ValueId};
use autobatch_ir::plan::{Mode, Plan};
use autobatch_planner::passes;
use autobatch_planner::schedule::{Policy, Problem, Scratch};
use autobatch_planner::{Nodes, Selection};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;

/// Values of a path that are shown at either end.
const SHOWN: usize = 4;

/// Why two values do or do not share a batch.
///
/// Two of the reasons belong to questions of their own: that applications were merged into one, to a
/// graph that passes rewrite first; and that one was planned in an earlier delta, to a graph that
/// grew after a value was forced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They share a step.
    SameStep { step: u32 },
    /// One is computed from the other, along this path of applications.
    Depends { path: Vec<AppId> },
    /// They have different signatures; the part in which they differ.
    Signature { part: String },
    /// When the first ran, the second still waited for this application.
    NotReady { waits_for: AppId, meeting: Meeting },
    /// Both could have run together; the policy chose otherwise.
    PolicyChoice { meeting: Meeting },
    /// The model asked that this one be a batch of its own.
    MarkedAlone { app: AppId },
    /// This one has no step: a number that is there before the first step, or a list.
    Folded { app: AppId, what: &'static str },
    /// Nothing wanted needs this one.
    Dead { app: AppId },
    /// A pass made them one application.
    Merged,
    /// One is needed by a value that was forced before the other was planned.
    DifferentDelta { early: ValueId, late: ValueId, forced: ValueId },
}

/// What it would cost if the two met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// So many batches more, or fewer.
    Batches(i64),
    /// The policy would still run them apart.
    Never,
}

impl Meeting {
    fn words(self) -> String {
        match self {
            Self::Batches(0) => {
                "yes, at no cost: the policy needs as many batches with them together".to_owned()
            }
            Self::Batches(more @ 1..) => format!("yes, but the policy then needs {more} more in all"),
            Self::Batches(fewer) => format!("yes, and the policy then needs {} fewer in all", -fewer),
            Self::Never => "no: this policy runs them apart even if they wait for each other".to_owned(),
        }
    }
}

/// The report on two values, which are spelled `%12`.
pub(super) fn report(
    graph: &GraphData,
    plan: &Plan,
    args: &ExplainArgs,
    a: &str,
    b: &str,
) -> Result<String, Failure> {
    let (a, b) = (spell::value(graph, a)?, spell::value(graph, b)?);
    let steps = spell::steps_of(graph, plan);
    let mut text = String::new();
    for value in [a, b] {
        let app = graph.arena.producer(value);
        let step = steps[app.index()].map_or_else(|| "no step".to_owned(), |step| format!("step {step}"));
        let site = spell::site(graph, app).map_or_else(String::new, |site| format!("  {site}"));
        let callee = spell::callee(graph, graph.arena.app(app).sig);
        let _ = writeln!(text, "{value}  {callee}  {step}{site}   {}", spell::instance(graph, app));
    }
    let wish = args.wish.wish();
    let mut verdict = if args.passes { after_passes(graph, wish.mode, a, b)? } else { None };
    if let (None, Some(forced)) = (&verdict, &args.forced) {
        verdict = in_deltas(graph, spell::value(graph, forced)?, a, b);
    }
    let verdict = match verdict {
        Some(verdict) => verdict,
        None => judge(graph, &steps, &wish.policy, a, b)?,
    };
    text += &words(graph, &steps, a, b, &verdict);
    Ok(text)
}

/// The verdict if the passes of the mode decide: one application was made of both, or one is gone.
fn after_passes(graph: &GraphData, mode: Mode, a: ValueId, b: ValueId) -> Result<Option<Verdict>, Failure> {
    let optimized = passes::optimize(graph, &[], mode, &Selection::of_mode(mode), &mut passes::all)
        .map_err(|failure| Failure::input(failure.to_string()))?;
    let found = |value| optimized.renaming.get(value);
    let producer = |value| graph.arena.producer(value);
    if producer(a) != producer(b) && found(a).is_some() && found(a) == found(b) {
        return Ok(Some(Verdict::Merged));
    }
    let constant = |graph: &GraphData, value| {
        let callee = graph.sigs.get(graph.arena.app(graph.arena.producer(value)).sig).callee;
        matches!(callee, Callee::Op(Op::Fill { .. }))
    };
    let folded = |&value: &ValueId| {
        let now = found(value);
        now.is_some_and(|now| constant(&optimized.graph, now) && !constant(graph, value))
    };
    let what = "a pass computed it when planning: it depends on constants alone";
    Ok([a, b].into_iter().find(folded).map(|value| Verdict::Folded { app: producer(value), what }))
}

/// The verdict if one value was planned with `forced` and the other was not.
fn in_deltas(graph: &GraphData, forced: ValueId, a: ValueId, b: ValueId) -> Option<Verdict> {
    let mut first = vec![false; graph.arena.len()];
    first[graph.arena.producer(forced).index()] = true;
    let apps: Vec<AppId> = graph.arena.ids().collect();
    for &app in apps.iter().rev() {
        if first[app.index()] {
            for value in graph.arena.operands(app).iter().filter_map(|operand| operand.as_value()) {
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

/// The verdict on two values.
pub(super) fn judge(
    graph: &GraphData,
    steps: &[Option<u32>],
    policy: &Policy,
    a: ValueId,
    b: ValueId,
) -> Result<Verdict, Failure> {
    let (a, b) = (graph.arena.producer(a), graph.arena.producer(b));
    let nodes = Nodes::new(graph, &[]);
    for app in [a, b] {
        if let Some(verdict) = without_step(graph, &nodes, steps, app) {
            return Ok(verdict);
        }
    }
    let (Some(step_a), Some(step_b)) = (steps[a.index()], steps[b.index()]) else {
        let message = "the plan has no step for a value that the graph's outputs need";
        return Err(Failure::input(message).help("autobatch check GRAPH PLAN says what is wrong with a plan"));
    };
    if step_a == step_b {
        return Ok(Verdict::SameStep { step: step_a });
    }
    if let Some(&app) = [a, b].iter().find(|app| graph.alone.contains(app)) {
        return Ok(Verdict::MarkedAlone { app });
    }
    let problem = nodes.problem();
    let [node_a, node_b] =
        [a, b].map(|app| nodes.node(app).expect("what has a step and is no source is a node"));
    if problem.ty()[node_a as usize] != problem.ty()[node_b as usize] {
        let part = signature_part(graph, graph.arena.app(a).sig, graph.arena.app(b).sig);
        return Ok(Verdict::Signature { part });
    }
    let (early, late) = if node_a < node_b { (node_a, node_b) } else { (node_b, node_a) };
    if let Some(path) = path(&problem, early, late) {
        return Ok(Verdict::Depends {
            path: path.into_iter().map(|node| nodes.apps()[node as usize]).collect(),
        });
    }
    let meeting = meet(&problem, policy, early, late)?;
    let (first, second) = if step_a < step_b { (step_a, node_b) } else { (step_b, node_a) };
    let blocking = problem.operands(second as usize).iter().map(|&operand| nodes.apps()[operand as usize]);
    let last = blocking.filter_map(|app| steps[app.index()].map(|step| (step, Reverse(app)))).max();
    Ok(match last {
        Some((step, Reverse(waits_for))) if step >= first => Verdict::NotReady { waits_for, meeting },
        _ => Verdict::PolicyChoice { meeting },
    })
}

/// The verdict on what has no step of its own, or is a source.
fn without_step(graph: &GraphData, nodes: &Nodes, steps: &[Option<u32>], app: AppId) -> Option<Verdict> {
    if nodes.node(app).is_some() {
        return None;
    }
    let signature = graph.signature(app);
    if signature.is_list() {
        return Some(Verdict::Folded { app, what: "a list is a name for other values and has no storage" });
    }
    if steps[app.index()].is_some() {
        return Some(Verdict::Folded {
            app,
            what: "it is there before the first step: a constant, an input or a parameter",
        });
    }
    Some(Verdict::Dead { app })
}

/// The first part in which two signatures differ.
pub(super) fn signature_part(graph: &GraphData, a: SigId, b: SigId) -> String {
    let (one, two) = (graph.sigs.get(a), graph.sigs.get(b));
    match (one.callee, two.callee) {
        (Callee::Op(x), Callee::Op(y)) if x.spelling() != y.spelling() => return "callee".to_owned(),
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
    "where indices come from: computed in one, bound in the other".to_owned()
}

/// A path from an earlier node to a later one.
fn path(problem: &Problem<'_>, from: u32, to: u32) -> Option<Vec<u32>> {
    const UNSEEN: u32 = u32::MAX;
    let mut next = vec![UNSEEN; problem.len()];
    let mut todo = vec![to];
    while let Some(node) = todo.pop() {
        for &operand in problem.operands(node as usize) {
            if operand >= from && next[operand as usize] == UNSEEN {
                next[operand as usize] = node;
                todo.push(operand);
            }
        }
    }
    let mut path = vec![from];
    while next[*path.last()? as usize] != UNSEEN {
        path.push(next[*path.last()? as usize]);
    }
    (path.len() > 1).then_some(path)
}

/// Plans again with each of two independent nodes waiting for the operands of the other.
fn meet(problem: &Problem<'_>, policy: &Policy, a: u32, b: u32) -> Result<Meeting, Failure> {
    let len = problem.len();
    let operands: Vec<Vec<u32>> = (0..len as u32)
        .map(|node| {
            let other = if node == a {
                b
            } else if node == b {
                a
            } else {
                node
            };
            let mut all = problem.operands(node as usize).to_vec();
            if other != node {
                all.extend_from_slice(problem.operands(other as usize));
            }
            all
        })
        .collect();
    let order = topological(&operands);
    let mut number = vec![0u32; len];
    order.iter().enumerate().for_each(|(at, &node)| number[node as usize] = at as u32);
    let ty: Vec<u32> = order.iter().map(|&node| problem.ty()[node as usize]).collect();
    let mut alone: Vec<u32> = problem.alone().iter().map(|&node| number[node as usize]).collect();
    alone.sort_unstable();
    let (mut start, mut flat) = (vec![0u32], Vec::new());
    for &node in &order {
        flat.extend(operands[node as usize].iter().map(|&operand| number[operand as usize]));
        start.push(flat.len() as u32);
    }
    let Ok(bound_together) = Problem::new(problem.types(), &ty, &alone, &start, &flat) else {
        return Ok(Meeting::Never);
    };
    let policy = planning::policy(policy)?;
    let mut scratch = Scratch::default();
    let before = policy.schedule(problem, &mut scratch).len() as i64;
    let batches = policy.schedule(&bound_together, &mut scratch);
    let together =
        batches.iter().any(|batch| [a, b].iter().all(|&node| batch.contains(&number[node as usize])));
    Ok(if together { Meeting::Batches(batches.len() as i64 - before) } else { Meeting::Never })
}

/// Nodes in topological order, the smallest number first among those that are free.
fn topological(operands: &[Vec<u32>]) -> Vec<u32> {
    let mut waits: Vec<usize> = operands.iter().map(Vec::len).collect();
    let mut consumers: Vec<Vec<u32>> = vec![Vec::new(); operands.len()];
    for (node, operands) in operands.iter().enumerate() {
        operands.iter().for_each(|&operand| consumers[operand as usize].push(node as u32));
    }
    let mut free: BinaryHeap<Reverse<u32>> =
        (0..operands.len() as u32).filter(|&node| waits[node as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(operands.len());
    while let Some(Reverse(node)) = free.pop() {
        order.push(node);
        for &consumer in &consumers[node as usize] {
            waits[consumer as usize] -= 1;
            if waits[consumer as usize] == 0 {
                free.push(Reverse(consumer));
            }
        }
    }
    order
}

/// The verdict in sentences, the deciding line marked.
fn words(graph: &GraphData, steps: &[Option<u32>], a: ValueId, b: ValueId, verdict: &Verdict) -> String {
    let value = |app: AppId| spell::first_value(graph, app);
    let sig = |value: ValueId| graph.arena.app(graph.arena.producer(value)).sig;
    let described = |app: AppId| {
        let step = steps[app.index()].map_or_else(String::new, |step| format!(" (step {step})"));
        format!("{} {}{step}", value(app), spell::callee(graph, graph.arena.app(app).sig))
    };
    let same =
        format!("same signature {} = {}  -> may share a batch\n", sig(a), spell::signature(graph, sig(a)));
    let independent = "no path between them  -> independent\n";
    match verdict {
        Verdict::SameStep { step } if graph.arena.producer(a) == graph.arena.producer(b) => {
            format!("same-step: both are results of one application, in step {step}\n")
        }
        Verdict::SameStep { step } => format!("same-step: both are lanes of step {step}\n"),
        Verdict::Depends { path } => {
            let names: Vec<String> = path.iter().map(|&app| described(app)).collect();
            let skipped = names.len().saturating_sub(2 * SHOWN);
            let shown: Vec<String> = if skipped > 1 {
                let middle = format!(".. {skipped} more ..");
                names[..SHOWN]
                    .iter()
                    .cloned()
                    .chain([middle])
                    .chain(names[names.len() - SHOWN..].iter().cloned())
                    .collect()
            } else {
                names
            };
            format!(
                "{same}depends: one is computed from the other  -> never in one batch\n  {}\n",
                shown.join(" -> ")
            )
        }
        Verdict::Signature { part } => format!(
            "signature: they differ in {part}  -> never in one batch\n  {a}  {}\n  {b}  {}\n",
            spell::signature(graph, sig(a)),
            spell::signature(graph, sig(b)),
        ),
        Verdict::NotReady { waits_for, meeting } => {
            let (first, second) =
                if steps[graph.arena.producer(a).index()] < steps[graph.arena.producer(b).index()] {
                    (a, b)
                } else {
                    (b, a)
                };
            format!(
                "{same}{independent}not-ready: when {first} ran, {second} still waited for {}  -> this is why\ncould they have met?  {}\n",
                described(*waits_for),
                meeting.words(),
            )
        }
        Verdict::PolicyChoice { meeting } => format!(
            "{same}{independent}policy-choice: both were ready when the first ran; the policy held one back  -> this is why\ncould they have met?  {}\n",
            meeting.words(),
        ),
        Verdict::MarkedAlone { app } => {
            format!("marked alone: the model asked that {} be a batch of its own\n", described(*app))
        }
        Verdict::Folded { app, what } => format!("folded: {} is in no batch; {what}\n", described(*app)),
        Verdict::Merged => format!(
            "merged (CSE): {a} and {b} are equal, so one application computes both  -> the question does not arise\n"
        ),
        Verdict::DifferentDelta { early, late, forced } => {
            let place = spell::site(graph, graph.arena.producer(*forced));
            let place = place.map_or_else(String::new, |site| format!(" at {site}"));
            format!(
                "different delta: {early} was planned when {forced}{place} was forced; {late} came later  -> never in one batch\nforce values later, or emit {late} before, and they may meet\n"
            )
        }
        Verdict::Dead { app } => {
            format!("dead: no output needs {}, so no step computes it\n", described(*app))
        }
    }
}
