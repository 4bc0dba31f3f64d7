//! The reverse of a plan, certified by structure; its kernels beside the reference.
//!
//! The graph is not differentiated a second time. What the reverse must be follows from the graph
//! and from two facts a signature, which the reference tells by example: which operands get
//! contributions, and which parameters are used (see `truth`).
//! * **Contributions.** The gradient of a value is the sum over its uses by nodes that a
//!   gradient reaches, in the order of the graph, then over its seeds. Whatever folds it must read
//!   exactly those rows in exactly that order; of a value that no gradient reaches, none.
//! * **Steps in reverse.** Its lanes were executed before. Each of its ports takes one thing of every lane:
//!   an operand of the node, a result, a register that its forward step saved (the rows
//!   still hold them, because rows are followed by name), or the complete contributions to a
//!   result's gradient. What its results are is found by executing the kernel (see `class`), so a row
//!   is a contribution because it has the numbers of one, whatever the plan calls it.
//! * **Reductions.** Each row pair is a part of the contribution of one node to one parameter;
//!   of every node that a gradient reaches, all parts of all contributions to the parameters
//!   that get gradients are taken exactly once.
//! * **Gradients asked for.** An output `grad %3` holds the fold of all contributions to `%3`.
//!
//! Which values are losses is read off the plan's seeds and reported; whoever asked for other losses
//! compares.

mod alike;
mod class;
mod reductions;
mod roles;
mod steps;
mod truth;
mod uses;

pub use truth::PROBES;

use super::{brings_constant, constant_bits};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{SigId, ValueId};
use autobatch_ir::plan::{KernelId, Plan, StoreId, StoreKind};
use class::{Class, Role};
use std::collections::BTreeMap;
use truth::Truths;
use uses::Expected;

/// What a row holds that is no value of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Nothing,
    /// A register that the forward step of a node saved.
    Save {
        node: u32,
        number: u32,
    },
    /// A result in reverse; of edges, that of one value of the list.
    Made {
        class: u32,
        node: u32,
        result: u32,
        item: u32,
    },
    /// The gradient of results of a node, by the number of their set: one row may be what several get.
    Sum {
        node: u32,
        results: u32,
    },
    /// The gradient that a loss begins with.
    Seed(u32),
}

/// What a class is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    sig: SigId,
    forward: KernelId,
    kernel: KernelId,
    stores: Vec<StoreId>,
    /// See [`Derivative`].
    sums: Vec<u32>,
    roles: Vec<Role>,
}

/// A class that was certified.
struct Derivative {
    sig: SigId,
    class: Class,
    /// Results whose gradients it makes: of a mere sum.
    sums: Vec<u32>,
}

/// What is known while a plan with a reverse is executed on names.
pub(super) struct Reverse<'a> {
    /// Per row, where it holds no value.
    pub(super) names: Vec<Name>,
    /// Per node the step that executed it, or `u32::MAX`.
    pub(super) forward: Vec<u32>,
    truths: Truths<'a>,
    expected: Expected,
    known: BTreeMap<Key, u32>,
    classes: Vec<Derivative>,
    /// Sets of results, and their numbers.
    sets: Vec<Vec<u32>>,
    set_numbers: BTreeMap<Vec<u32>, u32>,
    /// Parts of contributions to parameters that reductions take: node and block.
    taken: Vec<(u32, u32)>,
    /// Operand rows in reverse that were followed.
    rows: u64,
}

/// Whether a plan makes gradients: it executes nodes again, constants aside, or has stores for gradients.
fn is_training(plan: &Plan, graph: &GraphData) -> bool {
    let mut executed = vec![false; graph.arena.len()];
    let again = plan.steps.iter().any(|step| {
        let first = plan.lanes(step).first();
        let again = first.is_some_and(|node| executed.get(node.index()) == Some(&true));
        let again = again && !brings_constant(plan, graph, step);
        for node in plan.lanes(step) {
            if let Some(executed) = executed.get_mut(node.index()) {
                *executed = true;
            }
        }
        again
    });
    again || plan.stores.iter().any(|store| matches!(store.kind, StoreKind::Grad(_)))
}

impl<'a> Reverse<'a> {
    /// What the reverse of a plan must be; `None` of a plan that makes no gradients.
    pub(super) fn of(
        plan: &Plan,
        graph: &'a GraphData,
        training: bool,
        losses: Option<&[(ValueId, f32)]>,
    ) -> Option<Self> {
        let seeded = uses::losses(plan, graph);
        if seeded.is_empty() && !is_training(plan, graph) {
            return None;
        }
        let float = |&(value, _): &(ValueId, f32)| {
            value.index() < graph.arena.values()
                && graph.type_of(value).dtype == autobatch_ir::types::DType::F32
        };
        let losses = match losses {
            Some(losses) => losses.iter().copied().filter(float).collect(),
            None => seeded,
        };
        let mut truths = Truths::new(graph, training);
        let expected = Expected::new(graph, &mut truths, losses);
        Some(Self {
            names: Vec::new(),
            forward: vec![u32::MAX; graph.arena.len()],
            truths,
            expected,
            known: BTreeMap::new(),
            classes: Vec::new(),
            sets: Vec::new(),
            set_numbers: BTreeMap::new(),
            taken: Vec::new(),
            rows: 0,
        })
    }

    /// The number of a set of results.
    fn set(&mut self, results: Vec<u32>) -> u32 {
        let next = self.sets.len() as u32;
        let number = *self.set_numbers.entry(results.clone()).or_insert(next);
        if number == next {
            self.sets.push(results);
        }
        number
    }

    /// Signatures that a gradient reaches and that are too large to be executed.
    pub(super) fn unknown(&self) -> &[(SigId, autobatch_ir::id::NodeId)] {
        &self.expected.unknown
    }

    /// The losses of the plan.
    pub(super) fn losses(&self) -> &[(ValueId, f32)] {
        &self.expected.losses
    }

    /// How many signatures, derivative kernels and operand rows in reverse were looked at.
    pub(super) fn counts(&self) -> (usize, usize, u64) {
        (self.truths.examined, self.classes.len(), self.rows)
    }
}
