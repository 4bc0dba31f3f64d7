//! The body of a cell, cut in two: what needs the free ports alone, and the rest.

use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Signature};
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::module::Body;
use std::collections::BTreeSet;

/// What becomes of a node of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It is a port, a constant or a parameter: whoever needs it has it.
    Source,
    /// It is done before the recurrence.
    Before,
    /// It is a list of what is done before: a name that no cell can hand on, so whoever needs it makes it.
    Either,
    /// It stays.
    Stays,
    /// A product whose first factors are free: these are met before, the others behind.
    Cut {
        /// The factors that are met before.
        before: Vec<ValueId>,
        /// The others.
        behind: Vec<ValueId>,
        /// The first row of the weight that those behind meet.
        row: u32,
    },
}

/// A body with the parts of its nodes.
pub(super) struct Plan<'a> {
    pub(super) body: &'a Body,
    pub(super) parts: Vec<Part>,
    /// Values made before that the rest reads, ascending; a cut product stands for its first part.
    pub(super) crossing: Vec<ValueId>,
    /// Multiply-adds a row, done before.
    pub(super) weights: u64,
}

/// One of the cells that a cell is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// What is done before the recurrence.
    Before,
    /// What stays in it.
    Rest,
}

impl Plan<'_> {
    /// The values that a half makes for others.
    pub(super) fn results(&self, half: Half) -> &[ValueId] {
        match half {
            Half::Before => &self.crossing,
            Half::Rest => &self.body.results,
        }
    }

    /// What a node reads in a half: of a cut product that half's factors.
    pub(super) fn reads(&self, half: Half, node: NodeId) -> Vec<ValueId> {
        match (&self.parts[node.index()], half) {
            (Part::Cut { before, .. }, Half::Before) => before.clone(),
            (Part::Cut { behind, .. }, Half::Rest) => behind.clone(),
            _ => values(&self.body.arena, node),
        }
    }

    /// Whether a cut product reads vectors through a join, and a join or a vector has another reader.
    pub(super) fn shares_joined(&self, graph: &GraphData) -> bool {
        let arena = &self.body.arena;
        let mut readers = vec![0u32; arena.values()];
        for node in arena.ids() {
            values(arena, node).iter().for_each(|value| readers[value.index()] += 1);
        }
        self.body.results.iter().for_each(|value| readers[value.index()] += 1);
        arena.ids().filter(|node| matches!(self.parts[node.index()], Part::Cut { .. })).any(|node| {
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

    /// The nodes of the body, ports included, that a half needs.
    pub(super) fn needed(&self, half: Half) -> Vec<bool> {
        let arena = &self.body.arena;
        let crosses =
            |value: ValueId| half == Half::Rest && self.parts[arena.producer(value).index()] == Part::Before;
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

/// What is known of a value of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// Constants and parameters alone.
    Nothing,
    /// Free ports, besides constants.
    Free,
    /// Something of the recurrence.
    Recurrence,
}

/// Cuts a body, or finds nothing in it that pays to be done before: a product.
pub(super) fn cut<'a>(graph: &GraphData, body: &'a Body, free: &[bool]) -> Option<Plan<'a>> {
    let arena = &body.arena;
    let mut from: Vec<From> =
        free.iter().map(|&free| if free { From::Free } else { From::Recurrence }).collect();
    let mut parts = vec![Part::Source; body.ports];
    let mut weights = 0;
    let mut wanted: Vec<NodeId> = Vec::new();
    for node in arena.ids().skip(body.ports) {
        let signature = graph.sigs.get(arena.node(node).sig);
        let operands = values(arena, node);
        let whole = operands.iter().map(|value| from[value.index()]).fold(From::Nothing, join);
        let part = match whole {
            From::Nothing => Part::Source,
            From::Free if signature.is_list() => Part::Either,
            From::Free => {
                if is_product(signature) {
                    weights += products(graph, signature, None);
                    wanted.push(node);
                }
                Part::Before
            }
            From::Recurrence => match cut_product(graph, arena, node, &from) {
                Some((before, behind, row)) => {
                    weights += products(graph, signature, Some(row));
                    wanted.push(node);
                    Part::Cut { before, behind, row }
                }
                None => Part::Stays,
            },
        };
        parts.push(part);
        from.extend(arena.results(node).map(|_| whole));
    }
    if wanted.is_empty() {
        return None;
    }
    keep_needed(arena, &mut parts, &wanted);
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

/// The elements of the weight that a product meets, all or those of so many rows.
fn products(graph: &GraphData, signature: &Signature, rows: Option<u32>) -> u64 {
    let weight = graph.ty(signature.param_types[0]).shape;
    match rows {
        None => weight.elements() as u64,
        Some(rows) => u64::from(rows) * weight.width() as u64,
    }
}

/// The factors of a product, and where it may be cut: behind the free ones that it begins with.
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

/// The vectors that a factor is put together from.
fn flatten(graph: &GraphData, arena: &Arena, value: ValueId, factors: &mut Vec<ValueId>) {
    match joined(graph, arena, value) {
        Some(inner) => inner.into_iter().for_each(|value| flatten(graph, arena, value, factors)),
        None => factors.push(value),
    }
}

/// The vectors that a vector was joined from, if it was.
fn joined(graph: &GraphData, arena: &Arena, value: ValueId) -> Option<Vec<ValueId>> {
    let maker = arena.producer(value);
    let rank = graph.ty(arena.type_of(value)).shape.rank();
    let callee = graph.sigs.get(arena.node(maker).sig).callee;
    (rank == 1 && callee == Callee::Op(Op::Concat { axis: 0 })).then(|| values(arena, maker))
}

/// Of what could be done before, leaves what products need; the rest stays where it is.
fn keep_needed(arena: &Arena, parts: &mut [Part], wanted: &[NodeId]) {
    let mut needed = vec![false; parts.len()];
    wanted.iter().for_each(|node| needed[node.index()] = true);
    for node in arena.ids().rev().filter(|node| parts[node.index()] != Part::Source) {
        if !needed[node.index()] {
            continue;
        }
        let operands = match &parts[node.index()] {
            Part::Cut { before, .. } => before.clone(),
            _ => values(arena, node),
        };
        operands.iter().for_each(|&value| needed[arena.producer(value).index()] = true);
    }
    for (part, needed) in parts.iter_mut().zip(needed) {
        if *part == Part::Before && !needed {
            *part = Part::Stays;
        }
    }
}

/// What the rest reads of what is done before, as it stands or in a list.
fn crossing(body: &Body, parts: &[Part]) -> Vec<ValueId> {
    let arena = &body.arena;
    let mut crossing = BTreeSet::new();
    let mut listed = vec![false; parts.len()];
    let mut read = |value: ValueId, listed: &mut Vec<bool>| {
        let maker = arena.producer(value).index();
        match parts[maker] {
            Part::Before => _ = crossing.insert(value),
            Part::Either => listed[maker] = true,
            Part::Source | Part::Stays | Part::Cut { .. } => {}
        }
    };
    body.results.iter().for_each(|&value| read(value, &mut listed));
    for node in arena.ids().rev() {
        match &parts[node.index()] {
            Part::Stays => values(arena, node).into_iter().for_each(|value| read(value, &mut listed)),
            Part::Cut { behind, .. } => behind.iter().for_each(|&value| read(value, &mut listed)),
            Part::Either if listed[node.index()] => {
                values(arena, node).into_iter().for_each(|value| read(value, &mut listed));
            }
            Part::Either | Part::Source | Part::Before => {}
        }
    }
    let cut = arena.ids().filter(|node| matches!(parts[node.index()], Part::Cut { .. }));
    crossing.extend(cut.map(|node| ValueId::new(arena.results(node).start)));
    crossing.into_iter().collect()
}
