//! Reductions: every contribution to a parameter is taken once, and nothing else.

use super::class::{Block, Taken};
use super::uses::WHOLE;
use super::{Derivative, Name, Reverse};
use crate::check::lanes::Lanes;
use crate::check::report::Disagreement;
use autobatch_ir::graph::ParamArg;
use autobatch_ir::id::{NodeId, ParamId, SigId};
use autobatch_ir::plan::blocks::lie_apart;
use autobatch_ir::plan::{Operand, Reduction, ReductionPart, StoreId, StoreKind};
use std::collections::BTreeMap;

/// What is known of the reductions of a plan.
#[derive(Default)]
struct Known {
    /// Blocks by number.
    blocks: Vec<(SigId, Block)>,
    numbers: BTreeMap<(SigId, Block), u32>,
    /// What a final takes from a class, by final, rows a lane and sources.
    found: BTreeMap<(usize, u32, u32, Taken, Taken), Option<u32>>,
}

impl Lanes<'_> {
    /// Gradients of parameters. Gives the parameters that get one.
    pub(in crate::check) fn reductions(&mut self, reverse: &mut Reverse<'_>) -> Vec<ParamId> {
        let mut gradient_of: BTreeMap<StoreId, ParamId> = BTreeMap::new();
        let mut wanted = vec![false; self.graph.module.params.len()];
        for (number, store) in self.plan.stores.iter().enumerate() {
            let StoreKind::Grad(of) = store.kind else { continue };
            let store = StoreId(number as u32);
            match wanted.get_mut(of.index()) {
                Some(wanted) if !*wanted => *wanted = true,
                _ => self.report.push(Disagreement::Gradient { store, of }),
            }
            gradient_of.insert(store, ParamId::new(of.index()));
        }
        let mut known = Known::default();
        for (number, sum) in self.plan.reductions.iter().enumerate() {
            let Some(&param) = gradient_of.get(&sum.store) else { continue };
            for (place, part) in sum.parts.iter().enumerate() {
                if self.report.is_full() {
                    return Vec::new();
                }
                if let Err((lane, node)) = self.part(number, sum, param, part, reverse, &mut known) {
                    self.report.push(Disagreement::Reduction { number, part: place, lane, node });
                }
            }
        }
        self.complete(&wanted, reverse, &known);
        gradient_of.into_values().collect()
    }

    /// One part of a final: what each lane takes must be a part of one contribution.
    fn part(
        &self,
        number: usize,
        sum: &Reduction,
        param: ParamId,
        part: &ReductionPart,
        reverse: &mut Reverse<'_>,
        known: &mut Known,
    ) -> Result<(), (u32, Option<NodeId>)> {
        let mut before = None;
        for lane in 0..part.lanes {
            let node = self.node_of(part.dy, lane, reverse);
            let node = node.or_else(|| self.node_of(part.x?, lane, reverse));
            let Some((class, node)) = node else { return Err((lane, None)) };
            let id = NodeId::new(node as usize);
            let wrong = Err((lane, Some(id)));
            if !reverse.expected.reached[id.index()] {
                return wrong;
            }
            // Neighbours take the same, as a rule.
            if let Some((of, x, dy, block)) = before
                && of == class
                && self.takes(part.x, lane, id, x, reverse)
                && self.takes(Some(part.dy), lane, id, dy, reverse)
            {
                reverse.taken.push((node, block));
                continue;
            }
            let xs = self.sources(part.x, lane, id, class, reverse);
            let dys = self.sources(Some(part.dy), lane, id, class, reverse);
            let pairs = xs.iter().flat_map(|&x| dys.iter().map(move |&dy| (x, dy)));
            let mut found = None;
            for (x, dy) in pairs {
                let key = (number, part.each, class, x, dy);
                let block = match known.found.get(&key) {
                    Some(&block) => block,
                    None => {
                        let Derivative { sig, class: own, .. } = &reverse.classes[class as usize];
                        let truth = reverse.truths.get(*sig).expect("classes have truths");
                        let rows = self.plan.stores[sum.store.index()].ty.shape.rows() as u32;
                        let block = own.block(truth, param.index(), sum.sum, (part.each, rows), (x, dy));
                        let block = block.map(|block| known.number(*sig, block));
                        known.found.insert(key, block);
                        block
                    }
                };
                if let Some(block) = block {
                    found = Some((class, x, dy, block));
                    break;
                }
            }
            match found {
                Some(one) => {
                    before = Some(one);
                    reverse.taken.push((node, one.3));
                }
                None => return wrong,
            }
        }
        Ok(())
    }

    /// The class and the node whose reverse made the row that a lane takes.
    fn node_of(&self, operand: Operand, lane: u32, reverse: &Reverse<'_>) -> Option<(u32, u32)> {
        let (field, row) = self.row(lane, operand)?;
        match self.name(reverse, field, row) {
            Name::Made { class, node, item: WHOLE, .. } => Some((class, node)),
            _ => None,
        }
    }

    /// Whether a lane of a part takes this of a node.
    fn takes(
        &self,
        operand: Option<Operand>,
        lane: u32,
        node: NodeId,
        taken: Taken,
        reverse: &Reverse<'_>,
    ) -> bool {
        let Some(operand) = operand else { return taken == Taken::Nothing };
        let row = || self.row(lane, operand).map(|(field, row)| self.name(reverse, field, row));
        let of = node.index() as u32;
        match taken {
            Taken::Nothing => false,
            Taken::Operand(place) => self.agrees(lane, node, place as usize, operand),
            Taken::Result(place) => self.row(lane, operand).is_some_and(|(field, row)| {
                self.at(field, row) == self.graph.arena.results(node).start as u32 + place
            }),
            Taken::Save(number) => row() == Some(Name::Save { node: of, number }),
            Taken::Made(place) => {
                matches!(row(), Some(Name::Made { node, result, item: WHOLE, .. })
                    if node == of && result == place)
            }
        }
    }

    /// All that a lane of a part may take of a node.
    fn sources(
        &self,
        operand: Option<Operand>,
        lane: u32,
        node: NodeId,
        class: u32,
        reverse: &Reverse<'_>,
    ) -> Vec<Taken> {
        let Some(operand) = operand else { return vec![Taken::Nothing] };
        let name = self.row(lane, operand).map(|(field, row)| self.name(reverse, field, row));
        match name {
            Some(Name::Made { class: own, node: of, result, item: WHOLE })
                if own == class && of as usize == node.index() =>
            {
                return vec![Taken::Made(result)];
            }
            Some(Name::Save { node: of, number }) if of as usize == node.index() => {
                return vec![Taken::Save(number)];
            }
            _ => {}
        }
        let signature = self.graph.signature(node);
        let operands = (0..signature.operands.len() as u32).map(Taken::Operand);
        let results = (0..signature.results.len() as u32).map(Taken::Result);
        operands
            .chain(results)
            .filter(|&taken| self.takes(Some(operand), lane, node, taken, reverse))
            .collect()
    }

    /// Whether of every node that a gradient reaches everything is taken once.
    fn complete(&mut self, wanted: &[bool], reverse: &mut Reverse<'_>, known: &Known) {
        reverse.taken.sort_unstable();
        let mut good: BTreeMap<SigId, Vec<u32>> = BTreeMap::new();
        let mut at = 0;
        for node in self.graph.arena.ids() {
            let start = at;
            while reverse.taken.get(at).is_some_and(|taken| taken.0 as usize == node.index()) {
                at += 1;
            }
            if self.report.is_full() {
                return;
            }
            if !reverse.expected.reached[node.index()] {
                continue;
            }
            let wants = |arg: &ParamArg| matches!(arg, ParamArg::Module(param) if wanted[param.index()]);
            if start == at && !self.graph.signature(node).params.iter().any(wants) {
                continue;
            }
            let sig = self.graph.arena.node(node).sig;
            let blocks = reverse.taken[start..at].iter().map(|taken| taken.1);
            if good.get(&sig).is_some_and(|good| good.iter().copied().eq(blocks.clone())) {
                continue;
            }
            let blocks: Vec<u32> = blocks.collect();
            match self.lacks(sig, wanted, reverse, known, &blocks) {
                None => drop(good.insert(sig, blocks)),
                Some(param) => self.report.push(Disagreement::Parameters { node, param }),
            }
        }
    }

    /// A parameter of which a signature's contribution is not taken exactly once.
    fn lacks(
        &self,
        sig: SigId,
        wanted: &[bool],
        reverse: &Reverse<'_>,
        known: &Known,
        blocks: &[u32],
    ) -> Option<ParamId> {
        let truth = reverse.truths.get(sig)?;
        let mut counts: Vec<BTreeMap<Block, u32>> = vec![BTreeMap::new(); truth.uses.len()];
        for block in blocks.iter().map(|&block| known.blocks[block as usize].1) {
            *counts[block.uses as usize].entry(block).or_default() += 1;
        }
        let range = |(from, to): (u32, u32)| u64::from(from)..u64::from(to);
        for (uses, counts) in truth.uses.iter().zip(&counts).filter(|(uses, _)| wanted[uses.param.index()]) {
            let once = || counts.keys().map(|block| [range(block.rows), range(block.columns)]);
            let area: u64 =
                once().map(|[rows, columns]| (rows.end - rows.start) * (columns.end - columns.start)).sum();
            let times = counts.values().all(|&count| count == uses.count);
            if !times || area != truth.area(uses) || !lie_apart(once()) {
                return Some(uses.param);
            }
        }
        None
    }
}

impl Known {
    fn number(&mut self, sig: SigId, block: Block) -> u32 {
        let next = self.blocks.len() as u32;
        let number = *self.numbers.entry((sig, block)).or_insert(next);
        if number == next {
            self.blocks.push((sig, block));
        }
        number
    }
}
