//! Splits the body of a cell in two: the part that needs only the free ports, and the rest.

use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Signature};
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::module::Body;
use std::collections::BTreeSet;

/// The half of a node of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BodyPart {
    /// A port, constant or parameter, available in both halves.
    Source,
    /// Before the recurrence.
    Before,
    /// A list of values from before. A cell cannot return a list, so each half that needs the list makes it.
    Either,
    /// In the rest.
    Stays,
    /// A product whose first factors are free: they move before the recurrence, the others stay.
    Cut {
        /// The factors before the recurrence.
        before: Vec<ValueId>,
        /// The other factors.
        behind: Vec<ValueId>,
        /// The first row of the weight for the other factors.
        row: u32,
    },
}

/// A body with the half of each node.
pub(super) struct Plan<'a> {
    pub(super) body: &'a Body,
    pub(super) parts: Vec<BodyPart>,
    /// Values from before that the rest reads, ascending. A cut product stands for its first part.
    pub(super) crossing: Vec<ValueId>,
    /// Multiply-adds per row before the recurrence.
    pub(super) weights: u64,
}

/// One of the two new cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// The cell before the recurrence.
    Before,
    /// The cell of the recurrence.
    Rest,
}

impl Plan<'_> {
    /// The results of a half.
    pub(super) fn results(&self, half: Half) -> &[ValueId] {
        match half {
            Half::Before => &self.crossing,
            Half::Rest => &self.body.results,
        }
    }

    /// The operands of a node in a half. For a cut product: the factors of that half.
    pub(super) fn reads(&self, half: Half, node: NodeId) -> Vec<ValueId> {
        match (&self.parts[node.index()], half) {
            (BodyPart::Cut { before, .. }, Half::Before) => before.clone(),
            (BodyPart::Cut { behind, .. }, Half::Rest) => behind.clone(),
            _ => values(&self.body.arena, node),
        }
    }

    /// Whether a cut product reads joined vectors of which one, or the join, has another reader.
    pub(super) fn shares_joined(&self, graph: &GraphData) -> bool {
        let arena = &self.body.arena;
        let mut readers = vec![0u32; arena.values()];
        for node in arena.ids() {
            values(arena, node).iter().for_each(|value| readers[value.index()] += 1);
        }
        self.body.results.iter().for_each(|value| readers[value.index()] += 1);
        arena.ids().filter(|node| matches!(self.parts[node.index()], BodyPart::Cut { .. })).any(|node| {
            let mut factors: Vec<ValueId> = values(arena, node);
            while let Some(value) = factors.pop() {
                let Some(inner) = joined(graph, arena, value) else { continue };
                if readers[value.index()] > 1 || inner.iter().any(|value| readers[value.index()] > 1) {
                    return true;
                }
                factors.extend(inner);
            }
            false
        })
    }

    /// Marks the nodes that a half needs, ports included.
    pub(super) fn needed(&self, half: Half) -> Vec<bool> {
        let arena = &self.body.arena;
        let crosses = |value: ValueId| {
            half == Half::Rest && self.parts[arena.producer(value).index()] == BodyPart::Before
        };
        let mut needed = vec![false; arena.len()];
        let need = |needed: &mut Vec<bool>, values: &[ValueId]| {
            for &value in values.iter().filter(|&&value| !crosses(value)) {
                needed[arena.producer(value).index()] = true;
            }
        };
        need(&mut needed, self.results(half));
        for node in arena.ids().rev() {
            if needed[node.index()] {
                need(&mut needed, &self.reads(half, node));
            }
        }
        needed
    }
}

/// The dependence of a value of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// Constants and parameters alone.
    Nothing,
    /// Free ports, besides constants.
    Free,
    /// The recurrence.
    Recurrence,
}

/// Splits a body. `None` if no product can be hoisted.
pub(super) fn cut<'a>(graph: &GraphData, body: &'a Body, free: &[bool]) -> Option<Plan<'a>> {
    let arena = &body.arena;
    let mut from: Vec<From> =
        free.iter().map(|&free| if free { From::Free } else { From::Recurrence }).collect();
    let mut parts = vec![BodyPart::Source; body.ports];
    let mut weights = 0;
    let mut hoisted: Vec<NodeId> = Vec::new();
    for node in arena.ids().skip(body.ports) {
        let signature = graph.sigs.get(arena.node(node).sig);
        let operands = values(arena, node);
        let whole = operands.iter().map(|value| from[value.index()]).fold(From::Nothing, join);
        let part = match whole {
            From::Nothing => BodyPart::Source,
            From::Free if signature.is_list() => BodyPart::Either,
            From::Free => {
                if is_product(signature) {
                    weights += products(graph, signature, None);
                    hoisted.push(node);
                }
                BodyPart::Before
            }
            From::Recurrence => match cut_product(graph, arena, node, &from) {
                Some((before, behind, row)) => {
                    weights += products(graph, signature, Some(row));
                    hoisted.push(node);
                    BodyPart::Cut { before, behind, row }
                }
                None => BodyPart::Stays,
            },
        };
        parts.push(part);
        from.extend(arena.results(node).map(|_| whole));
    }
    if hoisted.is_empty() {
        return None;
    }
    keep_needed(arena, &mut parts, &hoisted);
    let crossing = crossing(body, &parts);
    Some(Plan { body, parts, crossing, weights })
}

