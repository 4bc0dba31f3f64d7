//! Signatures: the properties that nodes must share to be batched together.
//!
//! A signature is a callee with its attributes, the types of its operands, and its parameter
//! arguments. The table interns signatures by full equality. Two nodes may share a batch only if
//! their signature ids are equal. A signature never contains the length of a list.

use crate::getters::getters;
use crate::graph::op::Op;
use crate::hash::hash_of;
use crate::id::{CellId, ParamId, SigId, TypeId};
use crate::intern::Interner;
use crate::types::{Type, Types};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The op or cell that a node applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Callee {
    /// A built-in op.
    Op(Op),
    /// A traced cell of the module.
    Cell(CellId),
}

impl Callee {
    /// Whether this is an input, a constant or a parameter: nodes of it read no values.
    #[must_use]
    pub fn is_source(self) -> bool {
        matches!(self, Self::Op(Op::Input(_) | Op::Fill { .. } | Op::Param))
    }
}

/// A parameter argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ParamArg {
    /// A parameter of the module.
    Module(ParamId),
    /// A parameter port of the enclosing cell body.
    Port(u32),
}

/// The properties that a node must share with others in its batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// The op or cell.
    pub callee: Callee,
    /// The types of the operands; for `list`, the single element type.
    pub operands: Box<[TypeId]>,
    /// The parameter arguments.
    pub params: Box<[ParamArg]>,
    /// The types of the parameter arguments, so that signatures in bodies need no context.
    pub param_types: Box<[TypeId]>,
    /// The types of the results.
    pub results: Box<[TypeId]>,
}

impl Signature {
    /// The signature of a cell port of this type.
    pub(crate) fn port(ty: Type, id: TypeId) -> Self {
        let (operands, params, param_types) = Default::default();
        Self { callee: Callee::Op(Op::Port(ty)), operands, params, param_types, results: [id].into() }
    }

    /// Whether the node is a list. A list groups values and needs neither storage nor work.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.callee, Callee::Op(Op::List | Op::Append))
    }
}

/// The interned signatures of a module or graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signatures {
    items: Interner<Signature>,
    hashes: Vec<u64>,
}

impl Signatures {
    /// The id of `signature`, whose type ids are those of `types`.
    pub fn intern(&mut self, signature: Signature, types: &Types) -> SigId {
        let (number, new) = self.items.intern(signature);
        if new {
            self.hashes.push(content_hash(&self.items.items()[number], types));
        }
        SigId::new(number)
    }

    getters! {
        /// The signature with this id.
        get(self, id: SigId) -> &Signature = &self.items.items()[id.index()];
        /// A hash of the content of the signature, independent of type ids.
        hash(self, id: SigId) -> u64 = self.hashes[id.index()];
        /// All signatures in the order of their ids.
        items(self) -> &[Signature] = self.items.items();
    }

    /// Compares two signatures by content: callee, types of operands, parameters and their types, types of results. So the
    /// order depends neither on other signatures nor on the order in which they were interned.
    #[must_use]
    pub fn compare(&self, one: SigId, other: SigId, types: &Types) -> Ordering {
        let (a, b) = (self.get(one), self.get(other));
        let by_types = |a: &[TypeId], b: &[TypeId]| {
            let [a, b] = [a, b].map(|ids| ids.iter().map(|&id| types.get(id)));
            a.cmp(b)
        };
        (a.callee.cmp(&b.callee))
            .then_with(|| by_types(&a.operands, &b.operands))
            .then_with(|| a.params.cmp(&b.params))
            .then_with(|| by_types(&a.param_types, &b.param_types))
            .then_with(|| by_types(&a.results, &b.results))
    }

    /// The rank of every signature in the order of [`compare`](Self::compare).
    #[must_use]
    pub fn ranks(&self, types: &Types) -> Vec<u32> {
        let mut sigs: Vec<SigId> = (0..self.items().len()).map(SigId::new).collect();
        sigs.sort_by(|&a, &b| self.compare(a, b, types));
        let mut ranks = vec![0; sigs.len()];
        sigs.iter().zip(0..).for_each(|(sig, rank)| ranks[sig.index()] = rank);
        ranks
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        self.items.reserve(more);
        self.hashes.reserve_exact(more);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
        self.hashes.truncate(len);
    }
}

fn content_hash(signature: &Signature, types: &Types) -> u64 {
    let Signature { callee, operands, params, param_types, results } = signature;
    let resolve = |ids: &[TypeId]| -> Vec<Type> { ids.iter().map(|&id| types.get(id)).collect() };
    hash_of(&(callee, resolve(operands), params, resolve(param_types), resolve(results)))
}
