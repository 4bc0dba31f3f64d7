//! The contributions to the gradient of every value, in the order of the reference.

use super::Name;
use super::reference_derivative::{Contribution, ReferenceDerivatives};
use crate::check::constant_bits;
use autobatch_ir::graph::{GraphData, Lineage};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{OutputKey, Plan, ResultRole};
use autobatch_ir::types::DType;
use std::collections::BTreeMap;

/// The item of a contribution that is for no single value of a list.
pub(super) const WHOLE: u32 = u32::MAX;
/// The node number of a seed.
pub(super) const SEED: u32 = u32::MAX;

/// The node number of a gradient that arrives at the pause.
pub(super) const ARRIVAL: u32 = u32::MAX - 1;

/// One contribution to the gradient of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// The node that contributes, the last of a chain, or [`SEED`], or [`ARRIVAL`].
    pub(super) node: u32,
    /// The number of its contribution; of a seed, the bits of the factor; of an arrival, its place in the pause.
    pub(super) contribution: u32,
    /// The place of the value in a list, or [`WHOLE`].
    pub(super) item: u32,
}

impl Use {
    /// The row that is the contribution, if it belongs to no node.
    pub(super) fn seed(&self) -> Option<Name> {
        match self.node {
            SEED => Some(Name::Seed(self.contribution)),
            ARRIVAL => Some(Name::Arrival(self.contribution)),
            _ => None,
        }
    }
}

/// The contributions to the gradients of all values.
pub(super) struct Expected {
    start: Vec<u32>,
    uses: Vec<Use>,
    /// The nodes of each chain, ascending: by signature, contribution, and the pair of lists that first held the item.
    readers: BTreeMap<(SigId, u32, [ValueId; 2]), Vec<u32>>,
    /// For each node, whether a gradient reaches it.
    pub(super) reached: Vec<bool>,
    /// Signatures that a gradient reaches and that the reference cannot execute.
    pub(super) unknown: Vec<(SigId, NodeId)>,
    pub(super) losses: Vec<(ValueId, f32)>,
    /// The values whose gradients arrive at the pause, in order.
    pub(super) arriving: Vec<ValueId>,
}

impl Expected {
    pub(super) fn of(&self, value: usize) -> &[Use] {
        &self.uses[self.start[value] as usize..self.start[value + 1] as usize]
    }

    pub(super) fn new(
        graph: &GraphData,
        references: &mut ReferenceDerivatives<'_>,
        losses: Vec<(ValueId, f32)>,
        arriving: Vec<ValueId>,
    ) -> Self {
        let values = graph.arena.values();
        let mut reaches = vec![false; values];
        let seeded = losses.iter().map(|(value, _)| value).chain(&arriving);
        seeded.for_each(|value| reaches[value.index()] = true);
        let mut reached = vec![false; graph.arena.len()];
        let mut unknown: BTreeMap<SigId, NodeId> = BTreeMap::new();
        for node in graph.arena.ids().rev() {
            let signature = graph.signature(node);
            if signature.is_list() || !graph.arena.results(node).any(|slot| reaches[slot]) {
                continue;
            }
            let sig = graph.arena.node(node).sig;
            let Some(reference) = references.of(sig) else {
                unknown.entry(sig).or_insert(node);
                continue;
            };
            reached[node.index()] = true;
            for &to in &reference.contributions {
                for_each_value(graph, node, to, |value, _| reaches[value] = true);
            }
        }
        let unknown = unknown.into_iter().collect();
        let (start, uses, readers) = (vec![0; values + 1], Vec::new(), BTreeMap::new());
        let mut expected = Self { start, uses, readers, reached, unknown, losses, arriving };
        expected.find_readers(graph, references);
        expected.fill(graph, references);
        expected
    }

    fn find_readers(&mut self, graph: &GraphData, references: &ReferenceDerivatives<'_>) {
        for node in graph.arena.ids().filter(|node| self.reached[node.index()]) {
            let sig = graph.arena.node(node).sig;
            let Some(reference) = references.get(sig) else { continue };
            for (contribution, &to) in (0..).zip(&reference.contributions) {
                let Some(lineage) = lineage(graph, node, to) else { continue };
                for &pair in lineage.pairs() {
                    self.readers.entry((sig, contribution, pair)).or_default().push(node.index() as u32);
                }
            }
        }
    }

    /// The nodes of the chain to which an item of a node belongs; `lineage` is that of the lists.
    pub(super) fn readers(&self, sig: SigId, contribution: u32, lineage: &Lineage, item: usize) -> &[u32] {
        self.readers.get(&(sig, contribution, lineage.first_with(item))).map_or(&[], Vec::as_slice)
    }

    fn fill(&mut self, graph: &GraphData, references: &ReferenceDerivatives<'_>) {
        let mut count = std::mem::take(&mut self.start);
        self.each(graph, references, |value, _| count[value + 1] += 1);
        for value in 1..count.len() {
            count[value] += count[value - 1];
        }
        let empty = Use { node: SEED, contribution: 0, item: WHOLE };
        let mut uses = vec![empty; count.last().copied().unwrap_or(0) as usize];
        let mut next = count.clone();
        self.each(graph, references, |value, own| {
            uses[next[value] as usize] = own;
            next[value] += 1;
        });
        self.start = count;
        self.uses = uses;
    }

