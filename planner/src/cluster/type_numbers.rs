//! Type numbers: two jobs have one type if one kernel with one kind of each operand serves both.

use crate::ids::TypeIndex;
use crate::index_vec::IndexVec;
use autobatch_ir::graph::Operand;
use autobatch_ir::hash::BuildMix;
use autobatch_ir::id::SigId;
use std::collections::HashMap;

/// No type.
const NONE: TypeIndex = TypeIndex(u32::MAX);

/// Numbers the types of jobs.
#[derive(Debug, Default)]
pub(super) struct TypeNumbers {
    /// The signature of each type.
    types: IndexVec<TypeIndex, SigId>,
    /// Per signature the type of its jobs that take no bindings, or [`NONE`].
    of_sig: Vec<TypeIndex>,
    /// Per signature the set of bound operands seen last, and its type.
    last_mixed: Vec<(u64, TypeIndex)>,
    /// The types of jobs with bound operands, as a trie. A key is a signature number or the number of an inner node, with a word
    /// of 64 operands; the value of the last word is the type.
    mixed: HashMap<(u32, u64), u32, BuildMix>,
}

impl TypeNumbers {
    /// Starts again, for `sigs` signatures, in the memory of a list of types.
    pub(super) fn clear(&mut self, sigs: usize, types: &mut IndexVec<TypeIndex, SigId>) {
        self.types = std::mem::take(types);
        self.types.clear();
        self.of_sig.clear();
        self.of_sig.resize(sigs, NONE);
        self.last_mixed.clear();
        self.last_mixed.resize(sigs, (0, NONE));
        self.mixed.clear();
    }

    /// Hands over the signature of each type.
    pub(super) fn give_types(&mut self, types: &mut IndexVec<TypeIndex, SigId>) {
        *types = std::mem::take(&mut self.types);
    }

    /// The type of a job. `bound` has a bit for each of the first 64 operands that are bindings.
    #[inline]
    pub(super) fn of(&mut self, sig: SigId, operands: &[Operand], bound: u64) -> TypeIndex {
        if operands.len() > 64 {
            return self.of_many(sig, operands);
        }
        if bound == 0 {
            let known = self.of_sig[sig.index()];
            return if known == NONE { self.first_of_sig(sig) } else { known };
        }
        let (last, number) = self.last_mixed[sig.index()];
        if last == bound && number != NONE { number } else { self.of_mixed(sig, bound) }
    }

    #[cold]
    fn first_of_sig(&mut self, sig: SigId) -> TypeIndex {
        let number = self.types.push(sig);
        self.of_sig[sig.index()] = number;
        number
    }

    #[inline(never)]
    fn of_mixed(&mut self, sig: SigId, bound: u64) -> TypeIndex {
        let Self { types, mixed, .. } = self;
        let known = mixed.entry((sig.index() as u32, bound)).or_insert_with(|| types.push(sig).0);
        let number = TypeIndex(*known);
        self.last_mixed[sig.index()] = (bound, number);
        number
    }

    /// The type of a job with more than 64 operands.
    #[cold]
    fn of_many(&mut self, sig: SigId, operands: &[Operand]) -> TypeIndex {
        let Self { types, mixed, of_sig, .. } = self;
        let bound = |operand: &Operand| u64::from(operand.as_value().is_none());
        let words = operands
            .chunks(64)
            .map(|chunk| (0..).zip(chunk).fold(0, |mask, (bit, operand)| mask | bound(operand) << bit));
        let mut from = sig.index() as u32;
        let last = operands.len().div_ceil(64) - 1;
        for (at, word) in words.enumerate() {
            // Numbers of inner nodes start behind those of signatures.
            let fresh = (of_sig.len() + mixed.len()) as u32;
            from = *mixed
                .entry((from, word))
                .or_insert_with(|| if at < last { fresh } else { types.push(sig).0 });
        }
        TypeIndex(from)
    }
}
