//! Common subexpressions: equal applications of equal operands become one.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value: an application goes only if an
//! earlier one has the same signature (callee, attributes, types, parameter arguments) and the same
//! operands, word by word, after earlier merges. Bound numbers are equal if their *slots* are: a
//! plan is right for all bindings, so two slots that happen to hold one token stay two.
//!
//! *How.* Value numbering in arena order: one table from (signature, operands) to the first
//! application that had them, compared in full; slots come from the process' own keys, so that a graph
//! from elsewhere cannot make all meet in one. A call of a cell is one application like another.
//! Most applications never come near the table: who reads a bound number, or a value that nobody
//! else reads, has no twin. (A value gets a second reader when another value merges into it; its
//! first reader enters the table then.)
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
use autobatch_ir::hash::BuildMix;
use autobatch_ir::id::{AppId, ValueId};
use autobatch_ir::plan::Mode;
use std::hash::{BuildHasher, Hasher as _};

/// Merges duplicates.
pub(crate) fn cse(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let twins = Numbering::new(graph, context, BuildMix::default()).twins();
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

struct Numbering<'a, S> {
    graph: &'a GraphData,
    context: &'a Context<'a>,
    marked: Vec<bool>,
    stretch_of: Vec<u32>,
    /// For each value the first one equal to it.
    first: Vec<ValueId>,
    /// How often each value is read, by itself or under the names that merged into it.
    readers: Vec<u32>,
    /// The last application that reads each value.
    reader: Vec<u32>,
    /// Applications by hash, plus one; 0 is free.
    slots: Vec<u32>,
    /// How many slots are full.
    full: usize,
    hasher: S,
    #[cfg(test)]
    compared: std::rc::Rc<std::cell::Cell<usize>>,
}

impl<'a, S: BuildHasher> Numbering<'a, S> {
    fn new(graph: &'a GraphData, context: &'a Context<'a>, hasher: S) -> Self {
        let values = graph.arena.values();
        let (mut readers, mut reader) = (vec![0; values], vec![0; values]);
        for app in graph.arena.ids() {
            for value in graph.arena.operands(app).iter().filter_map(|operand| operand.as_value()) {
                readers[value.index()] += 1;
                reader[value.index()] = app.index() as u32;
            }
        }
        Self {
            graph,
            context,
            marked: marked(graph),
            stretch_of: stretches(graph),
            first: (0..values).map(ValueId::new).collect(),
            readers,
            reader,
            slots: vec![0; 64],
            full: 0,
            hasher,
            #[cfg(test)]
            compared: std::rc::Rc::default(),
        }
    }

    /// For each application the earlier one that it equals.
    fn twins(mut self) -> Vec<Option<AppId>> {
        let mut twins = vec![None; self.graph.arena.len()];
        for app in self.graph.arena.ids() {
            if self.may_merge(app) && self.has_company(app) {
                let twin = self.find_or_insert(app);
                if let Some(twin) = twin {
                    self.merge(app, twin);
                }
                twins[app.index()] = twin;
            }
        }
        twins
    }

    /// Whether another application may read the same.
    fn has_company(&self, app: AppId) -> bool {
        let mut operands = self.graph.arena.operands(app).iter();
        operands.all(|operand| {
            operand.as_value().is_some_and(|value| self.readers[self.first[value.index()].index()] > 1)
        })
    }

    /// Makes the results of `app` names of those of `twin`.
    fn merge(&mut self, app: AppId, twin: AppId) {
        let arena = &self.graph.arena;
        for (old, kept) in arena.results(app).zip(arena.results(twin)) {
            self.first[old] = ValueId::new(kept);
            let lonely = self.readers[kept] == 1;
            self.readers[kept] += self.readers[old];
            let reader = AppId::new(self.reader[kept] as usize);
            // The only reader so far was passed over, since nothing could equal it until now.
            if lonely && reader < app && self.may_merge(reader) {
                self.find_or_insert(reader);
            }
        }
    }

    fn callee(&self, app: AppId) -> Callee {
        self.graph.signature(app).callee
    }

