//! One node alone: what a signature makes of numbers, and what its reverse hands back.
//!
//! The proof of plans executes derivative kernels against this, so it goes the same way as a whole
//! graph does: the node stands in an arena of its own, behind one that stands for
//! everything that it reads.

use super::Noise;
use super::bound;
use super::datum::{Argument, Datum};
use super::derivative::Partial;
use super::error::{Checked, RunError};
use super::frame::{Level, Scope, Slots, apply};
use super::reverse::partials;
use super::uses::ParamUse;
use autobatch_ir::graph::{Arena, GraphData, Operand};
use autobatch_ir::id::{NodeId, SigId, SiteId, ValueId};
use autobatch_ir::numeric::Real;
use std::sync::Arc;

/// The node of an arena of [`Single`].
const APP: usize = 1;

/// One node with the numbers that it reads.
pub(crate) struct Single<'g, T> {
    graph: &'g GraphData,
    params: &'g [Vec<T>],
    noise: Noise,
    arena: Arena,
    slots: Slots<T>,
    /// What it made, by result.
    pub(crate) results: Vec<Datum<T>>,
}

/// What the reverse of a node hands back.
pub(crate) struct Returned<T> {
    /// To its operands.
    pub(crate) operands: Vec<Partial<T>>,
    /// To parameters, in ascending order.
    pub(crate) params: Vec<ParamUse<T>>,
}

impl<'g, T: Real> Single<'g, T> {
    /// Evaluates a signature of a graph that [`costs`] found sound. `params` are the numbers of the
    /// module's parameters, of which only those need to be there that the signature takes.
    pub(crate) fn new(
        graph: &'g GraphData,
        params: &'g [Vec<T>],
        noise: Noise,
        sig: SigId,
        operands: Vec<Argument<T>>,
    ) -> Result<Self, RunError> {
        let signature = graph.sigs.get(sig);
        let mut arena = Arena::default();
        arena.push(sig, 0, &signature.operands, SiteId::new(0));
        let mark = arena.operand_mark();
        for place in 0..operands.len() {
            arena.push_operand(Operand::value(ValueId::new(place)));
        }
        arena.push(sig, mark, &signature.results, SiteId::new(0));
        let mut slots: Slots<T> = vec![None; arena.values()];
        for (place, operand) in operands.into_iter().enumerate() {
            slots[place] = Some(match operand {
                Argument::One(datum) => datum,
                Argument::Many(items) => {
                    let names = (slots.len()..slots.len() + items.len()).map(ValueId::new).collect();
                    slots.extend(items.into_iter().map(Some));
                    Datum::List(names)
                }
            });
        }
        let mut single = Self { graph, params, noise, arena, slots, results: Vec::new() };
        let node = NodeId::new(APP);
        let results = {
            let scope = Scope { graph, params, floats: &[], noise };
            apply(&scope, &Level::of(&single.arena), &mut single.slots, node)?
        };
        for (slot, result) in single.arena.results(node).zip(&results) {
            single.slots[slot] = Some(result.clone());
        }
        single.results = results;
        Ok(single)
    }

    /// The reverse, given a gradient for each result that gets one, at least for one.
    pub(crate) fn reverse(&self, grads: &[Option<Arc<[T]>>]) -> Result<Returned<T>, RunError> {
        let scope = Scope { graph: self.graph, params: self.params, floats: &[], noise: self.noise };
        let mut uses = Vec::new();
        let level = Level::of(&self.arena);
        let found = partials(&scope, &level, &self.slots, NodeId::new(APP), grads, &mut uses)?;
        uses.reverse();
        Ok(Returned { operands: found.unwrap_or_default(), params: uses })
    }
}

/// How many elements each signature of a sound graph makes when it is applied once.
pub(crate) fn costs(graph: &GraphData) -> Checked<Vec<u64>> {
    bound::check(graph)?;
    bound::of_signatures(graph)
}
