//! Common subexpression elimination: equal nodes with equal operands become one.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value. A node merges into an earlier one with the same signature
//! (callee, attributes, types, parameter arguments) and the same operands after earlier merges. Bindings are equal if their
//! *slots* are: a plan holds for all bindings, so two slots with equal numbers now stay two.
//!
//! *How.* Value numbering in arena order, with one table from (signature, operands) to the first such node. Entries are compared
//! in full, and the hash has a secret key, so that a foreign graph cannot make all nodes collide. A call of a cell is one node.
//! Most nodes never enter the table: a node that reads a binding, or a value without other readers, has no equal. A value gets a
//! second reader when another value merges into it; its first reader enters the table then.
//!
//! *Scope.* Constants always merge across instances, because they have no gradient. In inference, other nodes merge inside a
//! stretch, and across instances if the context allows that (a sentence in two pairs is then encoded once). In training nothing
//! else merges: the gradients of two equal nodes and the summed gradient of one node round differently, and the bits of gradients
//! are promised. `alone` nodes, nodes of `shared` values and dropout never merge.
//!
//! *Cost.* Linear. A graph without equal nodes is not copied.
//!
//! ```text
//! %2 = tanh(%0)   %3 = tanh(%0)   %4 = mul(%2, %3)
//! %2 = tanh(%0)   %3 = mul(%2, %2)
//! ```

use super::pass::{Change, Context, count, marked, stretches};
use autobatch_ir::graph::rebuild::Rebuild;
use autobatch_ir::graph::{Callee, GraphData, Op, Operand};
use autobatch_ir::hash::BuildMix;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::Mode;
use std::hash::{BuildHasher, Hasher as _};

/// Merges equal nodes.
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
        for (old, survivor) in arena.results(node).zip(arena.results(twin)) {
            let name = rebuild.renaming(ValueId::new(survivor)).expect("a twin is earlier and not removed");
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
    /// For each value the first equal value.
    first: Vec<ValueId>,
    /// Number of readers of each value, including those of merged values.
    readers: Vec<u32>,
    /// The last reader of each value.
    reader: Vec<u32>,
    /// The hash table: node numbers plus one, or 0.
    slots: Vec<u32>,
    /// Number of full slots.
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

    /// For each node the earlier node that it merges into.
    fn twins(mut self) -> Vec<Option<NodeId>> {
        let mut twins = vec![None; self.graph.arena.len()];
        for node in self.graph.arena.ids() {
            if self.may_merge(node) && self.may_have_twin(node) {
                let twin = self.find_or_insert(node);
                if let Some(twin) = twin {
                    self.merge(node, twin);
                }
                twins[node.index()] = twin;
            }
        }
        twins
    }

    /// Whether another node may have the same operands.
    fn may_have_twin(&self, node: NodeId) -> bool {
        let mut operands = self.graph.arena.operands(node).iter();
        operands.all(|operand| {
            operand.as_value().is_some_and(|value| self.readers[self.first[value.index()].index()] > 1)
        })
    }

    /// Makes the results of `node` equal to those of `twin`.
    fn merge(&mut self, node: NodeId, twin: NodeId) {
        let arena = &self.graph.arena;
        for (old, survivor) in arena.results(node).zip(arena.results(twin)) {
            self.first[old] = ValueId::new(survivor);
            let had_one_reader = self.readers[survivor] == 1;
            self.readers[survivor] += self.readers[old];
            let reader = NodeId::new(self.reader[survivor] as usize);
            // The only reader so far had no equal until now and is not in the table.
            if had_one_reader && reader < node && self.may_merge(reader) {
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

    /// The stretch in which a node may merge; `u32::MAX` for all.
    fn scope(&self, node: NodeId) -> u32 {
        let free = self.context.across_instances
            || matches!(self.callee(node), Callee::Op(Op::Fill { .. } | Op::Param));
        if free { u32::MAX } else { self.stretch_of[node.index()] }
    }

    /// An operand after the merges so far.
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

    /// Doubles the table. The hash of a node changes when its operands merge, but they merge before the node enters the table.
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
mod tests;
