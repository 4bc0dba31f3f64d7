//! Pieces: values that are only joined or cut need no rows of their own.
//!
//! The moves `concat`, `split`, `slice`, `stack`, `reshape` (and in inference `stop_gradient`) compute nothing. Inside a cell they
//! are views. Between nodes they are copies: rows read, rows written, a batch and a barrier. This pass turns them into names there,
//! too: the producer of a value writes its pieces where the readers expect them.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value that keeps its name: ops see the same numbers in the same order.
//! A value that is read in pieces loses its name, unless it is one piece of its own type.
//!
//! *How.* All decisions are made for signatures, so nodes that shared a batch still do. Results and operands with a common value form
//! a class and are cut alike. A move links classes: a cut in its result is a cut in its operand, until nothing changes. An op or cell
//! that takes or returns pieces is called through a new cell, in whose body joins and cuts are views. Constants are declared once per
//! needed piece.
//!
//! *Not cut*: values that are requested, elements of lists (a list names rows of one field), inputs, parameters as values, types
//! other than floats, and the operands and results of `alone` nodes, `shared` values and noise keys. A move that needs such a cut
//! stays a copy. So does a move that costs more than it saves by `gains`, which ignores the saved barrier: every piece is one more
//! operand for its readers, and an elementwise reader joins its operand itself. A reshape needs no cut and costs nothing.
//!
//! *Gradients.* Gradient sums associate differently, so the pass is off in training.
//!
//! *Cost.* One look at each node in graphs without moves; otherwise one copy of the graph.
//!
//! ```text
//! %2 = concat{axis=0}(%0, %1)   %3 = lookup[@e](#5)     %4 = affine[@w](%2)  %5 = affine[@w](%3)
//!                               %2 %3 = call @parts.lookup[@e](#5)
//! %4 = call @parts.affine[@w](%0, %1)                   %5 = call @parts.affine[@w](%2, %3)
//! ```

mod cells;
mod classes;
mod gains;
mod spans;

use super::{Change, Context, count};
use autobatch_ir::graph::rebuild::{Extension, Rebuild, Renaming};
use autobatch_ir::graph::{Callee, GraphData, Op, Operand, OperandKind, Signature};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::Mode;
use autobatch_ir::types::Type;
use cells::{Pattern, plain, wrap};
use classes::{Classes, Cuts, Spot};
use spans::Span;
use std::collections::BTreeMap;

/// Turns moves into names.
pub(crate) fn pieces(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let mut classes = Classes::of(graph, context.kept(graph), context.mode == Mode::Train)?;
    let all = classes.moves.len();
    let cuts = classes.decide(context.eager);
    if classes.moves.is_empty() {
        return None;
    }
    let vanished: u32 = classes.moves.iter().map(|sig| classes.applied[sig.index()]).sum();
    let stay = all - classes.moves.len();
    let mut extension = Extension::new(graph);
    let fates = Fates::new(&mut extension, &mut classes, &cuts);
    let writer = Writer::new(graph, Rebuild::over(graph, extension.finish()), fates);
    let (rewritten, renaming) = writer.write();
    let rest = match stay {
        0 => String::new(),
        _ => format!("; moves of {} stay", count(stay, "signature")),
    };
    let note = format!("{} removed{rest}", count(vanished as usize, "move"));
    Some(Change { graph: rewritten, renaming, note })
}

/// The rewrite of the nodes of a signature.
enum Fate {
    Stays,
    /// The results are these ranges of the operands.
    Vanishes(Vec<Placed>),
    /// An input or constant, declared piece by piece.
    Source(Vec<Type>),
    /// A call of a new cell.
    Wrapped(Signature),
    /// The signature has no nodes.
    Unused,
}

/// A span of a move, as pieces of its operand.
struct Placed {
    span: Span,
    first: u32,
    count: u32,
}

/// The rewrite of every signature, and the types of the pieces of every operand and result.
struct Fates {
    of: Vec<Fate>,
    /// For each signature and operand.
    places: Vec<Vec<Vec<Type>>>,
    /// For each signature and result.
    results: Vec<Vec<Vec<Type>>>,
}