    fn each(
        &self,
        graph: &GraphData,
        references: &ReferenceDerivatives<'_>,
        mut each: impl FnMut(usize, Use),
    ) {
        for node in graph.arena.ids().filter(|node| self.reached[node.index()]) {
            let sig = graph.arena.node(node).sig;
            let Some(reference) = references.get(sig) else { continue };
            let all = &reference.contributions;
            let lineages: Vec<Option<Lineage>> = all.iter().map(|&to| lineage(graph, node, to)).collect();
            let continues = |contribution: usize, item: u32| {
                lineages[contribution].as_ref().is_some_and(|lineage| {
                    let readers = self.readers(sig, contribution as u32, lineage, item as usize);
                    readers.last() != Some(&(node.index() as u32))
                })
            };
            let mut at = 0;
            while at < all.len() {
                let of_operand = all[at..].iter().take_while(|to| to.operand == all[at].operand).count();
                for_each_value(graph, node, all[at], |value, item| {
                    for contribution in (at..at + of_operand).filter(|&number| !continues(number, item)) {
                        let contribution = contribution as u32;
                        each(value, Use { node: node.index() as u32, contribution, item });
                    }
                });
                at += of_operand;
            }
        }
        for &(value, factor) in &self.losses {
            let seed = Use { node: SEED, contribution: factor.to_bits(), item: WHOLE };
            each(value.index(), seed);
        }
        for (place, value) in (0..).zip(&self.arriving) {
            each(value.index(), Use { node: ARRIVAL, contribution: place, item: WHOLE });
        }
    }
}

/// How the lists of a contribution grew, if it is a link of a chain.
pub(super) fn lineage(graph: &GraphData, node: NodeId, to: Contribution) -> Option<Lineage> {
    let operands = graph.arena.operands(node);
    let list = |operand: u32| operands.get(operand as usize).and_then(|own| own.as_value());
    Some(graph.arena.lineage([list(to.operand)?, list(to.partner?)?], &graph.sigs))
}

/// Calls `each` with every value that a contribution of a node is for, and with its place in a list.
fn for_each_value(graph: &GraphData, node: NodeId, to: Contribution, mut each: impl FnMut(usize, u32)) {
    let Some(value) = graph.arena.operands(node).get(to.operand as usize).and_then(|own| own.as_value())
    else {
        return;
    };
    if !to.is_list {
        return each(value.index(), WHOLE);
    }
    let items = graph.arena.items(value, &graph.sigs);
    for (item, value) in items.iter().enumerate() {
        if let Some(value) = value.as_value() {
            each(value.index(), item as u32);
        }
    }
}

/// The values whose gradients arrive at the pause of a plan, in order. An output that the graph does not have is skipped: the
/// proof of the outputs reports it.
pub(super) fn arriving(plan: &Plan, graph: &GraphData) -> Vec<ValueId> {
    let value = |number: &u32| match &plan.outputs.get(*number as usize)?.key {
        OutputKey::Named(name) => {
            graph.outputs.iter().find(|output| output.name == *name).map(|output| output.value)
        }
        OutputKey::Value(value) => Some(*value).filter(|value| value.index() < graph.arena.values()),
        OutputKey::Gradient(_) => None,
    };
    plan.pause.iter().flat_map(|pause| &pause.outputs).filter_map(value).collect()
}

/// The losses that a plan has seeds for. Of several results that fit a seed, the graph's losses come first, then its
/// outputs.
pub(super) fn losses(plan: &Plan, graph: &GraphData) -> Vec<(ValueId, f32)> {
    let mut found: Vec<(ValueId, f32)> = Vec::new();
    // For each value the number of its seeds, and whether it is no output.
    let mut rank = vec![(0u32, true); graph.arena.values()];
    graph.outputs.iter().for_each(|output| rank[output.value.index()].1 = false);
    for step in &plan.steps[plan.forward_steps()..] {
        let kernel = plan.kernel(step);
        let is_seed = kernel.roles.as_ref().is_some_and(|roles| roles.results == [ResultRole::Seed]);
        let Some(bits) = constant_bits(kernel).filter(|_| is_seed) else { continue };
        let width = plan.field(plan.places(step)[0].field()).width() as usize;
        for node in plan.lanes(step).iter().filter(|node| node.index() < graph.arena.len()) {
            let fits = |value: &ValueId| {
                let ty = graph.type_of(*value);
                ty.dtype == DType::F32 && !ty.is_list && ty.shape.elements() == width
            };
            let values = graph.arena.results(*node).map(ValueId::new).filter(fits);
            if let Some(value) = values.min_by_key(|value| rank[value.index()]) {
                rank[value.index()].0 += 1;
                found.push((value, f32::from_bits(bits)));
            }
        }
    }
    found
}
