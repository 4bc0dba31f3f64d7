//! Appending a checked node: the last step of every emitting call.

use super::{Caller, Raw, Recorder, Results};
use crate::graph::arena::{Operand, OperandKind};
use crate::graph::data::hash_node;
use crate::graph::{Bindings, Callee, GraphData, Op};
use crate::id::{MAX_INDEX, SigId, ValueId};

/// A pool shorter than two to this power has space for any single node below [`MAX_INDEX`].
const SAFE_BITS: u32 = MAX_INDEX.ilog2();

impl Recorder {
    /// Replaces the numbers of a float input; see [`Graph::rebind`](crate::Graph::rebind).
    pub(crate) fn rebind(&mut self, input: ValueId, elements: &[f32]) -> bool {
        let arena = &self.data.arena;
        if input.index() >= arena.values() {
            return false;
        }
        let node = arena.producer(input);
        let Callee::Op(Op::Input(ty)) = self.data.sigs.get(arena.node(node).sig).callee else { return false };
        let Some(OperandKind::Data(slot)) = arena.operands(node).first().and_then(|operand| operand.kind())
        else {
            return false;
        };
        let place = self
            .data
            .bindings
            .floats
            .get_mut(slot as usize..)
            .and_then(|rest| rest.get_mut(..ty.shape.elements()));
        match place {
            Some(place) if place.len() == elements.len() => {
                place.copy_from_slice(elements);
                true
            }
            _ => false,
        }
    }

    /// Appends a node of a signature with `OUT` results. Inlining gives the compiler the length of
    /// `operands` where the caller has an array.
    #[inline(always)]
    pub(super) fn append<const OUT: usize>(
        &mut self,
        sig: SigId,
        operands: &[Operand],
        caller: Caller,
    ) -> Option<Results<OUT>> {
        if is_near_limit(&self.data) && self.is_full(operands.len(), 0, 0) {
            return self.refuse_full(sig, caller);
        }
        let data = &mut self.data;
        let site = data.sites.of(caller);
        let results =
            data.sigs.get(sig).results.as_array().expect("a handle has the results of its signature");
        hash_node(&mut data.hash, data.sigs.hash(sig), operands);
        Some((data.arena.push_whole(sig, operands, results, site), *results))
    }

    /// Appends a node and adds the bindings among its operands to the pools.
    pub(super) fn append_raw(
        &mut self,
        sig: SigId,
        operands: &[Option<Raw<'_>>],
        caller: Caller,
    ) -> Option<u32> {
        let (mut words, mut floats) = (0, 0);
        for operand in operands.iter().flatten() {
            match operand {
                Raw::Value(..) => {}
                Raw::Index(_) => words += 1,
                Raw::Words(run, _) => words += run.len(),
                Raw::Floats(run, _) => floats += run.len(),
            }
        }
        let more = operands.len() | words | floats | self.data.bindings.floats.len();
        if (is_near_limit(&self.data) || more >> (SAFE_BITS - 1) != 0)
            && self.is_full(operands.len(), words, floats)
        {
            return self.refuse_full(sig, caller);
        }
        let GraphData { arena, bindings, sites, sigs, hash, .. } = &mut self.data;
        let mark = arena.operand_mark();
        for operand in operands {
            arena.push_operand(bindings.bind(operand.expect("callers reject poison operands")));
        }
        hash_node(hash, sigs.hash(sig), &arena.operand_pool()[mark as usize..]);
        let site = sites.of(caller);
        Some(match &*sigs.get(sig).results {
            // Nearly every op has one result, and this arm copies it without a loop.
            [only] => arena.push(sig, mark, std::slice::from_ref(only), site),
            results => arena.push(sig, mark, results, site),
        })
    }

    /// Whether adding these numbers of operands, words and floats would exceed the index range.
    #[cold]
    fn is_full(&self, operands: usize, words: usize, floats: usize) -> bool {
        let GraphData { arena, bindings, .. } = &self.data;
        let longest = (arena.operand_pool().len() + operands)
            .max(bindings.words.len() + operands + words)
            .max(bindings.floats.len() + floats)
            .max(arena.len());
        longest > MAX_INDEX || arena.values() > MAX_INDEX - (1 << 16)
    }

    #[cold]
    fn refuse_full<T>(&mut self, sig: SigId, caller: Caller) -> Option<T> {
        let name = self.data.module.callee_name(self.data.sigs.get(sig).callee);
        let message = "the graph is full: it holds 2^30 operands, values and bindings of a kind";
        self.refuse(&name, message.to_owned(), caller)
    }
}

/// Whether a pool has reached half of its limit. From then on each call checks the exact sizes.
#[inline]
fn is_near_limit(data: &GraphData) -> bool {
    let longest =
        data.arena.operand_pool().len() | data.arena.values() | data.arena.len() | data.bindings.words.len();
    longest >> SAFE_BITS != 0
}

impl Bindings {
    /// Adds the numbers of an operand to the pools and returns the operand for the arena.
    #[inline]
    pub(super) fn bind(&mut self, operand: Raw<'_>) -> Operand {
        let Self { words, floats } = self;
        match operand {
            Raw::Value(id, _) => Operand::value(id),
            Raw::Index(index) => {
                words.push(index);
                Operand::index(words.len() as u32 - 1)
            }
            Raw::Words(run, _) => {
                words.extend_from_slice(run);
                Operand::index((words.len() - run.len()) as u32)
            }
            Raw::Floats(run, _) => {
                floats.extend_from_slice(run);
                Operand::data((floats.len() - run.len()) as u32)
            }
        }
    }
}