impl Fates {
    fn new(extension: &mut Extension, classes: &mut Classes<'_>, cuts: &Cuts) -> Self {
        let graph = classes.graph;
        let mut fates = Self { of: Vec::new(), places: Vec::new(), results: Vec::new() };
        let mut first_site: Vec<Option<NodeId>> = vec![None; graph.sigs.items().len()];
        for node in graph.arena.ids().rev() {
            first_site[graph.arena.node(node).sig.index()] = Some(node);
        }
        for (number, signature) in graph.sigs.items().iter().enumerate() {
            let sig = SigId::new(number);
            let mut pieces = |spot: Spot| {
                let spot = classes.spot(spot);
                classes.pieces(cuts, spot)
            };
            let pattern = Pattern {
                places: (0..signature.operands.len()).map(|place| pieces(Spot::Place(sig, place))).collect(),
                results: (0..signature.results.len()).map(|place| pieces(Spot::Result(sig, place))).collect(),
            };
            let fate = match (first_site[number], signature.callee) {
                (None, _) => Fate::Unused,
                (_, Callee::Op(Op::Fill { .. })) => Fate::Source(constant_types(classes, cuts, sig)),
                _ if classes.moves.contains(&sig) => Fate::Vanishes(placed(classes, cuts, sig)),
                _ if pattern.is_plain(graph, signature) => Fate::Stays,
                (_, Callee::Op(Op::Input(_))) => Fate::Source(pattern.results[0].clone()),
                (Some(node), _) => {
                    Fate::Wrapped(wrap(extension, graph, sig, &pattern, graph.arena.node(node).site))
                }
            };
            fates.of.push(fate);
            fates.results.push(pattern.results);
            fates.places.push(pattern.places);
        }
        fates
    }
}

