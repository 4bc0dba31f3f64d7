//! Evaluates single values of a graph that grows.

use super::bound::SignatureWork;
use super::constants::Constants;
use super::datum::Datum;
use super::error::RunError;
use super::frame::{Frame, Scope, Slots};
use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::numeric::noise::Noise;
use autobatch_ir::types::DType;
use autobatch_ir::weights::Weights;
use std::collections::HashSet;
use std::mem;

/// The operations that evaluating a node takes beside its own: about the time of the interpreter.
const NODE_WORK: u64 = 64;

/// The values of a graph that grows, as far as a program asked for them.
///
/// A program that reads one small value after the other, and decides by it what it emits next, pays for a few nodes and not for a
/// plan. The bits are those of a plan, because the interpreter defines them.
#[derive(Clone, Debug, Default)]
pub struct OnDemand {
    slots: Slots<f32>,
    work: SignatureWork,
}

/// Everything that an evaluation on demand reads beside the graph.
pub struct Given<'a> {
    /// The values of the parameters.
    pub weights: &'a Weights,
    /// The noise of dropout.
    pub noise: Noise,
    /// The elements of values that were computed elsewhere.
    pub known: &'a dyn Fn(ValueId) -> Option<&'a [f32]>,
}

impl OnDemand {
    /// A value that was evaluated; `None` for any other.
    #[must_use]
    pub fn value(&self, id: ValueId) -> Option<&Datum<f32>> {
        self.slots.get(id.index())?.as_ref()
    }

    /// Evaluates values with everything that they depend on. Returns false, and evaluates nothing, if that takes more
    /// operations than `limit`.
    ///
    /// The graph must be the one of earlier calls, or extend it, and the weights must belong to its module.
    ///
    /// # Errors
    /// As [`Evaluation::forward`](super::Evaluation::forward).
    pub fn evaluate(
        &mut self,
        graph: &GraphData,
        wanted: &[ValueId],
        given: &Given<'_>,
        limit: u64,
    ) -> Result<bool, RunError> {
        let Some(Needed { nodes, known }) = self.needed(graph, wanted, given, limit) else {
            return Ok(false);
        };
        self.slots.resize(graph.arena.values(), None);
        for (id, elements) in known {
            self.slots[id.index()] = Some(datum(elements, graph.type_of(id).dtype));
        }
        let params: Vec<&[f32]> = given.weights.iter().map(|param| param.values()).collect();
        let (floats, noise) = (&graph.bindings.floats, given.noise);
        let scope =
            Scope { graph, params: &params, floats, noise, constants: Constants::Given, clamps: false };
        let mut frame = Frame::of(&scope, &graph.arena, mem::take(&mut self.slots));
        let outcome = nodes.into_iter().try_for_each(|node| {
            let results = frame.apply(node)?;
            for (slot, result) in frame.slots[graph.arena.results(node)].iter_mut().zip(results) {
                *slot = Some(result);
            }
            Ok(())
        });
        self.slots = frame.slots;
        outcome.map(|()| true)
    }

    /// Everything that must be evaluated for some values; `None` if it takes more operations than `limit`.
    fn needed<'a>(
        &mut self,
        graph: &GraphData,
        wanted: &[ValueId],
        given: &Given<'a>,
        limit: u64,
    ) -> Option<Needed<'a>> {
        let (mut nodes, mut known, mut seen) = (HashSet::new(), Vec::new(), HashSet::new());
        let (mut open, mut work) = (wanted.to_vec(), 0u64);
        while let Some(id) = open.pop() {
            if self.value(id).is_some() || !seen.insert(id) {
                continue;
            }
            if let Some(elements) = (given.known)(id) {
                work += elements.len() as u64;
                known.push((id, elements));
            } else {
                let node = graph.arena.producer(id);
                if !nodes.insert(node) {
                    continue;
                }
                let operands = graph.arena.operands(node);
                open.extend(operands.iter().filter_map(|operand| operand.as_value()));
                let own = self.work.of(graph, graph.arena.node(node).sig)?;
                work = work.saturating_add(match graph.signature(node).callee {
                    // Bound elements of a list would take the slots of later values.
                    Callee::Op(Op::List) if operands.iter().any(|item| item.as_value().is_none()) => {
                        return None;
                    }
                    // A list that grows is copied for each item.
                    Callee::Op(Op::Append) => return None,
                    Callee::Op(Op::List) => own.saturating_mul(operands.len() as u64),
                    _ => own,
                });
                work = work.saturating_add(NODE_WORK);
            }
            if work > limit {
                return None;
            }
        }
        let mut nodes: Vec<NodeId> = nodes.into_iter().collect();
        nodes.sort_unstable();
        Some(Needed { nodes, known })
    }
}

/// The nodes that values on demand need, in order, and the values that were computed elsewhere.
struct Needed<'a> {
    nodes: Vec<NodeId>,
    known: Vec<(ValueId, &'a [f32])>,
}

/// Elements as an executor keeps them.
fn datum(elements: &[f32], dtype: DType) -> Datum<f32> {
    match dtype {
        DType::U32 | DType::I32 | DType::Bool => {
            Datum::words(elements.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
        }
        DType::F32 | DType::F16 | DType::BF16 => Datum::floats(elements),
    }
}
