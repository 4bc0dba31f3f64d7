//! Classes of results and operands that must be cut alike, and their cuts.
//!
//! Every result and every operand of every signature is a *spot*. Spots with a common value form a class: the producer of the value
//! and all readers must agree on its pieces. A move links classes: a range of its result is a range of its operand, so a cut in one
//! is a cut in the other. Cuts spread until nothing changes. A piece and its images in other classes form one *unit*, which has the
//! same type everywhere.

use super::gains::Gains;
use super::spans::{Span, spans};
use crate::rewrite::marked;
use autobatch_ir::graph::{Callee, GraphData, Op, Signature};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::types::{DType, Shape, Type};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of pieces of a value.
const MAX_PIECES: usize = 8;

/// A result or an operand of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Result(SigId, usize),
    Place(SigId, usize),
}

/// The classes of all spots.
pub(super) struct Classes<'a> {
    pub(super) graph: &'a GraphData,
    /// The first result and the first operand of each signature among the spots.
    base: Vec<(u32, u32)>,
    up: Vec<u32>,
    ty: Vec<Type>,
    /// Whether the values of a class must stay whole, and whether they must keep their type; valid for roots.
    uncut: Vec<bool>,
    fixed: Vec<bool>,
    /// The signatures of moves that may still be removed.
    pub(super) moves: Vec<SigId>,
    /// Number of nodes of each signature.
    pub(super) applied: Vec<u32>,
    /// The spots that read constants, by the signature of the constant.
    pub(super) constants: BTreeSet<(SigId, u32)>,
}

/// Cuts of the classes by root, and the type of each piece.
#[derive(Default)]
pub(super) struct Cuts {
    at: BTreeMap<u32, BTreeSet<u32>>,
    units: BTreeMap<(u32, u32), Type>,
}

/// One side of a link: elements of a class from one on.
#[derive(Clone, Copy)]
struct Side {
    class: u32,
    from: u32,
}

impl<'a> Classes<'a> {
    /// The classes of a graph. `None` if it has no moves.
    pub(super) fn of(
        graph: &'a GraphData,
        kept: impl Iterator<Item = ValueId>,
        training: bool,
    ) -> Option<Self> {
        let sigs = graph.sigs.items();
        let changes_gradients = |signature: &Signature| {
            matches!(signature.callee, Callee::Op(Op::StopGradient | Op::ScaleGradient { .. }))
        };
        let is_move = |signature: &Signature| {
            spans(graph, signature).is_some() && !(training && changes_gradients(signature))
        };
        let is_move: Vec<bool> = sigs.iter().map(is_move).collect();
        if !graph.arena.nodes().iter().any(|node| is_move[node.sig.index()]) {
            return None;
        }
        let mut base = Vec::with_capacity(sigs.len());
        let mut ty = Vec::new();
        for signature in sigs {
            let first = ty.len() as u32;
            ty.extend(signature.results.iter().map(|&id| graph.ty(id)));
            base.push((first, ty.len() as u32));
            ty.extend(signature.operands.iter().map(|&id| graph.ty(id)));
        }
        let count = ty.len();
        let mut classes = Self {
            graph,
            base,
            up: (0..count as u32).collect(),
            ty,
            uncut: vec![false; count],
            fixed: vec![false; count],
            moves: Vec::new(),
            applied: vec![0; sigs.len()],
            constants: BTreeSet::new(),
        };
        classes.unite_spots();
        let used = |sig: &usize| is_move[*sig] && classes.applied[*sig] > 0;
        classes.moves = (0..sigs.len()).filter(used).map(SigId::new).collect();
        classes.pin(kept);
        Some(classes)
    }

    /// Unites the spots of every value, in one walk.
    fn unite_spots(&mut self) {
        let graph = self.graph;
        for node in graph.arena.ids() {
            let sig = graph.arena.node(node).sig;
            self.applied[sig.index()] += 1;
            let is_list = graph.sigs.get(sig).is_list();
            for (place, operand) in graph.arena.operands(node).iter().enumerate() {
                let Some(value) = operand.as_value() else { continue };
                let spot = self.spot(Spot::Place(sig, if is_list { 0 } else { place }));
                let (maker, result) = self.made_by(value.index());
                if matches!(graph.sigs.get(maker).callee, Callee::Op(Op::Fill { .. })) {
                    self.constants.insert((maker, spot));
                } else {
                    let made = self.spot(Spot::Result(maker, result));
                    self.unite(spot, made);
                }
            }
        }
    }

    /// The signature and the number of the result that a value is.
    fn made_by(&self, value: usize) -> (SigId, usize) {
        let node = self.graph.arena.node(self.graph.arena.producer(ValueId::new(value)));
        (node.sig, value - node.results as usize)
    }