/// The types of a constant: its own, and those of all pieces of the operands that read it.
fn constant_types(classes: &mut Classes<'_>, cuts: &Cuts, sig: SigId) -> Vec<Type> {
    let graph = classes.graph;
    let mut wanted = vec![graph.ty(graph.sigs.get(sig).results[0])];
    let spots: Vec<u32> =
        classes.constants.iter().filter(|known| known.0 == sig).map(|known| known.1).collect();
    for spot in spots {
        wanted.extend(classes.pieces(cuts, spot));
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// The spans of a move, as pieces of its operands.
fn placed(classes: &mut Classes<'_>, cuts: &Cuts, sig: SigId) -> Vec<Placed> {
    let links = classes.links(sig);
    let placed = |(_, place, span): (u32, u32, Span)| {
        let first = cuts.piece_at(place, span.at);
        Placed { span, first, count: cuts.piece_at(place, span.at + span.width) - first }
    };
    links.into_iter().map(placed).collect()
}

/// The writer of the new graph.
struct Writer<'a> {
    graph: &'a GraphData,
    rebuild: Rebuild<'a>,
    fates: Fates,
    /// The first piece of each value in `pool`, and the number of pieces.
    pieces: Vec<(u32, u32)>,
    pool: Vec<(ValueId, Type)>,
}

impl<'a> Writer<'a> {
    fn new(graph: &'a GraphData, rebuild: Rebuild<'a>, fates: Fates) -> Self {
        Self { graph, rebuild, fates, pieces: vec![(0, 0); graph.arena.values()], pool: Vec::new() }
    }

    fn write(mut self) -> (GraphData, Renaming) {
        let mut wrapped: BTreeMap<SigId, SigId> = BTreeMap::new();
        let mut operands = Vec::new();
        for node in self.graph.arena.ids() {
            let old = *self.graph.arena.node(node);
            let fates = std::mem::take(&mut self.fates.of);
            match &fates[old.sig.index()] {
                Fate::Stays => {
                    let first = self.rebuild.copy(node);
                    self.give(node, first);
                }
                Fate::Vanishes(spans) => self.vanish(node, spans),
                Fate::Source(types) => self.source(node, types),
                Fate::Wrapped(signature) => {
                    self.operands(node, &mut operands);
                    let sig = *wrapped.entry(old.sig).or_insert_with(|| self.rebuild.sig(signature.clone()));
                    let first = self.rebuild.append(node, sig, &operands, old.site);
                    self.give(node, first);
                }
                Fate::Unused => unreachable!("a node of the signature exists"),
            }
            self.fates.of = fates;
        }
        self.rebuild.finish()
    }

    /// The operands of a node in pieces.
    fn operands(&self, node: NodeId, operands: &mut Vec<Operand>) {
        operands.clear();
        let sig = self.graph.arena.node(node).sig;
        for (&operand, types) in self.graph.arena.operands(node).iter().zip(&self.fates.places[sig.index()]) {
            match operand.as_value() {
                Some(value) if self.is_constant(value) => {
                    operands.extend(types.iter().map(|&ty| Operand::value(self.constant(value, ty))));
                }
                Some(value) => {
                    operands.extend(self.pieces_of(value).iter().map(|piece| Operand::value(piece.0)));
                }
                None => operands.push(operand),
            }
        }
    }

    fn is_constant(&self, value: ValueId) -> bool {
        let producer = self.graph.arena.producer(value);
        matches!(self.graph.signature(producer).callee, Callee::Op(Op::Fill { .. }))
    }

    fn pieces_of(&self, value: ValueId) -> &[(ValueId, Type)] {
        let (first, count) = self.pieces[value.index()];
        &self.pool[first as usize..(first + count) as usize]
    }

    /// A constant in the type of a piece.
    fn constant(&self, value: ValueId, ty: Type) -> ValueId {
        let known = self.pieces_of(value).iter().find(|piece| piece.1 == ty);
        known.expect("constants are declared as all needed pieces").0
    }

    /// Records the results of a node, from this new value on, as pieces.
    fn give(&mut self, node: NodeId, first: ValueId) {
        let graph = self.graph;
        let sig = graph.arena.node(node).sig;
        let mut next = first.index();
        for (place, value) in graph.arena.results(node).enumerate() {
            let types = &self.fates.results[sig.index()][place];
            self.pieces[value] = (self.pool.len() as u32, types.len() as u32);
            self.pool.extend((next..).map(ValueId::new).zip(types.iter().copied()));
            next += types.len();
            self.rename(ValueId::new(value));
        }
    }

    /// Names a value, if it is one piece of its own type.
    fn rename(&mut self, value: ValueId) {
        if let [(new, ty)] = *self.pieces_of(value)
            && ty == self.graph.type_of(value)
        {
            self.rebuild.name(value, new);
        }
    }

    /// Names the results of a move by the pieces of its operands.
    fn vanish(&mut self, node: NodeId, spans: &[Placed]) {
        let graph = self.graph;
        self.rebuild.reach(node);
        let sig = graph.arena.node(node).sig;
        for (result, value) in graph.arena.results(node).enumerate() {
            let first = self.pool.len() as u32;
            for placed in spans.iter().filter(|placed| placed.span.result == result) {
                let operand = graph.arena.operands(node)[placed.span.place];
                let from = operand.as_value().expect("moves take values");
                let range = placed.first as usize..(placed.first + placed.count) as usize;
                if self.is_constant(from) {
                    let types = &self.fates.places[sig.index()][placed.span.place][range];
                    let own: Vec<(ValueId, Type)> =
                        types.iter().map(|&ty| (self.constant(from, ty), ty)).collect();
                    self.pool.extend(own);
                } else {
                    let begin = self.pieces[from.index()].0 as usize;
                    self.pool.extend_from_within(begin + range.start..begin + range.end);
                }
            }
            self.pieces[value] = (first, self.pool.len() as u32 - first);
            self.rename(ValueId::new(value));
        }
    }

    /// Declares an input or constant piece by piece.
    fn source(&mut self, node: NodeId, types: &[Type]) {
        let graph = self.graph;
        let (site, value) = (graph.arena.node(node).site, graph.arena.results(node).start);
        let begin = self.pool.len() as u32;
        let mut at = 0;
        for &ty in types {
            let id = self.rebuild.ty(ty);
            let piece = match graph.signature(node).callee {
                Callee::Op(Op::Fill { bits, .. }) => {
                    let sig = self.rebuild.sig(plain(Op::Fill { ty, bits }, &[], id));
                    self.rebuild.append(node, sig, &[], site)
                }
                _ => {
                    let sig = self.rebuild.sig(plain(Op::Input(ty), &[id], id));
                    let operand = match graph.arena.operands(node)[0].kind() {
                        Some(OperandKind::Data(slot)) => Operand::data(slot + at),
                        Some(OperandKind::Index(slot)) => Operand::index(slot + at),
                        _ => unreachable!("an input takes bindings"),
                    };
                    self.rebuild.append(node, sig, &[operand], site)
                }
            };
            at += ty.shape.elements() as u32;
            self.pool.push((piece, ty));
        }
        self.pieces[value] = (begin, types.len() as u32);
        match self.graph.signature(node).callee {
            Callee::Op(Op::Fill { ty, .. }) => {
                let own = self.constant(ValueId::new(value), ty);
                self.rebuild.name(ValueId::new(value), own);
            }
            _ => self.rename(ValueId::new(value)),
        }
    }
}
