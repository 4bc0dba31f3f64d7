//! Common subexpressions: equal nodes of equal operands become one.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value: a node goes only if an
//! earlier one has the same signature (callee, attributes, types, parameter arguments) and the same
//! operands, word by word, after earlier merges. Bound numbers are equal if their *slots* are: a
//! plan is right for all bindings, so two slots that happen to hold one token stay two.
//!
//! *How.* Value numbering in arena order: one table from (signature, operands) to the first
//! node that had them, compared in full; slots come from the process' own keys, so that a graph
//! from elsewhere cannot make all meet in one. A call of a cell is one node like another.
//! Most nodes never come near the table: who reads a bound number, or a value that nobody
//! else reads, has no twin. (A value gets a second reader when another value merges into it; its
//! first reader enters the table then.)
//!
//! *Scope.* Constants merge across instances always: they have no gradient. Everything else merges
//! inside a stretch in inference, and across instances where the context says so (one sentence
//! encoded for two pairs is encoded once). In training nothing else merges: two equal nodes
//! with one gradient each and one node with the sum of both round differently, and the bits
//! of gradients are promised.
//!
//! *Refuses* nodes marked `.alone()`, and those that make a value marked `.shared()`.
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
use autobatch_ir::id::{NodeId, ValueId};
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
    for node in arena.ids() {
        let Some(twin) = twins[node.index()] else {
            rebuild.copy(node);
            continue;
        };
        for (old, kept) in arena.results(node).zip(arena.results(twin)) {
            let name = rebuild.renaming(ValueId::new(kept)).expect("a twin is earlier, and is kept");
            rebuild.name(ValueId::new(old), name);
        }
    }
    let (graph, renaming) = rebuild.finish();
    Some(Change { graph, renaming, note: format!("{} merged", count(merged, "node")) })
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
    /// The last node that reads each value.
    reader: Vec<u32>,
    /// Nodes by hash, plus one; 0 is free.
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
        for node in graph.arena.ids() {
            for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                readers[value.index()] += 1;
                reader[value.index()] = node.index() as u32;
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

    /// For each node the earlier one that it equals.
    fn twins(mut self) -> Vec<Option<NodeId>> {
        let mut twins = vec![None; self.graph.arena.len()];
        for node in self.graph.arena.ids() {
            if self.may_merge(node) && self.has_company(node) {
                let twin = self.find_or_insert(node);
                if let Some(twin) = twin {
                    self.merge(node, twin);
                }
                twins[node.index()] = twin;
            }
        }
        twins
    }

    /// Whether another node may read the same.
    fn has_company(&self, node: NodeId) -> bool {
        let mut operands = self.graph.arena.operands(node).iter();
        operands.all(|operand| {
            operand.as_value().is_some_and(|value| self.readers[self.first[value.index()].index()] > 1)
        })
    }

    /// Makes the results of `node` names of those of `twin`.
    fn merge(&mut self, node: NodeId, twin: NodeId) {
        let arena = &self.graph.arena;
        for (old, kept) in arena.results(node).zip(arena.results(twin)) {
            self.first[old] = ValueId::new(kept);
            let lonely = self.readers[kept] == 1;
            self.readers[kept] += self.readers[old];
            let reader = NodeId::new(self.reader[kept] as usize);
            // The only reader so far was passed over, since nothing could equal it until now.
            if lonely && reader < node && self.may_merge(reader) {
                self.find_or_insert(reader);
            }
        }
    }

    fn callee(&self, node: NodeId) -> Callee {
        self.graph.signature(node).callee
    }

    fn is_constant(&self, node: NodeId) -> bool {
        matches!(self.callee(node), Callee::Op(Op::Fill { .. }))
    }

    fn may_merge(&self, node: NodeId) -> bool {
        !self.marked[node.index()] && (self.context.mode != Mode::Train || self.is_constant(node))
    }

    /// The stretch inside which a node may merge.
    fn scope(&self, node: NodeId) -> u32 {
        let free = self.context.across_instances
            || matches!(self.callee(node), Callee::Op(Op::Fill { .. } | Op::Param));
        if free { u32::MAX } else { self.stretch_of[node.index()] }
    }

    /// An operand, after the merges so far.
    fn operand(&self, operand: Operand) -> u32 {
        operand.as_value().map_or(operand.word(), |value| self.first[value.index()].index() as u32)
    }

    fn hash(&self, node: NodeId) -> u64 {
        let mut mix = self.hasher.build_hasher();
        mix.write_u32(self.graph.arena.node(node).sig.index() as u32);
        mix.write_u32(self.scope(node));
        for &operand in self.graph.arena.operands(node) {
            mix.write_u32(self.operand(operand));
        }
        mix.finish()
    }

    fn equal(&self, a: NodeId, b: NodeId) -> bool {
        #[cfg(test)]
        self.compared.set(self.compared.get() + 1);
        let arena = &self.graph.arena;
        let (left, right) = (arena.operands(a), arena.operands(b));
        arena.node(a).sig == arena.node(b).sig
            && self.scope(a) == self.scope(b)
            && left.len() == right.len()
            && left.iter().zip(right).all(|(&a, &b)| self.operand(a) == self.operand(b))
    }

    fn find_or_insert(&mut self, node: NodeId) -> Option<NodeId> {
        if (self.full + 1) * 4 > self.slots.len() * 3 {
            self.enlarge();
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(node) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => {
                    self.slots[slot] = node.index() as u32 + 1;
                    self.full += 1;
                    return None;
                }
                known => {
                    let known = NodeId::new(known as usize - 1);
                    if self.equal(known, node) {
                        return Some(known);
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Doubles the table. Hashes change with every merge of what a node reads, but all of an
    /// node's operands are merged before it comes here.
    fn enlarge(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 2];
        let mask = self.slots.len() - 1;
        for number in old.into_iter().filter(|&number| number != 0) {
            let mut slot = self.hash(NodeId::new(number as usize - 1)) as usize & mask;
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
    fn nodes_that_would_meet_in_a_slot_of_fixed_keys_are_spread() {
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
