//! The certificate: how good a plan is, in numbers that others recompute. It compares like with
//! like: the bound is one on forward batches, so the batches of the reverse are counted apart.

use super::{Plan, Step};
use crate::id::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How good the plan is, in numbers that the verifier recomputes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Forward steps that compute nodes; those that only bring in bound numbers, constants and
    /// parameters are not counted.
    pub batches: u32,
    /// Steps of the reverse, which nothing bounds: the bound is one on forward batches. Seeds of
    /// losses are not counted.
    #[serde(default)]
    pub reverse_batches: u32,
    /// No schedule has fewer batches than this.
    pub bound: u32,
    /// Rows moved by steps that do nothing else.
    pub copied: u64,
    /// Operand rows read through a table.
    pub gathered: u64,
    /// Operand rows read in place.
    pub direct: u64,
    /// Bytes of all slabs.
    pub slab_bytes: u64,
}

impl Certificate {
    /// How many batches more than the bound, as a share of the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.bound == 0 { 0.0 } else { f64::from(self.batches) / f64::from(self.bound) - 1.0 }
    }
}

impl Plan {
    /// How many steps come before the reverse: it begins with the first step whose first lane was
    /// executed before. All of them, if there is none. Constants are brought in as often as fields
    /// want them, which computes nothing: what was brought in comes again where a step computes of it.
    #[must_use]
    pub fn forward_steps(&self) -> usize {
        Forward::default().go_on(self, 0)
    }
}

/// The nodes that the steps of a plan executed, until one of them comes again.
#[derive(Clone, Debug, Default)]
pub(super) struct Forward {
    computed: Nodes,
    /// Those that were brought in. To bring them in again is not yet the reverse.
    brought: Nodes,
    /// The first step of the reverse, if it was met.
    reverse: Option<usize>,
}

/// A set of nodes.
#[derive(Clone, Debug, Default)]
struct Nodes {
    /// A bit each. Numbers of nodes are dense; those of a file that lies are few.
    dense: Vec<u64>,
    sparse: BTreeSet<NodeId>,
}

impl Forward {
    /// Goes on from a step up to which it was asked before; gives how many steps come before the reverse.
    pub(super) fn go_on(&mut self, plan: &Plan, since: usize) -> usize {
        let lanes_of =
            |step: &Step| plan.lanes.get(step.lanes.start as usize..step.lanes.end as usize).unwrap_or(&[]);
        let first = plan.steps.get(since).map_or(plan.lanes.len(), |step| step.lanes.start as usize);
        let new = plan.lanes.get(first..).unwrap_or(&[]);
        let largest = new.iter().map(|node| node.index()).max().unwrap_or(0);
        if largest / 64 <= plan.lanes.len() {
            self.computed.reach(largest);
            self.brought.reach(largest);
        }
        for (number, step) in plan.steps.iter().enumerate().skip(since) {
            if self.reverse.is_some() {
                break;
            }
            let lanes = lanes_of(step);
            let source = plan.kernels.get(step.kernel.index()).is_some_and(|kernel| kernel.source);
            let again = |&node: &NodeId| self.computed.has(node) || (!source && self.brought.has(node));
            if lanes.first().is_some_and(again) {
                self.reverse = Some(number);
            } else {
                let executed = if source { &mut self.brought } else { &mut self.computed };
                lanes.iter().for_each(|&node| executed.insert(node));
            }
        }
        self.reverse.unwrap_or(plan.steps.len())
    }
}

impl Nodes {
    /// Makes room for numbers up to this one.
    fn reach(&mut self, largest: usize) {
        if self.dense.len() <= largest / 64 {
            self.dense.resize(largest / 64 + 1, 0);
        }
    }

    fn has(&self, node: NodeId) -> bool {
        let bit = self.dense.get(node.index() / 64).is_some_and(|word| word >> (node.index() % 64) & 1 == 1);
        // What was sparse once may be among the dense ones now.
        bit || (!self.sparse.is_empty() && self.sparse.contains(&node))
    }

    fn insert(&mut self, node: NodeId) {
        match self.dense.get_mut(node.index() / 64) {
            Some(word) => *word |= 1 << (node.index() % 64),
            None => drop(self.sparse.insert(node)),
        }
    }
}
