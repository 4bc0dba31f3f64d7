//! The verdict: why two values do or do not share a batch, as text and as JSON.

use crate::names;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_planner::schedule::Policy;
use serde_json::{Value as Json, json};

/// Number of nodes of a path to show at either end.
const SHOWN: usize = 4;

/// Why two values do or do not share a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They share a step.
    SameStep { step: u32 },
    /// One value is computed from the other, along this path of nodes.
    Depends { path: Vec<NodeId> },
    /// Their signatures differ in this part.
    Signature { part: String },
    /// When the first ran, the second still waited for this node.
    NotReady { waits_for: NodeId, shared: SharedBatch },
    /// Both were ready when the first ran, but the policy separated them.
    PolicyChoice { shared: SharedBatch },
    /// The policy executes every node alone.
    NoBatching,
    /// The model marked this node as a batch of its own.
    MarkedAlone { node: NodeId },
    /// This node is in no batch: a list, a constant that a pass computed, or a source whose row the
    /// given step copies.
    Folded { node: NodeId, reason: &'static str, step: Option<u32> },
    /// No output needs this node.
    Dead { node: NodeId },
    /// A pass merged them into one node. Only [`Question::passes`](super::Question::passes) gives this verdict.
    Merged,
    /// The planner planned `early`, because `forced` needed it, before the program emitted `late`.
    /// Only [`Question::forced`](super::Question::forced) gives this verdict.
    DifferentDelta { early: ValueId, late: ValueId, forced: ValueId },
}

/// Whether a batch could hold both nodes, and at what cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedBatch {
    /// Yes; the schedule then has this number of additional batches (negative: fewer).
    MoreBatches(i64),
    /// No; the policy separates them even if each waits for the operands of the other.
    Never,
}

/// The policy that judges whether a batch could hold both nodes.
pub(super) struct Judge {
    pub(super) policy: Policy,
    /// Whether the policy is a guess: the plan is from a file, which does not record its policy.
    pub(super) assumed: bool,
}

impl SharedBatch {
    fn text(self, judge: &Judge) -> String {
        let policy = &judge.policy;
        let answer = match self {
            Self::MoreBatches(0) => {
                format!("yes, at no cost: policy {policy} then needs the same number of batches")
            }
            Self::MoreBatches(more @ 1..) => {
                format!("yes, but policy {policy} then needs {more} more in total")
            }
            Self::MoreBatches(fewer) => {
                format!("yes, and policy {policy} then needs {} fewer in total", -fewer)
            }
            Self::Never => {
                format!("no: policy {policy} separates them even if each waits for the operands of the other")
            }
        };
        let note = "\n  the plan does not record its policy; --policy selects another one";
        format!("could a batch hold both?  {answer}{}\n", if judge.assumed { note } else { "" })
    }

    fn json(self, judge: &Judge) -> Json {
        let more = match self {
            Self::MoreBatches(more) => Some(more),
            Self::Never => None,
        };
        json!({"policy": judge.policy.to_string(), "possible": more.is_some(), "more_batches": more})
    }
}