    fn is_constant(&self, app: AppId) -> bool {
        matches!(self.callee(app), Callee::Op(Op::Fill { .. }))
    }

    fn may_merge(&self, app: AppId) -> bool {
        !self.marked[app.index()] && (self.context.mode != Mode::Train || self.is_constant(app))
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
        let mut mix = self.hasher.build_hasher();
        mix.write_u32(self.graph.arena.app(app).sig.index() as u32);
        mix.write_u32(self.scope(app));
        for &operand in self.graph.arena.operands(app) {
            mix.write_u32(self.operand(operand));
        }
        mix.finish()
    }

    fn equal(&self, a: AppId, b: AppId) -> bool {
        #[cfg(test)]
        self.compared.set(self.compared.get() + 1);
        let arena = &self.graph.arena;
        let (left, right) = (arena.operands(a), arena.operands(b));
        arena.app(a).sig == arena.app(b).sig
            && self.scope(a) == self.scope(b)
            && left.len() == right.len()
            && left.iter().zip(right).all(|(&a, &b)| self.operand(a) == self.operand(b))
    }

    fn find_or_insert(&mut self, app: AppId) -> Option<AppId> {
        if (self.full + 1) * 4 > self.slots.len() * 3 {
            self.enlarge();
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(app) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => {
                    self.slots[slot] = app.index() as u32 + 1;
                    self.full += 1;
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

    /// Doubles the table. Hashes change with every merge of what an application reads, but all of an
    /// application's operands are merged before it comes here.
    fn enlarge(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 2];
        let mask = self.slots.len() - 1;
        for number in old.into_iter().filter(|&number| number != 0) {
            let mut slot = self.hash(AppId::new(number as usize - 1)) as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::hash::Mix;
    use autobatch_ir::{Graph, ModuleBuilder, Value};
    use std::hash::BuildHasherDefault;

    const INPUTS: u32 = 1024;

    /// Sums of two inputs that meet in few slots if keys are fixed; inputs are the values below [`INPUTS`].
    fn evil(sig: u32) -> (GraphData, usize) {
        let g = Graph::new(&ModuleBuilder::new("evil").build().unwrap());
        let inputs: Vec<Value<'_>> = (0..INPUTS).map(|_| g.input(&[0.0])).collect();
        let meets = |&(a, b): &(u32, u32)| {
            let mut mix = Mix::default();
            [sig, u32::MAX, a, b].into_iter().for_each(|word| mix.write_u32(word));
            mix.finish() & 0xffff < 64
        };
        let pairs = (0..INPUTS).flat_map(|a| (0..INPUTS).map(move |b| (a, b))).filter(meets);
        let sums: Vec<Value<'_>> = pairs.map(|(a, b)| inputs[a as usize] + inputs[b as usize]).collect();
        // Everything has company, so everything comes to the table.
        for &x in &inputs {
            let _ = (x.tanh(), x.sin());
        }
        let sums = sums.len();
        (g.finish().unwrap(), sums)
    }

    #[test]
    fn applications_that_would_meet_in_a_slot_of_fixed_keys_are_spread() {
        // The inputs have the first signature, the sums the second.
        let (graph, sums) = evil(1);
        let context = Context { wanted: &[], mode: Mode::Infer, across_instances: true, eager: false };
        fn compared<S: BuildHasher>(graph: &GraphData, context: &Context<'_>, hasher: S) -> usize {
            let numbering = Numbering::new(graph, context, hasher);
            let compared = std::rc::Rc::clone(&numbering.compared);
            assert!(numbering.twins().iter().all(Option::is_none));
            compared.get()
        }
        let fixed = compared(&graph, &context, BuildHasherDefault::<Mix>::default());
        let secret = compared(&graph, &context, BuildMix::default());
        assert!(sums > 500 && fixed > sums * sums / 8, "{fixed} comparisons of {sums} sums by fixed keys");
        assert!(secret < (sums + 2 * INPUTS as usize) * 20, "{secret} comparisons by secret keys");
    }
}
