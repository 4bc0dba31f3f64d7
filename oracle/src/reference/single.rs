//! Evaluates and differentiates a single signature.
//!
//! The proof of plans compares derivative kernels with this module. It uses the same code as a whole graph: the node is
//! in an arena of its own, after a node that represents all its operands. The operands are random, so an index out of range
//! is clamped, as executors do before they report it.

use super::Noise;
use super::bound::{self, CallCost};
use super::constants::Constants;
use super::datum::{Argument, Datum};
use super::derivative::Partial;
use super::error::{Checked, RunError};
use super::frame::{Frame, Scope, Slots};
use super::reverse::partials;
use super::slices;
use super::uses::ParamUse;
use autobatch_ir::graph::{Arena, GraphData, Operand};
use autobatch_ir::id::{NodeId, SigId, SiteId, ValueId};
use autobatch_ir::numeric::Real;
use std::sync::Arc;

/// The index of the node in the arena of a [`Single`].
const NODE: usize = 1;

/// The noise and the constants of an evaluation.
#[derive(Clone, Copy)]
pub(crate) struct With {
    pub(crate) noise: Noise,
    pub(crate) constants: Constants,
}

/// One node with the elements of its operands.
pub(crate) struct Single<'g, T> {
    graph: &'g GraphData,
    params: &'g [Vec<T>],
    with: With,
    arena: Arena,
    slots: Slots<T>,
    pub(crate) results: Vec<Datum<T>>,
}

/// The gradients that the reverse of a node returns.
pub(crate) struct Returned<T> {
    pub(crate) operands: Vec<Partial<T>>,
    /// Of parameters, in ascending order of uses.
    pub(crate) params: Vec<ParamUse<T>>,
}

impl<'g, T: Real> Single<'g, T> {
    /// Evaluates a signature of a graph that [`costs`] accepted. `params` are the values of the module's parameters.
    /// A parameter that the signature does not take may be absent.
    pub(crate) fn new(
        graph: &'g GraphData,
        params: &'g [Vec<T>],
        with: With,
        sig: SigId,
        operands: Vec<Argument<T>>,
    ) -> Result<Self, RunError> {
        let signature = graph.sigs.get(sig);
        let mut arena = Arena::default();
        arena.push(sig, 0, &signature.operands, SiteId::new(0));
        let mark = arena.operand_mark();
        for operand in 0..operands.len() {
            arena.push_operand(Operand::value(ValueId::new(operand)));
        }
        arena.push(sig, mark, &signature.results, SiteId::new(0));
        let mut slots: Slots<T> = vec![None; arena.values()];
        for (index, operand) in operands.into_iter().enumerate() {
            slots[index] = Some(match operand {
                Argument::One(datum) => datum,
                Argument::Many(items) => {
                    let names = (slots.len()..slots.len() + items.len()).map(ValueId::new).collect();
                    slots.extend(items.into_iter().map(Some));
                    Datum::List(names)
                }
            });
        }
        let With { noise, constants } = with;
        let slices = slices(params);
        let scope = Scope { graph, params: &slices, floats: &[], noise, constants, clamps: true };
        let mut frame = Frame::of(&scope, &arena, slots);
        let node = NodeId::new(NODE);
        let results = frame.apply(node)?;
        let mut slots = frame.slots;
        for (slot, result) in arena.results(node).zip(&results) {
            slots[slot] = Some(result.clone());
        }
        Ok(Self { graph, params, with, arena, slots, results })
    }

    /// The reverse, given the gradients of the results; at least one must be present.
    pub(crate) fn reverse(&self, grads: &[Option<Arc<[T]>>]) -> Result<Returned<T>, RunError> {
        let With { noise, constants } = self.with;
        let params = &slices(self.params);
        let scope = Scope { graph: self.graph, params, floats: &[], noise, constants, clamps: true };
        let mut uses = Vec::new();
        let frame = Frame::of(&scope, &self.arena, self.slots.clone());
        let found = partials(&frame, NodeId::new(NODE), grads, &mut uses)?;
        uses.reverse();
        Ok(Returned { operands: found.unwrap_or_default(), params: uses })
    }
}

/// Checks a graph. Returns the cost of one call of each signature.
pub(crate) fn costs(graph: &GraphData) -> Checked<Vec<CallCost>> {
    bound::check(graph)?;
    bound::of_signatures(graph)
}