impl Verdict {
    /// The verdict as JSON: its name and its details.
    pub(super) fn json(&self, graph: &GraphData, judge: &Judge) -> Json {
        let value = |node: &NodeId| names::first_value(graph, *node);
        match self {
            Self::SameStep { step } => json!({"name": "same-step", "step": step}),
            Self::Depends { path } => {
                json!({"name": "depends", "path": path.iter().map(value).collect::<Vec<_>>()})
            }
            Self::Signature { part } => json!({"name": "signature", "part": part}),
            Self::NotReady { waits_for, shared } => {
                let shared = shared.json(judge);
                json!({"name": "not-ready", "waits_for": value(waits_for), "shared_batch": shared})
            }
            Self::PolicyChoice { shared } => {
                json!({"name": "policy-choice", "shared_batch": shared.json(judge)})
            }
            Self::NoBatching => json!({"name": "no-batching"}),
            Self::MarkedAlone { node } => json!({"name": "marked-alone", "value": value(node)}),
            Self::Folded { node, reason, step } => {
                json!({"name": "folded", "value": value(node), "reason": reason, "step": step})
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

/// Two values of a graph with the steps of its plan.
pub(super) struct Pair<'a> {
    pub(super) graph: &'a GraphData,
    pub(super) steps: &'a [Option<u32>],
    pub(super) values: [ValueId; 2],
}

impl Pair<'_> {
    /// The verdict as text, with an arrow at the decisive line.
    pub(super) fn text(&self, verdict: &Verdict, judge: &Judge) -> String {
        let [a, b] = self.values;
        let independent = "no path between them  -> independent\n";
        match verdict {
            Verdict::SameStep { step } if self.producer(a) == self.producer(b) => {
                format!("same-step: both are results of one node, in step {step}\n")
            }
            Verdict::SameStep { step } => format!("same-step: both are lanes of step {step}\n"),
            Verdict::Depends { path } => format!(
                "{}depends: one is computed from the other  -> never in one batch\n  {}\n",
                self.same_signature(),
                self.path(path)
            ),
            Verdict::Signature { part } => format!(
                "signature: they differ in {part}  -> never in one batch\n  {a}  {}\n  {b}  {}\n",
                self.signature(a),
                self.signature(b),
            ),
            Verdict::NotReady { waits_for, shared } => {
                let [first, second] = self.by_step();
                format!(
                    "{}{independent}not-ready: when {first} ran, {second} still waited for {}  -> this is why\n{}",
                    self.same_signature(),
                    self.node(*waits_for),
                    shared.text(judge),
                )
            }
            Verdict::PolicyChoice { shared } => format!(
                "{}{independent}policy-choice: both were ready when the first ran; the policy delayed one  -> this is why\n{}",
                self.same_signature(),
                shared.text(judge),
            ),
            Verdict::NoBatching => format!(
                "{}{independent}no-batching: policy none gives every node a step of its own  -> this is why\n",
                self.same_signature(),
            ),
            Verdict::MarkedAlone { node } => {
                format!("marked alone: the model marked {} as a batch of its own\n", self.node(*node))
            }
            Verdict::Folded { node, reason, step } => {
                let callee = names::callee(self.graph, self.graph.arena.node(*node).sig);
                let value = names::first_value(self.graph, *node);
                let step = step.map_or_else(String::new, |step| format!(" (step {step} copies it)"));
                format!("folded: {value} {callee} is in no batch; {reason}{step}\n")
            }
            Verdict::Merged => {
                format!(
                    "merged (CSE): {a} and {b} are equal, so one node computes both  -> always in one batch\n"
                )
            }
            Verdict::DifferentDelta { early, late, forced } => {
                let site = names::site(self.graph, self.producer(*forced));
                let site = site.map_or_else(String::new, |site| format!(" at {site}"));
                format!(
                    "different delta: {early} was planned when the program forced {forced}{site}, before it emitted {late}  -> never in one batch\nto share a batch, force values later, or emit {late} earlier\n"
                )
            }
            Verdict::Dead { node } => {
                format!("dead: no output needs {}, so no step computes it\n", self.node(*node))
            }
        }
    }

    fn producer(&self, value: ValueId) -> NodeId {
        self.graph.arena.producer(value)
    }

    fn signature(&self, value: ValueId) -> String {
        names::signature(self.graph, self.graph.arena.node(self.producer(value)).sig)
    }

    fn same_signature(&self) -> String {
        let [a, _] = self.values;
        let sig = self.graph.arena.node(self.producer(a)).sig;
        format!("same signature {sig} = {}  -> may share a batch\n", self.signature(a))
    }

    /// The two values in the order of their steps.
    fn by_step(&self) -> [ValueId; 2] {
        let [a, b] = self.values;
        let step = |value| self.steps[self.producer(value).index()];
        if step(a) < step(b) { [a, b] } else { [b, a] }
    }

    /// `%2 @b (step 3)`
    fn node(&self, node: NodeId) -> String {
        let step = self.steps[node.index()].map_or_else(String::new, |step| format!(" (step {step})"));
        let callee = names::callee(self.graph, self.graph.arena.node(node).sig);
        format!("{} {callee}{step}", names::first_value(self.graph, node))
    }

    /// The nodes of a path, without the middle of a long one.
    fn path(&self, path: &[NodeId]) -> String {
        let mut nodes: Vec<String> = path.iter().map(|&node| self.node(node)).collect();
        let skipped = nodes.len().saturating_sub(2 * SHOWN);
        if skipped > 1 {
            nodes.splice(SHOWN..SHOWN + skipped, [format!(".. {skipped} more ..")]);
        }
        nodes.join(" -> ")
    }
}
