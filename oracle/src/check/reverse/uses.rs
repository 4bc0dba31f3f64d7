//! Which contributions the gradient of every value is the sum of, in the order of the reference.

use super::truth::{Contribution, Truths};
use super::{brings_constant, constant_bits};
use crate::check::lanes::gradient_of;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::Plan;
use autobatch_ir::types::DType;
use std::collections::{BTreeMap, BTreeSet};

/// No value of a list.
pub(super) const WHOLE: u32 = u32::MAX;
/// The node of a seed.
pub(super) const SEED: u32 = u32::MAX;

/// One contribution to the gradient of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// The node that contributes, or [`SEED`].
    pub(super) node: u32,
    /// Its contribution, by number; of a seed, the bits of the factor.
    pub(super) contribution: u32,
    /// The place in the list, or [`WHOLE`].
    pub(super) item: u32,
}

/// The contributions to the gradients of all values.
pub(super) struct Expected {
    start: Vec<u32>,
    uses: Vec<Use>,
    /// Per node whether a gradient reaches it.
    pub(super) reached: Vec<bool>,
    /// Signatures that a gradient reaches and that could not be examined.
    pub(super) unknown: Vec<(SigId, NodeId)>,
    /// The losses with their factors, as the plan has them.
    pub(super) losses: Vec<(ValueId, f32)>,
}

impl Expected {
    pub(super) fn of(&self, value: usize) -> &[Use] {
        &self.uses[self.start[value] as usize..self.start[value + 1] as usize]
    }

    pub(super) fn new(graph: &GraphData, truths: &mut Truths<'_>, losses: Vec<(ValueId, f32)>) -> Self {
        let values = graph.arena.values();
        let mut waits = vec![false; values];
        losses.iter().for_each(|(value, _)| waits[value.index()] = true);
        let mut reached = vec![false; graph.arena.len()];
        let mut unknown: BTreeMap<SigId, NodeId> = BTreeMap::new();
        for node in graph.arena.ids().rev() {
            let signature = graph.signature(node);
            if signature.is_list() || !graph.arena.results(node).any(|slot| waits[slot]) {
                continue;
            }
            let sig = graph.arena.node(node).sig;
            let Some(truth) = truths.of(sig) else {
                unknown.entry(sig).or_insert(node);
                continue;
            };
            reached[node.index()] = true;
            for &to in &truth.contributions {
                for_each_value(graph, node, to, |value, _| waits[value] = true);
            }
        }
        let unknown = unknown.into_iter().collect();
        let mut expected = Self { start: vec![0; values + 1], uses: Vec::new(), reached, unknown, losses };
        expected.fill(graph, truths);
        expected
    }

    fn fill(&mut self, graph: &GraphData, truths: &Truths<'_>) {
        let mut count = std::mem::take(&mut self.start);
        self.each(graph, truths, |value, _| count[value + 1] += 1);
        for value in 1..count.len() {
            count[value] += count[value - 1];
        }
        let nobody = Use { node: SEED, contribution: 0, item: WHOLE };
        let mut uses = vec![nobody; count.last().copied().unwrap_or(0) as usize];
        let mut next = count.clone();
        self.each(graph, truths, |value, own| {
            uses[next[value] as usize] = own;
            next[value] += 1;
        });
        self.start = count;
        self.uses = uses;
    }

    fn each(&self, graph: &GraphData, truths: &Truths<'_>, mut each: impl FnMut(usize, Use)) {
        for node in graph.arena.ids().filter(|node| self.reached[node.index()]) {
            let Some(truth) = truths.get(graph.arena.node(node).sig) else { continue };
            let all = &truth.contributions;
            let mut at = 0;
            while at < all.len() {
                let of_operand = all[at..].iter().take_while(|to| to.operand == all[at].operand).count();
                for_each_value(graph, node, all[at], |value, item| {
                    for contribution in at..at + of_operand {
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
    }
}

/// The values that a contribution of a node goes to, with their places in the list.
fn for_each_value(graph: &GraphData, node: NodeId, to: Contribution, mut each: impl FnMut(usize, u32)) {
    let Some(value) = graph.arena.operands(node).get(to.operand as usize).and_then(|own| own.as_value())
    else {
        return;
    };
    if !to.is_list {
        return each(value.index(), WHOLE);
    }
    let items = graph.arena.operands(graph.arena.producer(value));
    for (item, value) in items.iter().enumerate() {
        if let Some(value) = value.as_value() {
            each(value.index(), item as u32);
        }
    }
}

/// The losses that a plan has seeds for: constants written for nodes that were executed
/// before, those of constants as they are if the plan gives their gradients. Of a node with
/// several results that fit, the graph's losses come first, then its outputs; one seed each.
pub(super) fn losses(plan: &Plan, graph: &GraphData) -> Vec<(ValueId, f32)> {
    let mut seen = vec![false; graph.arena.len()];
    let mut found: Vec<(ValueId, f32)> = Vec::new();
    let mut rank = vec![(0u32, true); graph.arena.values()];
    graph.outputs.iter().for_each(|output| rank[output.value.index()].1 = false);
    let asked: BTreeSet<ValueId> =
        plan.outputs.iter().filter_map(|output| gradient_of(graph, &output.key)).collect();
    for step in &plan.steps {
        let bits = constant_bits(plan.kernel(step));
        let brings = bits.is_some() && brings_constant(plan, graph, step);
        for &node in plan.lanes(step) {
            let Some(seen) = seen.get_mut(node.index()) else { continue };
            let (Some(bits), true) = (bits, std::mem::replace(seen, true)) else { continue };
            if brings && !graph.arena.results(node).any(|value| asked.contains(&ValueId::new(value))) {
                continue;
            }
            let width = plan.places(step).first().map(|place| plan.field(place.field()).width());
            let mut fits: Vec<ValueId> = graph
                .arena
                .results(node)
                .map(ValueId::new)
                .filter(|&value| {
                    let ty = graph.type_of(value);
                    ty.dtype == DType::F32 && !ty.is_list && Some(ty.shape.elements() as u32) == width
                })
                .collect();
            fits.sort_by_key(|value| rank[value.index()]);
            if let Some(&value) = fits.first() {
                rank[value.index()].0 += 1;
                found.push((value, f32::from_bits(bits)));
            }
        }
    }
    found
}
