//! The proof of the reverse of a plan.
//!
//! The proof does not differentiate the graph. The graph and two facts per signature determine the reverse, and the
//! reference shows both by example: the operands that get contributions, and the uses of parameters.
//! * **Contributions.** The gradient of a value is the sum over its uses by nodes that a gradient reaches, in graph
//!   order, and then over its seeds. A reader of this gradient must read exactly these rows in exactly this order. A
//!   value that no gradient reaches has none.
//! * **Steps of the reverse.** Their kernels declare the role of every port and result. The proof takes the roles as
//!   untrusted hints. It verifies on every lane that a port reads the row of its role: an operand of the node, a
//!   result, a register that the forward step saved, or all contributions to the gradient of a result. It then executes
//!   the kernel beside the reference and compares each result with the contribution that its role names (see `class`).
//! * **Chains.** Attention contributes to an item by a chain over all nodes that attend to it. A step *pulls* it: its kernel is
//!   this one stage, its lane reads the item and, of every node of the chain in graph order, the row that its step in reverse
//!   made for readers (see `pulls`).
//! * **Reductions.** Each pair of rows is a part of what one node contributes to one parameter. Of every node that a
//!   gradient reaches, reductions take every part for every trained parameter exactly once, in the order that the graph
//!   defines (see `order`). So the bits of a gradient are a function of the graph and the rows.
//! * **Requested gradients.** An output `grad %3` holds the sum of all contributions to `%3`.
//! * **Arriving gradients.** A seed of a plan that pauses may be an arriving gradient. It must be the bound floats of an output,
//!   and be a contribution to the gradient of the value of this output, behind the seeds of losses.
//!
//! The seeds of the plan tell its losses. The proof reports them, so that a caller can compare them with its request.

mod class;
mod coverage;
mod equal_results;
mod order;
mod ports;
mod probe;
mod pulls;
mod reductions;
mod reference_derivative;
mod steps;
mod uses;

pub use probe::PROBES;

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{KernelId, Plan, StoreId, StoreKind};
use autobatch_ir::types::DType;
use class::Class;
use reference_derivative::ReferenceDerivatives;
use std::collections::BTreeMap;
use uses::Expected;

/// The content of a row that holds no value of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Nothing,
    /// A register that the forward step of a node saved.
    Saved {
        node: u32,
        number: u32,
    },
    /// A result of a derivative; of edges, the row of one value of the list.
    Made {
        class: u32,
        node: u32,
        result: u32,
        item: u32,
    },
    /// The contribution of a chain to an item of the list of its last node.
    Pulled {
        node: u32,
        contribution: u32,
        item: u32,
    },
    /// The gradient of results of a node. The number of a set names them, because results may have equal contributions.
    Sum {
        node: u32,
        results: u32,
    },
    /// The bits of the factor of a loss.
    Seed(u32),
    /// A gradient that arrives, by its place in the pause.
    Arrival(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    sig: SigId,
    forward: KernelId,
    kernel: KernelId,
    stores: Vec<StoreId>,
}

/// A class that was compared with the reference.
struct Derivative {
    sig: SigId,
    class: Class,
}

/// The state of the proof of a plan with a reverse.
pub(super) struct Reverse<'a> {
    /// For each row its content, unless it holds a value.
    pub(super) names: Vec<Name>,
    /// For each node the forward step that executed it, or `u32::MAX`.
    pub(super) forward: Vec<u32>,
    references: ReferenceDerivatives<'a>,
    expected: Expected,
    known: BTreeMap<Key, u32>,
    classes: Vec<Derivative>,
    /// By class, result that holds the rows of readers, and kernel that pulls from them: the first result that is not the
    /// contribution of the reference.
    pulls: BTreeMap<(u32, u32, KernelId), Option<usize>>,
    /// Sets of results, and their numbers.
    sets: Vec<Vec<u32>>,
    set_numbers: BTreeMap<Vec<u32>, u32>,
    /// Parts of contributions to parameters that reductions take: node and block.
    taken: Vec<(u32, u32)>,
    /// The number of operand rows of the reverse that were followed.
    rows: u64,
}

/// Returns whether a plan makes gradients.
fn is_training(plan: &Plan) -> bool {
    let stores = || plan.stores.iter().any(|store| matches!(store.kind, StoreKind::Grad(_)));
    plan.forward_steps() < plan.steps.len() || stores()
}

impl<'a> Reverse<'a> {
    /// Derives the requirements on the reverse of a plan from the graph; `None` for a plan without gradients.
    pub(super) fn of(
        plan: &Plan,
        graph: &'a GraphData,
        training: bool,
        losses: Option<&[(ValueId, f32)]>,
    ) -> Option<Self> {
        if !is_training(plan) {
            return None;
        }
        let float = |&(value, _): &(ValueId, f32)| {
            value.index() < graph.arena.values() && graph.type_of(value).dtype == DType::F32
        };
        let losses = match losses {
            Some(losses) => losses.iter().copied().filter(float).collect(),
            None => uses::losses(plan, graph),
        };
        let mut references = ReferenceDerivatives::new(graph, training);
        let arriving = uses::arriving(plan, graph);
        let expected = Expected::new(graph, &mut references, losses, arriving);
        Some(Self {
            names: Vec::new(),
            forward: vec![u32::MAX; graph.arena.len()],
            references,
            expected,
            known: BTreeMap::new(),
            classes: Vec::new(),
            pulls: BTreeMap::new(),
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

    /// Signatures that a gradient reaches and that the reference cannot execute.
    pub(super) fn unknown(&self) -> &[(SigId, NodeId)] {
        &self.expected.unknown
    }

    pub(super) fn losses(&self) -> &[(ValueId, f32)] {
        &self.expected.losses
    }

    /// The values whose gradients arrive at the pause.
    pub(super) fn arriving(&self) -> &[ValueId] {
        &self.expected.arriving
    }

    /// The numbers of examined signatures, derivative kernels and operand rows of the reverse.
    pub(super) fn counts(&self) -> (usize, usize, u64) {
        (self.references.examined, self.classes.len(), self.rows)
    }
}
