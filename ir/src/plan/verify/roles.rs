//! Rule P36: where the reverse begins, and roles from there on.

use super::{AtStep, Rule, VerifyErrors};
use crate::id::NodeId;
use crate::plan::{Kernel, Plan, Step};
use std::collections::BTreeSet;

/// The roles of a kernel, if their numbers do not fit its ports and results.
pub(super) fn misfit(kernel: &Kernel) -> Option<String> {
    let roles = kernel.roles.as_ref()?;
    let (expected, found) =
        ((kernel.ports as usize, kernel.results.len()), (roles.ports.len(), roles.results.len()));
    (expected != found).then(|| {
        format!(
            "it must declare a role for each of {} ports and {} results, found {} and {}",
            expected.0, expected.1, found.0, found.1
        )
    })
}

/// The nodes that the forward steps of a plan executed.
#[derive(Clone, Debug, Default)]
pub(super) struct ForwardNodes {
    computed: NodeSet,
    /// Nodes that sources brought in. To bring a node in again does not begin the reverse.
    brought: NodeSet,
    /// Whether the walk is past the first step of the reverse.
    in_reverse: bool,
}

impl ForwardNodes {
    /// P36 of the steps from `since` on.
    pub(super) fn verify(&mut self, plan: &Plan, since: usize, findings: &mut VerifyErrors) {
        let first = plan.steps.get(since).map_or(plan.lanes.len(), |step| step.lanes.start as usize);
        let largest = plan.lanes[first..].iter().map(|node| node.index()).max().unwrap_or(0);
        if largest / 64 <= plan.lanes.len() {
            self.computed.reserve(largest);
            self.brought.reserve(largest);
        }
        for (number, step) in plan.steps.iter().enumerate().skip(since) {
            let kernel = plan.kernel(step);
            self.in_reverse |= kernel.roles.is_some();
            let message = match (self.in_reverse, kernel.roles.is_some()) {
                (true, true) => continue,
                (true, false) => "its kernel must declare roles, because it follows a step of the reverse",
                (false, _) if self.executes_again(plan, step, kernel) => {
                    "its kernel must declare roles, because it executes a node again"
                }
                (false, _) => {
                    let nodes = if kernel.source { &mut self.brought } else { &mut self.computed };
                    plan.lanes(step).iter().for_each(|&node| nodes.insert(node));
                    continue;
                }
            };
            findings.report(Rule::Roles, &AtStep { plan, step: number }, message);
            return;
        }
    }

    fn executes_again(&self, plan: &Plan, step: &Step, kernel: &Kernel) -> bool {
        let again = |&node: &NodeId| self.computed.has(node) || (!kernel.source && self.brought.has(node));
        plan.lanes(step).first().is_some_and(again)
    }
}

/// A set of nodes. Node numbers of a graph are dense; a hostile file may name a few sparse ones.
#[derive(Clone, Debug, Default)]
struct NodeSet {
    /// One bit per node.
    dense: Vec<u64>,
    sparse: BTreeSet<NodeId>,
}

impl NodeSet {
    /// Makes bits for numbers up to this one.
    fn reserve(&mut self, largest: usize) {
        if self.dense.len() <= largest / 64 {
            self.dense.resize(largest / 64 + 1, 0);
        }
    }

    fn has(&self, node: NodeId) -> bool {
        let bit = self.dense.get(node.index() / 64).is_some_and(|word| word >> (node.index() % 64) & 1 == 1);
        // A node may be in the sparse set from before the dense one grew.
        bit || (!self.sparse.is_empty() && self.sparse.contains(&node))
    }

    fn insert(&mut self, node: NodeId) {
        match self.dense.get_mut(node.index() / 64) {
            Some(word) => *word |= 1 << (node.index() % 64),
            None => drop(self.sparse.insert(node)),
        }
    }
}
