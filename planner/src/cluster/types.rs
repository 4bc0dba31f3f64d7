//! Type numbers: two jobs have one type if one kernel with one kind of each operand serves both.

use super::NONE;
use autobatch_ir::graph::Operand;
use autobatch_ir::hash::BuildMix;
use autobatch_ir::id::SigId;
use std::collections::HashMap;

/// The type numbers of jobs.
#[derive(Debug, Default)]
pub(super) struct TypeNumbers {
    /// The signature of each type.
    types: Vec<SigId>,
    /// The type of the jobs of a signature that take no bound numbers, or [`NONE`].
    of_sig: Vec<u32>,
    /// The last places of bound numbers seen with each signature, and the type they have.
    last_mixed: Vec<(u64, u32)>,
    /// The types of jobs some of whose indices are bound, by their bound places: a word of 64 places leads from a signature's
    /// number to another number, and so on, the last word to the type.
    mixed: HashMap<(u32, u64), u32, BuildMix>,
}

impl TypeNumbers {
    /// The signature of each type.
    pub(super) fn types(&self) -> &[SigId] {
        &self.types
    }

    pub(super) fn clear(&mut self, sigs: usize) {
        self.types.clear();
        self.of_sig.clear();
        self.of_sig.resize(sigs, NONE);
        self.last_mixed.clear();
        self.last_mixed.resize(sigs, (0, NONE));
        self.mixed.clear();
    }

    /// The type of a job: its signature, unless some of its indices are computed and some bound, as `bound` says of the first
    /// 64 operands.
    #[inline]
    pub(super) fn of(&mut self, sig: SigId, operands: &[Operand], bound: u64) -> u32 {
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
    fn first_of_sig(&mut self, sig: SigId) -> u32 {
        self.types.push(sig);
        let number = self.types.len() as u32 - 1;
        self.of_sig[sig.index()] = number;
        number
    }

    #[inline(never)]
    fn of_mixed(&mut self, sig: SigId, bound: u64) -> u32 {
        let types = &mut self.types;
        let number = *self.mixed.entry((sig.index() as u32, bound)).or_insert_with(|| {
            types.push(sig);
            types.len() as u32 - 1
        });
        self.last_mixed[sig.index()] = (bound, number);
        number
    }

    /// The type of a job with more than 64 operands.
    #[cold]
    fn of_many(&mut self, sig: SigId, operands: &[Operand]) -> u32 {
        let Self { types, mixed, of_sig, .. } = self;
        let bound = |operand: &Operand| u64::from(operand.as_value().is_none());
        let words = operands
            .chunks(64)
            .map(|places| (0..).zip(places).fold(0, |mask, (bit, operand)| mask | bound(operand) << bit));
        let mut from = sig.index() as u32;
        let last = operands.len().div_ceil(64) - 1;
        for (at, word) in words.enumerate() {
            // Numbers on the way are those of no signature.
            let fresh = (of_sig.len() + mixed.len()) as u32;
            from = *mixed.entry((from, word)).or_insert_with(|| {
                if at < last {
                    return fresh;
                }
                types.push(sig);
                types.len() as u32 - 1
            });
        }
        from
    }
}