    /// Marks the values that stay whole: requested values, operands and results of marked nodes, elements of lists, and types other
    /// than floats.
    fn pin(&mut self, kept: impl Iterator<Item = ValueId>) {
        let graph = self.graph;
        let mut pins: Vec<Spot> = Vec::new();
        for value in kept {
            let (sig, result) = self.made_by(value.index());
            pins.push(Spot::Result(sig, result));
        }
        let marked = marked(graph);
        let mut whole_sigs: BTreeSet<SigId> = BTreeSet::new();
        for (number, _) in marked.iter().enumerate().filter(|(_, marked)| **marked) {
            whole_sigs.insert(graph.arena.node(NodeId::new(number)).sig);
        }
        for (number, signature) in graph.sigs.items().iter().enumerate() {
            let sig = SigId::new(number);
            match signature.callee {
                Callee::Op(Op::Input(_)) => {
                    let root = self.find(self.base[number].0) as usize;
                    self.uncut[root] = true;
                }
                Callee::Op(Op::Param | Op::List | Op::Port(_)) => drop(whole_sigs.insert(sig)),
                _ if graph.module.noise_ports(signature) > 0 => drop(whole_sigs.insert(sig)),
                _ => {}
            }
        }
        for &sig in &whole_sigs {
            let signature = graph.sigs.get(sig);
            pins.extend((0..signature.results.len()).map(|result| Spot::Result(sig, result)));
            pins.extend((0..signature.operands.len()).map(|place| Spot::Place(sig, place)));
        }
        let spots: Vec<u32> = pins.into_iter().map(|spot| self.spot(spot)).collect();
        let odd = |ty: &Type| ty.is_list || ty.dtype != DType::F32;
        let odd = (0..).zip(&self.ty).filter(|(_, ty)| odd(ty)).map(|(spot, _)| spot);
        let all: Vec<u32> = spots.into_iter().chain(odd).collect();
        for spot in all {
            let root = self.find(spot) as usize;
            (self.uncut[root], self.fixed[root]) = (true, true);
        }
    }

    pub(super) fn spot(&self, spot: Spot) -> u32 {
        match spot {
            Spot::Result(sig, result) => self.base[sig.index()].0 + result as u32,
            Spot::Place(sig, place) => self.base[sig.index()].1 + place as u32,
        }
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        let (low, high) = (a.min(b), a.max(b));
        self.up[high as usize] = low;
    }

    pub(super) fn find(&mut self, mut spot: u32) -> u32 {
        while self.up[spot as usize] != spot {
            let up = self.up[self.up[spot as usize] as usize];
            self.up[spot as usize] = up;
            spot = up;
        }
        spot
    }

    /// Decides which moves are removed, and returns their cuts. Every class of a removed move allows its cuts, and the move gains more
    /// than it costs (without the second condition if `eager`).
    pub(super) fn decide(&mut self, eager: bool) -> Cuts {
        loop {
            let cuts = match self.cuts() {
                Ok(cuts) => cuts,
                Err(blamed) => {
                    self.moves.retain(|sig| !blamed.contains(sig));
                    continue;
                }
            };
            let losing = if eager { BTreeSet::new() } else { Gains::of(self, &cuts).losing(self) };
            if losing.is_empty() {
                return cuts;
            }
            self.moves.retain(|sig| !losing.contains(sig));
        }
    }

    /// The links of a move: its spans with the class roots of result and operand.
    pub(super) fn links(&mut self, sig: SigId) -> Vec<(u32, u32, Span)> {
        let all = spans(self.graph, self.graph.sigs.get(sig)).unwrap_or_default();
        let roots = all.into_iter().map(|span| {
            let result = self.spot(Spot::Result(sig, span.result));
            let place = self.spot(Spot::Place(sig, span.place));
            (self.find(result), self.find(place), span)
        });
        roots.collect()
    }

    /// The cuts of all moves, or the moves whose cuts are not allowed.
    fn cuts(&mut self) -> Result<Cuts, BTreeSet<SigId>> {
        let mut links = Vec::new();
        for sig in self.moves.clone() {
            links.extend(self.links(sig).into_iter().map(|(result, place, span)| (sig, result, place, span)));
        }
        let mut cuts = Cuts::default();
        let mut blamed = BTreeSet::new();
        let mut changed = true;
        while changed && blamed.is_empty() {
            changed = false;
            for &(sig, result, place, span) in &links {
                let result = Side { class: result, from: span.from };
                let place = Side { class: place, from: span.at };
                for (own, other) in [(result, place), (place, result)] {
                    match self.spread(&mut cuts, own, other, span.width) {
                        Some(grown) => changed |= grown,
                        None => _ = blamed.insert(sig),
                    }
                }
            }
        }
        if blamed.is_empty() {
            blamed = self.name_units(&mut cuts, &links);
        }
        if blamed.is_empty() { Ok(cuts) } else { Err(blamed) }
    }

