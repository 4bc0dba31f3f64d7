//! Common subexpressions: equal applications of equal operands become one.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value: an application goes only if an
//! earlier one has the same signature (callee, attributes, types, parameter arguments) and the same
//! operands, word by word, after earlier merges. Bound numbers are equal if their *slots* are: a
//! plan is right for all bindings, so two slots that happen to hold one token stay two.
//!
//! *How.* Value numbering in arena order: one table from (signature, operands) to the first
//! application that had them, compared in full. A call of a cell is one application like another.
//!
//! *Scope.* Constants merge across instances always: they have no gradient. Everything else merges
//! inside a stretch in inference, and across instances where the context says so (one sentence
//! encoded for two pairs is encoded once). In training nothing else merges: two equal applications
//! with one gradient each and one application with the sum of both round differently, and the bits
//! of gradients are promised.
//!
//! *Refuses* applications marked `.alone()`, and those that make a value marked `.shared()`.
//! Dropout merges never, since every use has noise words of its own.
//!
//! *Cost.* Linear; a graph without duplicates is scanned, not copied.
//!
//! ```text
//! %2 = tanh(%0)   %3 = tanh(%0)   %4 = mul(%2, %3)
//! %2 = tanh(%0)   %3 = mul(%2, %2)
//! ```

use super::{Change, Context, count, marked, stretches};
use autobatch_ir::graph::rebuild::Rebuild;
use autobatch_ir::graph::{Callee, GraphData, Op, Operand};
use autobatch_ir::hash::Mix;
use autobatch_ir::id::{AppId, ValueId};
use autobatch_ir::plan::Mode;
use std::hash::Hasher as _;

/// Merges duplicates.
pub(crate) fn cse(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let twins = Numbering::new(graph, context).twins();
    let merged = twins.iter().flatten().count();
    if merged == 0 {
        return None;
    }
    let arena = &graph.arena;
    let mut rebuild = Rebuild::new(graph);
    for app in arena.ids() {
        let Some(twin) = twins[app.index()] else {
            rebuild.copy(app);
            continue;
        };
        for (old, kept) in arena.results(app).zip(arena.results(twin)) {
            let name = rebuild.renaming(ValueId::new(kept)).expect("a twin is earlier, and is kept");
            rebuild.name(ValueId::new(old), name);
        }
    }
    let (graph, renaming) = rebuild.finish();
    Some(Change { graph, renaming, note: format!("{} merged", count(merged, "application")) })
}

struct Numbering<'a> {
    graph: &'a GraphData,
    context: &'a Context<'a>,
    marked: Vec<bool>,
    stretch_of: Vec<u32>,
    /// For each value the first one equal to it.
    first: Vec<ValueId>,
    /// Applications by hash, plus one; 0 is free.
    slots: Vec<u32>,
}

impl<'a> Numbering<'a> {
    fn new(graph: &'a GraphData, context: &'a Context<'a>) -> Self {
        let values = graph.arena.values();
        let slots = (graph.arena.len() * 2).next_power_of_two().max(8);
        Self {
            graph,
            context,
            marked: marked(graph),
            stretch_of: stretches(graph),
            first: (0..values).map(ValueId::new).collect(),
            slots: vec![0; slots],
        }
    }

    /// For each application the earlier one that it equals.
    fn twins(mut self) -> Vec<Option<AppId>> {
        let mut twins = vec![None; self.graph.arena.len()];
        for app in self.graph.arena.ids() {
            if self.marked[app.index()] || !self.may_merge(app) {
                continue;
            }
            let twin = self.find_or_insert(app);
            if let Some(twin) = twin {
                let arena = &self.graph.arena;
                for (old, kept) in arena.results(app).zip(arena.results(twin)) {
                    self.first[old] = ValueId::new(kept);
                }
            }
            twins[app.index()] = twin;
        }
        twins
    }

    fn callee(&self, app: AppId) -> Callee {
        self.graph.signature(app).callee
    }

    fn is_constant(&self, app: AppId) -> bool {
        matches!(self.callee(app), Callee::Op(Op::Fill { .. }))
    }

    fn may_merge(&self, app: AppId) -> bool {
        self.context.mode != Mode::Train || self.is_constant(app)
    }

    /// The stretch inside which an application may merge.
    fn scope(&self, app: AppId) -> u32 {
        let free = self.context.across_instances
            || matches!(self.callee(app), Callee::Op(Op::Fill { .. } | Op::Param));
        if free { u32::MAX } else { self.stretch_of[app.index()] }
    }

    /// An operand, after the merges so far.
    fn operand(&self, operand: Operand) -> u32 {
        operand.as_value().map_or(operand.word(), |value| self.first[value.index()].index() as u32)
    }

    fn hash(&self, app: AppId) -> u64 {
        let mut mix = Mix::default();
        mix.write_u32(self.graph.arena.app(app).sig.index() as u32);
        mix.write_u32(self.scope(app));
        for &operand in self.graph.arena.operands(app) {
            mix.write_u32(self.operand(operand));
        }
        mix.finish()
    }

    fn equal(&self, a: AppId, b: AppId) -> bool {
        let arena = &self.graph.arena;
        let (left, right) = (arena.operands(a), arena.operands(b));
        arena.app(a).sig == arena.app(b).sig
            && self.scope(a) == self.scope(b)
            && left.len() == right.len()
            && left.iter().zip(right).all(|(&a, &b)| self.operand(a) == self.operand(b))
    }

    fn find_or_insert(&mut self, app: AppId) -> Option<AppId> {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(app) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => {
                    self.slots[slot] = app.index() as u32 + 1;
                    return None;
                }
                known => {
                    let known = AppId::new(known as usize - 1);
                    if self.equal(known, app) {
                        return Some(known);
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }
}
