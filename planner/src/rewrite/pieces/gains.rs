//! The gain of removing moves, by the default [`CostTable`].
//!
//! A copied row costs a stage and a table entry per span, and its elements. An additional piece costs each reader and writer one more
//! table entry per lane. A reader that needs its operand in one piece joins it: elementwise ops do, products do not. Linked moves are
//! removed together or not at all.

use super::classes::{Classes, Cuts, Spot};
use super::spans::spans;
use crate::schedule::CostTable;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Signature};
use autobatch_ir::id::{SigId, TypeId, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Saved and added costs of each group of linked classes, by its first root.
pub(super) struct Gains {
    group: BTreeMap<u32, u32>,
    saved: BTreeMap<u32, f64>,
    cost: BTreeMap<u32, f64>,
}

impl Gains {
    pub(super) fn of(classes: &mut Classes<'_>, cuts: &Cuts) -> Self {
        let (saved, cost) = (BTreeMap::new(), BTreeMap::new());
        let mut gains = Self { group: BTreeMap::new(), saved, cost };
        for sig in classes.moves.clone() {
            for (result, place, _) in classes.links(sig) {
                gains.link(result, place);
            }
        }
        let (graph, table) = (classes.graph, CostTable::default());
        let map = table.classes.map;
        for (number, signature) in graph.sigs.items().iter().enumerate() {
            let sig = SigId::new(number);
            let times = f64::from(classes.applied[number]);
            if times == 0.0 {
                continue;
            }
            let words = |id: TypeId| graph.ty(id).shape.elements() as f64;
            if classes.moves.contains(&sig) {
                let links = classes.links(sig);
                let group = links.first().map_or(0, |link| gains.group(link.0));
                let copied: f64 = signature.results.iter().map(|&id| words(id) * map.unit_ns).sum();
                let row = links.len() as f64 * (map.row_ns + table.gathered_row_ns) + copied;
                *gains.saved.entry(group).or_default() += times * row;
                continue;
            }
            let results = (0..signature.results.len()).map(|result| Spot::Result(sig, result));
            let places = (0..signature.operands.len()).map(|place| Spot::Place(sig, place));
            for spot in results.chain(places) {
                let number = classes.spot(spot);
                let more = classes.pieces(cuts, number).len() - 1;
                if more == 0 {
                    continue;
                }
                let joins = match spot {
                    Spot::Place(_, place) if !takes_parts(graph, signature, place) => {
                        words(signature.operands[place]) * map.unit_ns + (more + 1) as f64 * map.row_ns
                    }
                    _ => 0.0,
                };
                let root = classes.find(number);
                let group = gains.group(root);
                *gains.cost.entry(group).or_default() +=
                    times * (more as f64 * table.gathered_row_ns + joins);
            }
        }
        gains
    }

    /// The moves that cost at least what they save.
    pub(super) fn losing(&self, classes: &mut Classes<'_>) -> BTreeSet<SigId> {
        let of = |all: &BTreeMap<u32, f64>, group: u32| all.get(&group).copied().unwrap_or(0.0);
        let mut losing = BTreeSet::new();
        for sig in classes.moves.clone() {
            let Some(&(root, ..)) = classes.links(sig).first() else { continue };
            let group = self.group(root);
            if of(&self.saved, group) <= of(&self.cost, group) {
                losing.insert(sig);
            }
        }
        losing
    }

    fn group(&self, mut root: u32) -> u32 {
        while let Some(&up) = self.group.get(&root) {
            root = up;
        }
        root
    }

    fn link(&mut self, a: u32, b: u32) {
        let (a, b) = (self.group(a), self.group(b));
        if a != b {
            self.group.insert(a.max(b), a.min(b));
        }
    }
}

/// Whether an operand accepts its value in pieces without a join.
fn takes_parts(graph: &GraphData, signature: &Signature, place: usize) -> bool {
    match signature.callee {
        Callee::Op(Op::Affine { .. }) => graph.ty(signature.operands[place]).shape.rank() == 1,
        Callee::Op(_) => false,
        Callee::Cell(cell) => {
            let arena = &graph.module.cell_decl(cell).body.arena;
            parts_suffice(graph, arena, ValueId::new(place))
        }
    }
}

/// Whether all readers of a value of a body accept it in pieces.
fn parts_suffice(graph: &GraphData, arena: &Arena, value: ValueId) -> bool {
    arena.ids().all(|node| {
        let signature = graph.sigs.get(arena.node(node).sig);
        let mut read = arena.operands(node).iter().enumerate();
        read.all(|(place, operand)| {
            if operand.as_value() != Some(value) || signature.is_list() {
                return operand.as_value() != Some(value);
            }
            if spans(graph, signature).is_some() {
                return arena.results(node).all(|result| parts_suffice(graph, arena, ValueId::new(result)));
            }
            takes_parts(graph, signature, place)
        })
    })
}