fn join(a: From, b: From) -> From {
    match (a, b) {
        (From::Recurrence, _) | (_, From::Recurrence) => From::Recurrence,
        (From::Free, _) | (_, From::Free) => From::Free,
        (From::Nothing, From::Nothing) => From::Nothing,
    }
}

fn values(arena: &Arena, node: NodeId) -> Vec<ValueId> {
    arena.operands(node).iter().filter_map(|operand| operand.as_value()).collect()
}

fn is_product(signature: &Signature) -> bool {
    matches!(signature.callee, Callee::Op(Op::Affine { .. } | Op::AffineRows { .. }))
}

/// The elements of the weight of a product, of all rows or of the first `rows`.
fn products(graph: &GraphData, signature: &Signature, rows: Option<u32>) -> u64 {
    let weight = graph.ty(signature.param_types[0]).shape;
    match rows {
        None => weight.elements() as u64,
        Some(rows) => u64::from(rows) * weight.width() as u64,
    }
}

/// Splits the factors of a product after its leading free factors. Also returns the weight row of the split.
fn cut_product(
    graph: &GraphData,
    arena: &Arena,
    node: NodeId,
    from: &[From],
) -> Option<(Vec<ValueId>, Vec<ValueId>, u32)> {
    let signature = graph.sigs.get(arena.node(node).sig);
    let Callee::Op(Op::Affine { transposed: false, .. }) = signature.callee else { return None };
    let mut factors = Vec::new();
    values(arena, node).into_iter().for_each(|value| flatten(graph, arena, value, &mut factors));
    let at = factors.iter().position(|value| from[value.index()] == From::Recurrence)?;
    let behind = factors.split_off(at);
    let width = |value: &ValueId| graph.ty(arena.type_of(*value)).shape.width() as u32;
    let row = factors.iter().map(width).sum();
    let is_free = factors.iter().any(|value| from[value.index()] == From::Free);
    is_free.then_some((factors, behind, row))
}

/// Appends the vectors that a factor is joined from.
fn flatten(graph: &GraphData, arena: &Arena, value: ValueId, factors: &mut Vec<ValueId>) {
    match joined(graph, arena, value) {
        Some(inner) => inner.into_iter().for_each(|value| flatten(graph, arena, value, factors)),
        None => factors.push(value),
    }
}

/// The operands of the join that made a vector, if a join made it.
fn joined(graph: &GraphData, arena: &Arena, value: ValueId) -> Option<Vec<ValueId>> {
    let maker = arena.producer(value);
    let rank = graph.ty(arena.type_of(value)).shape.rank();
    let callee = graph.sigs.get(arena.node(maker).sig).callee;
    (rank == 1 && callee == Callee::Op(Op::Concat { axis: 0 })).then(|| values(arena, maker))
}

/// Moves nodes back to the rest unless a hoisted product needs them.
fn keep_needed(arena: &Arena, parts: &mut [BodyPart], hoisted: &[NodeId]) {
    let mut needed = vec![false; parts.len()];
    hoisted.iter().for_each(|node| needed[node.index()] = true);
    for node in arena.ids().rev().filter(|node| parts[node.index()] != BodyPart::Source) {
        if !needed[node.index()] {
            continue;
        }
        let operands = match &parts[node.index()] {
            BodyPart::Cut { before, .. } => before.clone(),
            _ => values(arena, node),
        };
        operands.iter().for_each(|&value| needed[arena.producer(value).index()] = true);
    }
    for (part, needed) in parts.iter_mut().zip(needed) {
        if *part == BodyPart::Before && !needed {
            *part = BodyPart::Stays;
        }
    }
}

/// The values from before that the rest reads, directly or in a list.
fn crossing(body: &Body, parts: &[BodyPart]) -> Vec<ValueId> {
    let arena = &body.arena;
    let mut crossing = BTreeSet::new();
    let mut listed = vec![false; parts.len()];
    let mut read = |value: ValueId, listed: &mut Vec<bool>| {
        let maker = arena.producer(value).index();
        match parts[maker] {
            BodyPart::Before => _ = crossing.insert(value),
            BodyPart::Either => listed[maker] = true,
            BodyPart::Source | BodyPart::Stays | BodyPart::Cut { .. } => {}
        }
    };
    body.results.iter().for_each(|&value| read(value, &mut listed));
    for node in arena.ids().rev() {
        match &parts[node.index()] {
            BodyPart::Stays => values(arena, node).into_iter().for_each(|value| read(value, &mut listed)),
            BodyPart::Cut { behind, .. } => behind.iter().for_each(|&value| read(value, &mut listed)),
            BodyPart::Either if listed[node.index()] => {
                values(arena, node).into_iter().for_each(|value| read(value, &mut listed));
            }
            BodyPart::Either | BodyPart::Source | BodyPart::Before => {}
        }
    }
    let cut = arena.ids().filter(|node| matches!(parts[node.index()], BodyPart::Cut { .. }));
    crossing.extend(cut.map(|node| ValueId::new(arena.results(node).start)));
    crossing.into_iter().collect()
}
