//! What vanished moves save, and what the pieces cost.
//!
//! In about a nanosecond of one core: a row that is copied costs the look at both places and its
//! words; a piece more costs whoever reads or writes it one more row number a lane; and a reader that
//! needs its operand in one place, as elementwise ops do and products do not, puts it together
//! itself. Moves that are linked stand or fall together.

use super::classes::{Classes, Cuts, Spot};
use super::spans::spans;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Signature};
use autobatch_ir::id::{SigId, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// A copied row, apart from its words.
const ROW: u64 = 8;
/// Words copied in the time of one unit.
const WORDS: u64 = 8;
/// A row number more.
const PIECE: u64 = 4;

/// What each group of linked classes saves and costs, by its first root.
pub(super) struct Price {
    group: BTreeMap<u32, u32>,
    saved: BTreeMap<u32, u64>,
    cost: BTreeMap<u32, u64>,
}

impl Price {
    pub(super) fn of(classes: &mut Classes<'_>, cuts: &Cuts) -> Self {
        let (saved, cost) = (BTreeMap::new(), BTreeMap::new());
        let mut price = Self { group: BTreeMap::new(), saved, cost };
        for sig in classes.moves.clone() {
            for (result, place, _) in classes.links(sig) {
                price.link(result, place);
            }
        }
        let graph = classes.graph;
        for (number, signature) in graph.sigs.items().iter().enumerate() {
            let sig = SigId::new(number);
            let times = u64::from(classes.applied[number]);
            if times == 0 {
                continue;
            }
            let words = |id: autobatch_ir::id::TypeId| graph.ty(id).shape.elements() as u64;
            if classes.moves.contains(&sig) {
                let group = classes.links(sig).first().map_or(0, |link| price.group(link.0));
                let rows: u64 = signature.results.iter().map(|&id| ROW + words(id) / WORDS).sum();
                *price.saved.entry(group).or_default() += times * rows;
                continue;
            }
            let results = (0..signature.results.len()).map(|result| Spot::Result(sig, result));
            let places = (0..signature.operands.len()).map(|place| Spot::Place(sig, place));
            for spot in results.chain(places) {
                let number = classes.spot(spot);
                let more = classes.pieces(cuts, number).len() as u64 - 1;
                if more == 0 {
                    continue;
                }
                let joins = match spot {
                    Spot::Place(_, place) if !takes_parts(graph, signature, place) => {
                        words(signature.operands[place]) / WORDS
                    }
                    _ => 0,
                };
                let root = classes.find(number);
                let group = price.group(root);
                *price.cost.entry(group).or_default() += times * (more * PIECE + joins);
            }
        }
        price
    }

    /// The moves that cost at least what they save.
    pub(super) fn losing(&self, classes: &mut Classes<'_>) -> BTreeSet<SigId> {
        let of = |all: &BTreeMap<u32, u64>, group: u32| all.get(&group).copied().unwrap_or(0);
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

/// Whether an operand place takes its value in parts without putting them together.
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

/// Whether all readers of a value of a body take it in parts.
fn parts_suffice(graph: &GraphData, arena: &Arena, value: ValueId) -> bool {
    arena.ids().all(|app| {
        let signature = graph.sigs.get(arena.app(app).sig);
        let mut read = arena.operands(app).iter().enumerate();
        read.all(|(place, operand)| {
            if operand.as_value() != Some(value) || signature.is_list() {
                return operand.as_value() != Some(value);
            }
            if spans(graph, signature).is_some() {
                return arena.results(app).all(|result| parts_suffice(graph, arena, ValueId::new(result)));
            }
            takes_parts(graph, signature, place)
        })
    })
}
