//! Unifies results that arrive at one operand port, and finds the copies of constants.

use crate::cluster::Arrivals;
use crate::context::Context;
use autobatch_ir::graph::{Callee, Op};

/// No result.
const NONE: u32 = u32::MAX;

/// A union-find structure over the results of all signatures.
#[derive(Debug, Default)]
pub(super) struct Unions {
    /// Per result one of its class that is not larger; the representative itself.
    parents: Vec<u32>,
    /// Per signature its first result.
    pub(super) result_base: Vec<u32>,
    /// Per operand port a result that arrives there, or [`NONE`]. The class of the port.
    first_seen: Vec<u32>,
    /// Per result whether it is a constant that may have copies.
    constant: Vec<bool>,
    /// Ports and the constants that arrive there.
    constants: Vec<(u32, u32)>,
    /// Constants that have a class.
    assigned: Vec<u32>,
    /// Constants and the further classes that hold copies of them.
    copies: Vec<(u32, u32)>,
}

impl Unions {
    /// Puts the results that arrive at one port into one class, except constants that may have copies.
    pub(super) fn unify(&mut self, context: &Context<'_>, arrivals: &Arrivals) {
        self.clear(context, arrivals.ports());
        for (port, result) in arrivals.pairs() {
            match self.constant[result as usize] {
                true => self.constants.push((port, result)),
                false => self.unify_at(port, result),
            }
        }
        self.assign_constants();
    }

    fn clear(&mut self, context: &Context<'_>, ports: usize) {
        let may_copy = context.request.may_copy_constants(context.graph);
        self.result_base.clear();
        self.constant.clear();
        let mut results = 0;
        for signature in context.graph.sigs.items() {
            self.result_base.push(results);
            results += signature.results.len() as u32;
            let constant = may_copy && matches!(signature.callee, Callee::Op(Op::Fill { .. }));
            self.constant.resize(results as usize, constant);
        }
        self.parents.clear();
        self.parents.extend(0..results);
        self.first_seen.clear();
        self.first_seen.resize(ports, NONE);
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
            let first = self.first_seen[port as usize];
            // Where only constants arrive, the first of them represents the others.
            let is_mixed = first != NONE && !self.constant[first as usize];
            if !is_mixed || !self.assigned.contains(&constant) {
                self.assigned.extend(is_mixed.then_some(constant));
                self.unify_at(port, constant);
            }
            is_mixed
        });
        for &(port, constant) in &constants {
            let class = self.find(self.first_seen[port as usize]);
            if class != self.find(constant) && !self.copies.contains(&(constant, class)) {
                self.copies.push((constant, class));
            }
        }
        self.constants = constants;
    }

    /// Unifies a result with those that arrive at the same port.
    fn unify_at(&mut self, port: u32, result: u32) {
        let first = self.first_seen[port as usize];
        if first == NONE {
            self.first_seen[port as usize] = result;
        } else if first != result {
            let (a, b) = (self.find(first), self.find(result));
            self.parents[a.max(b) as usize] = a.min(b);
        }
    }

    /// The representative of a result's class: its smallest result.
    pub(super) fn find(&mut self, mut result: u32) -> u32 {
        while self.parents[result as usize] != result {
            let up = self.parents[self.parents[result as usize] as usize];
            self.parents[result as usize] = up;
            result = up;
        }
        result
    }

    /// How many results there are.
    pub(super) fn results(&self) -> usize {
        self.parents.len()
    }

    /// The classes that hold copies of a result besides its own.
    pub(super) fn copies_of(&self, result: u32) -> impl Iterator<Item = u32> {
        self.copies.iter().filter(move |copy| copy.0 == result).map(|copy| copy.1)
    }

    /// The representative of the results that arrive at each port, if there are any.
    pub(super) fn port_classes(&mut self) -> impl Iterator<Item = Option<u32>> {
        (0..self.first_seen.len()).map(|port| {
            let first = self.first_seen[port];
            (first != NONE).then(|| self.find(first))
        })
    }
}
