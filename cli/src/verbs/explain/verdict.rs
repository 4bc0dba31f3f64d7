//! Verdicts on two values, in sentences and for machines.

use crate::spell;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_planner::schedule::Policy;
use serde_json::{Value as Json, json};

/// Values of a path that are shown at either end.
const SHOWN: usize = 4;

/// Why two values do or do not share a batch.
///
/// Two of the reasons belong to questions of their own: that nodes were merged into one, to a
/// graph that passes rewrite first; and that one was planned in an earlier delta, to a graph that
/// grew after a value was forced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They share a step.
    SameStep { step: u32 },
    /// One is computed from the other, along this path of nodes.
    Depends { path: Vec<NodeId> },
    /// They have different signatures; the part in which they differ.
    Signature { part: String },
    /// When the first ran, the second still waited for this node.
    NotReady { waits_for: NodeId, meeting: Meeting },
    /// Both could have run together; the policy chose otherwise.
    PolicyChoice { meeting: Meeting },
    /// The model asked that this one be a batch of its own.
    MarkedAlone { node: NodeId },
    /// This one is in no batch: a list, what a pass computed, or a number that this step brings in.
    Folded { node: NodeId, what: &'static str, step: Option<u32> },
    /// Nothing wanted needs this one.
    Dead { node: NodeId },
    /// A pass made them one node.
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

/// Whose word an answer to "could they have met?" is.
pub(super) struct Judge {
    pub(super) policy: Policy,
    /// Whether the plan came from a file, which does not say who made it, and no policy was named.
    pub(super) assumed: bool,
}

impl Meeting {
    fn words(self, judge: &Judge) -> String {
        let policy = &judge.policy;
        let answer = match self {
            Self::Batches(0) => {
                format!("yes, at no cost: policy {policy} needs as many batches with them together")
            }
            Self::Batches(more @ 1..) => format!("yes, but policy {policy} then needs {more} more in all"),
            Self::Batches(fewer) => format!("yes, and policy {policy} then needs {} fewer in all", -fewer),
            Self::Never => format!("no: policy {policy} runs them apart even if they wait for each other"),
        };
        match judge.assumed {
            true => format!("{answer}\n  the plan does not say which policy made it; --policy asks another"),
            false => answer,
        }
    }

    fn json(self, judge: &Judge) -> Json {
        let more = match self {
            Self::Batches(more) => Some(more),
            Self::Never => None,
        };
        json!({"policy": judge.policy.to_string(), "possible": more.is_some(), "more_batches": more})
    }
}

impl Verdict {
    /// The verdict for machines: its name, and what it speaks of.
    pub(super) fn json(&self, graph: &GraphData, judge: &Judge) -> Json {
        let value = |node: &NodeId| spell::first_value(graph, *node);
        match self {
            Self::SameStep { step } => json!({"name": "same-step", "step": step}),
            Self::Depends { path } => {
                json!({"name": "depends", "path": path.iter().map(value).collect::<Vec<_>>()})
            }
            Self::Signature { part } => json!({"name": "signature", "part": part}),
            Self::NotReady { waits_for, meeting } => {
                json!({"name": "not-ready", "waits_for": value(waits_for), "meeting": meeting.json(judge)})
            }
            Self::PolicyChoice { meeting } => {
                json!({"name": "policy-choice", "meeting": meeting.json(judge)})
            }
            Self::MarkedAlone { node } => json!({"name": "marked-alone", "value": value(node)}),
            Self::Folded { node, what, step } => {
                json!({"name": "folded", "value": value(node), "reason": what, "step": step})
            }
            Self::Merged => json!({"name": "merged"}),
            Self::DifferentDelta { early, late, forced } => {
                let [early, late, forced] = [early, late, forced].map(ToString::to_string);
                json!({"name": "different-delta", "early": early, "late": late, "forced": forced})
            }
            Self::Dead { node } => json!({"name": "dead", "value": value(node)}),
        }
    }
}

/// The verdict in sentences, the deciding line marked.
pub(super) fn words(
    graph: &GraphData,
    steps: &[Option<u32>],
    [a, b]: [ValueId; 2],
    verdict: &Verdict,
    judge: &Judge,
) -> String {
    let value = |node: NodeId| spell::first_value(graph, node);
    let sig = |value: ValueId| graph.arena.node(graph.arena.producer(value)).sig;
    let described = |node: NodeId| {
        let step = steps[node.index()].map_or_else(String::new, |step| format!(" (step {step})"));
        format!("{} {}{step}", value(node), spell::callee(graph, graph.arena.node(node).sig))
    };
    let same =
        format!("same signature {} = {}  -> may share a batch\n", sig(a), spell::signature(graph, sig(a)));
    let independent = "no path between them  -> independent\n";
    match verdict {
        Verdict::SameStep { step } if graph.arena.producer(a) == graph.arena.producer(b) => {
            format!("same-step: both are results of one node, in step {step}\n")
        }
        Verdict::SameStep { step } => format!("same-step: both are lanes of step {step}\n"),
        Verdict::Depends { path } => {
            let names: Vec<String> = path.iter().map(|&node| described(node)).collect();
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
                meeting.words(judge),
            )
        }
        Verdict::PolicyChoice { meeting } => format!(
            "{same}{independent}policy-choice: both were ready when the first ran; the policy held one back  -> this is why\ncould they have met?  {}\n",
            meeting.words(judge),
        ),
        Verdict::MarkedAlone { node } => {
            format!("marked alone: the model asked that {} be a batch of its own\n", described(*node))
        }
        Verdict::Folded { node, what, step } => {
            let callee = spell::callee(graph, graph.arena.node(*node).sig);
            let step = step.map_or_else(String::new, |step| format!(" (step {step} brings it in)"));
            format!("folded: {} {callee} is in no batch; {what}{step}\n", value(*node))
        }
        Verdict::Merged => format!(
            "merged (CSE): {a} and {b} are equal, so one node computes both  -> the question does not arise\n"
        ),
        Verdict::DifferentDelta { early, late, forced } => {
            let place = spell::site(graph, graph.arena.producer(*forced));
            let place = place.map_or_else(String::new, |site| format!(" at {site}"));
            format!(
                "different delta: {early} was planned when {forced}{place} was forced; {late} came later  -> never in one batch\nforce values later, or emit {late} before, and they may meet\n"
            )
        }
        Verdict::Dead { node } => {
            format!("dead: no output needs {}, so no step computes it\n", described(*node))
        }
    }
}
