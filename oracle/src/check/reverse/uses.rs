//! The contributions to the gradient of every value, in the order of the reference.

use super::Name;
use super::reference_derivative::{Contribution, ReferenceDerivatives};
use crate::check::constant_bits;
use autobatch_ir::graph::GraphData;
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

/// The contribution to an item of all nodes that attend to it together with a partner.
#[derive(Clone, Copy)]
struct Chain {
    /// The number of its nodes among those of all chains.
    readers: usize,
    /// The last place of the item in the list of the last node.
    place: u32,
}

/// Two lists that were the first to hold some items, by signature and contribution.
type Holder = (SigId, u32, [ValueId; 2]);

/// The contributions to the gradients of all values.
pub(super) struct Expected {
    start: Vec<u32>,
    uses: Vec<Use>,
    /// By signature, contribution, and an item with its partner.
    chains: BTreeMap<(SigId, u32, [ValueId; 2]), Chain>,
    /// The nodes of chains, ascending.
    readers: Vec<Vec<u32>>,
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
        let (start, uses, chains, readers) = (vec![0; values + 1], Vec::new(), BTreeMap::new(), Vec::new());
        let mut expected = Self { start, uses, chains, readers, reached, unknown, losses, arriving };
        expected.find_chains(graph, references);
        expected.fill(graph, references);
        expected
    }

    /// Finds the chain of every item. Most items have one pair of lists that was the first to hold them, whose readers they share.
    fn find_chains(&mut self, graph: &GraphData, references: &ReferenceDerivatives<'_>) {
        let mut numbers: BTreeMap<Holder, usize> = BTreeMap::new();
        for node in graph.arena.ids().filter(|node| self.reached[node.index()]) {
            let sig = graph.arena.node(node).sig;
            let Some(reference) = references.get(sig) else { continue };
            for (contribution, &to) in (0..).zip(&reference.contributions) {
                let Some(lists) = lists_of_link(graph, node, to) else { continue };
                let mut pair = Some(lists);
                while let Some(lists) = pair {
                    let number = *numbers.entry((sig, contribution, lists)).or_insert(self.readers.len());
                    if number == self.readers.len() {
                        self.readers.push(Vec::new());
                    }
                    self.readers[number].push(node.index() as u32);
                    pair = graph.arena.grown_together(lists, &graph.sigs);
                }
            }
        }
        let mut held: BTreeMap<Holder, Vec<Chain>> = BTreeMap::new();
        for (&(sig, contribution, lists), &readers) in &numbers {
            let before = graph.arena.grown_together(lists, &graph.sigs);
            let first = before.map_or(0, |[list, _]| graph.arena.items(list, &graph.sigs).len());
            let [items, partners] = lists.map(|list| graph.arena.items(list, &graph.sigs));
            for (place, pair) in items.iter().zip(&*partners).enumerate().skip(first) {
                if let (Some(item), Some(partner)) = (pair.0.as_value(), pair.1.as_value()) {
                    let chain = Chain { readers, place: place as u32 };
                    held.entry((sig, contribution, [item, partner])).or_default().push(chain);
                }
            }
        }
        for (key, parts) in held {
            let last = |part: &&Chain| (self.readers[part.readers].last().copied(), part.place);
            let Some(&chain) = parts.iter().max_by_key(last) else { continue };
            let readers = if parts.len() == 1 {
                chain.readers
            } else {
                let all = parts.iter().flat_map(|part| self.readers[part.readers].iter().copied());
                let mut all: Vec<u32> = all.collect();
                all.sort_unstable();
                self.readers.push(all);
                self.readers.len() - 1
            };
            self.chains.insert(key, Chain { readers, ..chain });
        }
    }

    /// The nodes of the chain of an item with its partner, ascending, and the place of the item in the list of the last of them.
    pub(super) fn chain(&self, sig: SigId, contribution: u32, pair: [ValueId; 2]) -> Option<(&[u32], u32)> {
        let chain = self.chains.get(&(sig, contribution, pair))?;
        Some((&self.readers[chain.readers], chain.place))
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
            let partners = |&to: &Contribution| {
                let [_, partners] = lists_of_link(graph, node, to)?;
                Some(graph.arena.items(partners, &graph.sigs))
            };
            let partners: Vec<_> = all.iter().map(partners).collect();
            // Whether the chain of a value at a place has later links.
            let continues = |contribution: usize, value: usize, place: u32| {
                let Some(partners) = &partners[contribution] else { return false };
                let partner = partners.get(place as usize).and_then(|partner| partner.as_value());
                let pair = partner.map(|partner| [ValueId::new(value), partner]);
                let chain = pair.and_then(|pair| self.chain(sig, contribution as u32, pair));
                chain.is_some_and(|(readers, last)| {
                    (readers.last(), last) != (Some(&(node.index() as u32)), place)
                })
            };
            let mut at = 0;
            while at < all.len() {
                let of_operand = all[at..].iter().take_while(|to| to.operand == all[at].operand).count();
                for_each_value(graph, node, all[at], |value, item| {
                    for contribution in
                        (at..at + of_operand).filter(|&number| !continues(number, value, item))
                    {
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

/// The lists of the items and of their partners, if a contribution is a link of a chain.
fn lists_of_link(graph: &GraphData, node: NodeId, to: Contribution) -> Option<[ValueId; 2]> {
    let operands = graph.arena.operands(node);
    let list = |operand: u32| operands.get(operand as usize).and_then(|own| own.as_value());
    Some([list(to.operand)?, list(to.partner?)?])
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