    /// Copies the cuts inside `other`, and the ends of both, to `own`. Returns whether cuts were added, or `None` if `own` may not be
    /// cut that way.
    fn spread(&self, cuts: &mut Cuts, own: Side, other: Side, width: u32) -> Option<bool> {
        let mut new: Vec<u32> = vec![own.from, own.from + width];
        let inside = cuts.at.get(&other.class).into_iter().flatten();
        let inside = inside.filter(|&&cut| cut > other.from && cut < other.from + width);
        new.extend(inside.map(|cut| own.from + (cut - other.from)));
        let whole = self.ty[own.class as usize].shape.elements() as u32;
        new.retain(|&cut| cut > 0 && cut < whole);
        let own_cuts = cuts.at.entry(own.class).or_default();
        let before = own_cuts.len();
        own_cuts.extend(new);
        let is_allowed =
            own_cuts.len() < MAX_PIECES && (own_cuts.is_empty() || !self.uncut[own.class as usize]);
        is_allowed.then(|| own_cuts.len() > before)
    }

    /// Chooses the type of every unit. Returns the moves that link pieces of different fixed types.
    fn name_units(&self, cuts: &mut Cuts, links: &[(SigId, u32, u32, Span)]) -> BTreeSet<SigId> {
        let mut keys: Vec<(u32, u32)> = Vec::new();
        for (&root, own) in &cuts.at {
            keys.extend((0..=own.len() as u32).map(|piece| (root, piece)));
        }
        let mut up: Vec<usize> = (0..keys.len()).collect();
        let find = |up: &mut Vec<usize>, mut unit: usize| {
            while up[unit] != unit {
                up[unit] = up[up[unit]];
                unit = up[unit];
            }
            unit
        };
        let number = |key: (u32, u32)| keys.binary_search(&key).expect("every linked class has units");
        for &(_, result, place, span) in links {
            let (first, others) = (cuts.piece_at(result, span.from), cuts.piece_at(place, span.at));
            let pieces = cuts.piece_at(result, span.from + span.width) - first;
            for piece in 0..pieces {
                let (a, b) = (number((result, first + piece)), number((place, others + piece)));
                let (a, b) = (find(&mut up, a), find(&mut up, b));
                up[a.max(b)] = a.min(b);
            }
        }
        // A fixed type comes first, then the type of a whole value, then a vector.
        let mut chosen: BTreeMap<usize, (u8, Type)> = BTreeMap::new();
        for (unit, &(root, piece)) in keys.iter().enumerate() {
            let whole = cuts.at[&root].is_empty();
            let width = cuts.width(root, piece, self.ty[root as usize]);
            let (rank, ty) = match (whole, self.fixed[root as usize]) {
                (true, true) => (0, self.ty[root as usize]),
                (true, false) => (1, self.ty[root as usize]),
                _ => (2, self.ty[root as usize].with_shape(vector(width))),
            };
            let best = chosen.entry(find(&mut up, unit)).or_insert((rank, ty));
            if rank < best.0 {
                *best = (rank, ty);
            }
        }
        for (unit, &key) in keys.iter().enumerate() {
            cuts.units.insert(key, chosen[&find(&mut up, unit)].1);
        }
        let broken =
            |root: u32| self.fixed[root as usize] && cuts.units[&(root, 0)] != self.ty[root as usize];
        links.iter().filter(|link| broken(link.1) || broken(link.2)).map(|link| link.0).collect()
    }

    /// The pieces of a spot's values, by their types.
    pub(super) fn pieces(&mut self, cuts: &Cuts, spot: u32) -> Vec<Type> {
        let root = self.find(spot);
        match cuts.at.get(&root) {
            None => vec![self.ty[spot as usize]],
            Some(own) => (0..=own.len() as u32).map(|piece| cuts.units[&(root, piece)]).collect(),
        }
    }
}

impl Cuts {
    /// The piece of a class that begins here.
    pub(super) fn piece_at(&self, root: u32, offset: u32) -> u32 {
        let Some(own) = self.at.get(&root) else { return u32::from(offset > 0) };
        // The end of the value is no cut, and comes after the last piece.
        let before = own.range(..offset).count() as u32;
        before + u32::from(offset > 0)
    }

    fn width(&self, root: u32, piece: u32, whole: Type) -> u32 {
        let own: Vec<u32> = self.at[&root].iter().copied().collect();
        let piece = piece as usize;
        let from = if piece == 0 { 0 } else { own[piece - 1] };
        own.get(piece).copied().unwrap_or(whole.shape.elements() as u32) - from
    }
}

/// The shape of a vector.
pub(super) fn vector(width: u32) -> Shape {
    Shape::new(&[width]).expect("a piece is no larger than its value")
}
