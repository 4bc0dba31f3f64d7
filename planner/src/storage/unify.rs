//! Unifies results that arrive at one operand port, and finds the copies of constants.

use crate::cluster::Arrivals;
use crate::context::Context;
use crate::ids::{PortId, ResultId};
use crate::index_vec::{Bases, IndexVec};
use autobatch_ir::graph::{Callee, Op};
use autobatch_ir::id::SigId;

/// A union-find structure over the results of all signatures.
#[derive(Debug, Default)]
pub(super) struct Unions {
    /// Per result one of its class that is not larger; the representative itself.
    parents: IndexVec<ResultId, ResultId>,
    /// The results of each signature.
    pub(super) result_of: Bases<SigId, ResultId>,
    /// Per operand port a result that arrives there, if there is one. The class of the port.
    first_seen: IndexVec<PortId, Option<ResultId>>,
    /// Per result whether it is a constant that may have copies.
    constant: IndexVec<ResultId, bool>,
    /// Ports and the constants that arrive there.
    constants: Vec<(PortId, ResultId)>,
    /// Constants that have a class.
    assigned: Vec<ResultId>,
    /// Constants and the further classes that hold copies of them.
    copies: Vec<(ResultId, ResultId)>,
}

impl Unions {
    /// Puts the results that arrive at one port into one class, except constants that may have copies.
    pub(super) fn unify(&mut self, context: &Context<'_>, arrivals: &Arrivals) {
        self.clear(context, arrivals.ports());
        for (port, result) in arrivals.pairs() {
            match self.constant[result] {
                true => self.constants.push((port, result)),
                false => self.unify_at(port, result),
            }
        }
        self.assign_constants();
    }

    fn clear(&mut self, context: &Context<'_>, ports: usize) {
        let may_copy = context.request.may_copy_constants(context.graph);
        let signatures = context.graph.sigs.items();
        self.result_of.number(signatures.iter().map(|signature| signature.results.len()));
        self.constant.clear();
        for signature in signatures {
            let constant = may_copy && matches!(signature.callee, Callee::Op(Op::Fill { .. }));
            self.constant.extend(signature.results.iter().map(|_| constant));
        }
        self.parents.clear();
        self.parents.extend(self.constant.ids());
        self.first_seen.refill(ports, None);
        self.constants.clear();
        self.assigned.clear();
        self.copies.clear();
    }

    /// Puts every constant into the class of the first port where it arrives beside other results; further such ports get copies.
    /// Constants that arrive only beside constants share a class with them.
    fn assign_constants(&mut self) {
        let mut constants = std::mem::take(&mut self.constants);
        constants.sort_unstable();
        constants.retain(|&(port, constant)| {
            // Where only constants arrive, the first of them represents the others.
            let is_mixed = self.first_seen[port].is_some_and(|first| !self.constant[first]);
            if !is_mixed || !self.assigned.contains(&constant) {
                self.assigned.extend(is_mixed.then_some(constant));
                self.unify_at(port, constant);
            }
            is_mixed
        });
        for &(port, constant) in &constants {
            let Some(first) = self.first_seen[port] else { continue };
            let class = self.find(first);
            if class != self.find(constant) && !self.copies.contains(&(constant, class)) {
                self.copies.push((constant, class));
            }
        }
        self.constants = constants;
    }

    /// Unifies a result with the other results at the same port.
    fn unify_at(&mut self, port: PortId, result: ResultId) {
        let first = *self.first_seen[port].get_or_insert(result);
        if first != result {
            let (a, b) = (self.find(first), self.find(result));
            self.parents[a.max(b)] = a.min(b);
        }
    }

    /// The representative of a result's class: its smallest result.
    pub(super) fn find(&mut self, mut result: ResultId) -> ResultId {
        while self.parents[result] != result {
            let up = self.parents[self.parents[result]];
            self.parents[result] = up;
            result = up;
        }
        result
    }

    /// How many results there are.
    pub(super) fn results(&self) -> usize {
        self.parents.len()
    }

    /// The classes that hold copies of a result besides its own.
    pub(super) fn copies_of(&self, result: ResultId) -> impl Iterator<Item = ResultId> {
        self.copies.iter().filter(move |copy| copy.0 == result).map(|copy| copy.1)
    }

    /// The representative of the results that arrive at each port, if there are any.
    pub(super) fn port_classes(&mut self) -> impl Iterator<Item = Option<ResultId>> {
        self.first_seen.ids().map(|port| self.first_seen[port].map(|first| self.find(first)))
    }
}
