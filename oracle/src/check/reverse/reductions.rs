//! Reductions: together they take every contribution to a trained parameter once, in the order of the sum, and take no other
//! rows.

use super::class::{Block, Taken, Taking};
use super::coverage;
use super::order::{Place, Sums};
use super::reference_derivative::ReferenceDerivative;
use super::uses::WHOLE;
use super::{Name, Reverse};
use crate::check::lanes::Lanes;
use crate::check::report::Disagreement;
use autobatch_ir::graph::ParamArg;
use autobatch_ir::id::{NodeId, ParamId, SigId};
use autobatch_ir::plan::{Reduction, ReductionPart, StepOperand, StoreId, StoreKind};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The blocks that reductions take.
#[derive(Default)]
struct Blocks {
    blocks: Vec<(SigId, Block)>,
    numbers: BTreeMap<(SigId, Block), u32>,
    /// The class of each block by number, and the reduction that took it first.
    origins: Vec<(u32, Taking)>,
    /// By number, all blocks that contribute the same as the block on all probes, itself included; computed at first use.
    equals: Vec<OnceCell<Vec<Block>>>,
    /// The block that a reduction takes from a class, by reduction, class, rows per lane and row sources.
    found: BTreeMap<(usize, u32, u32, Taken, Taken), Option<u32>>,
}

/// A reduction and the parameter it is for.
#[derive(Clone, Copy)]
struct Current<'a> {
    number: usize,
    sum: &'a Reduction,
    part: &'a ReductionPart,
    param: ParamId,
}

/// Why a part of a reduction is refused.
enum Refused {
    /// The rows of a lane are no contribution.
    Rows(u32, Option<NodeId>),
    /// The rows of a lane belong earlier in the sum.
    Order(u32, NodeId),
    /// The rows of a lane belong to another shard.
    Shard(u32, NodeId),
}

/// The input of a lane of a reduction from its node.
#[derive(Clone, Copy)]
struct LaneSource {
    class: u32,
    x: Taken,
    dy: Taken,
    block: u32,
}

impl Lanes<'_> {
    /// Proves the gradients of parameters. Returns the parameters that get one.
    pub(in crate::check) fn reductions(&mut self, reverse: &mut Reverse<'_>) -> Vec<ParamId> {
        let mut gradient_of: BTreeMap<StoreId, ParamId> = BTreeMap::new();
        let mut trained = vec![false; self.graph.module.params.len()];
        for (number, store) in self.plan.stores.iter().enumerate() {
            let StoreKind::Grad(of) = store.kind else { continue };
            let store = StoreId(number as u32);
            match trained.get_mut(of.index()) {
                Some(trained) if !*trained => *trained = true,
                _ => self.report.push(Disagreement::Gradient { store, of }),
            }
            gradient_of.insert(store, ParamId::new(of.index()));
        }
        let mut blocks = Blocks::default();
        let mut sums = Sums::of(self.graph, self.plan);
        for (number, sum) in self.plan.reductions.iter().enumerate() {
            let Some(&param) = gradient_of.get(&sum.store) else { continue };
            let mut last = sums.last(self.plan, sum);
            for (place, part) in sum.parts.iter().enumerate() {
                if self.report.is_full() {
                    return Vec::new();
                }
                let current = Current { number, sum, part, param };
                match self.part(current, reverse, &mut blocks, &sums, &mut last) {
                    Ok(()) => {}
                    Err(Refused::Rows(lane, node)) => {
                        self.report.push(Disagreement::Reduction { number, part: place, lane, node });
                    }
                    Err(Refused::Order(lane, node)) => {
                        self.report.push(Disagreement::Order { number, part: place, lane, node });
                    }
                    Err(Refused::Shard(lane, node)) => {
                        self.report.push(Disagreement::Shard { number, part: place, lane, node });
                    }
                }
            }
            sums.add(self.plan, sum, last);
        }
        self.complete(&trained, reverse, &blocks);
        gradient_of.into_values().collect()
    }

    /// One part of a reduction: the rows of each lane must be a part of one contribution, which follows `last` in the sum.
    fn part(
        &self,
        current: Current<'_>,
        reverse: &mut Reverse<'_>,
        blocks: &mut Blocks,
        sums: &Sums,
        last: &mut Option<Place>,
    ) -> Result<(), Refused> {
        let part = current.part;
        let mut before: Option<LaneSource> = None;
        let mut shard = 0;
        for lane in 0..part.lanes {
            while part.cuts.get(shard).is_some_and(|&end| end <= lane) {
                shard += 1;
            }
            let node = self.node_of(part.dy, lane, reverse);
            let node = node.or_else(|| self.node_of(part.x?, lane, reverse));
            let Some((class, node)) = node else { return Err(Refused::Rows(lane, None)) };
            let id = NodeId::new(node as usize);
            let begins = shard.checked_sub(1).is_none_or(|before| self.plan.shards[before] <= id);
            if !begins || self.plan.shards.get(shard).is_some_and(|next| *next <= id) {
                return Err(Refused::Shard(lane, id));
            }
            if !reverse.expected.reached[id.index()] {
                return Err(Refused::Rows(lane, Some(id)));
            }
            // Neighbouring lanes mostly have the same source.
            let same = before.filter(|before| {
                before.class == class
                    && self.takes(part.x, lane, id, before.x, reverse)
                    && self.takes(Some(part.dy), lane, id, before.dy, reverse)
            });
            let find = || self.find_source(current, lane, id, class, reverse, blocks);
            let source = same.or_else(find).ok_or(Refused::Rows(lane, Some(id)))?;
            let next = match (before, *last) {
                (Some(before), Some(last)) if before.block == source.block && node > last.node => {
                    Some(Place { node, ..last })
                }
                _ => self.next_place(sums, *last, node, source.block, reverse, blocks),
            };
            *last = Some(next.ok_or(Refused::Order(lane, id))?);
            before = Some(source);
            reverse.taken.push((node, source.block));
        }
        Ok(())
    }

    /// The first place behind `last` in the sum at which a block of a node may stand. Several uses may contribute the same on all
    /// probes; the first of their places leaves the most to what follows.
    fn next_place(
        &self,
        sums: &Sums,
        last: Option<Place>,
        node: u32,
        number: u32,
        reverse: &Reverse<'_>,
        blocks: &Blocks,
    ) -> Option<Place> {
        let sig = blocks.blocks[number as usize].0;
        let reference = reverse.references.get(sig)?;
        let behind = |block: &Block| {
            let numbers = &reference.uses[block.uses as usize].numbers;
            let places = numbers.iter().map(|&number| Place { signature: sums.rank(sig), number, node });
            places.into_iter().find(|place| Some(*place) > last)
        };
        blocks.equal_to(number, reverse, reference).iter().filter_map(behind).min()
    }

    /// Returns the input of a lane from a node, if it is part of a contribution to the parameter.
    fn find_source(
        &self,
        Current { number, sum, part, param }: Current<'_>,
        lane: u32,
        node: NodeId,
        class: u32,
        reverse: &Reverse<'_>,
        blocks: &mut Blocks,
    ) -> Option<LaneSource> {
        let xs = self.sources(part.x, lane, node, class, reverse);
        let dys = self.sources(Some(part.dy), lane, node, class, reverse);
        let pairs = xs.iter().flat_map(|&x| dys.iter().map(move |&dy| (x, dy)));
        let derivative = &reverse.classes[class as usize];
        for (x, dy) in pairs {
            let key = (number, class, part.each, x, dy);
            let block = match blocks.found.get(&key) {
                Some(&block) => block,
                None => {
                    let reference = reverse.references.get(derivative.sig)?;
                    let table_rows = self.plan.stores[sum.store.index()].ty.shape.rows() as u32;
                    let (param, sum, each) = (param.index(), sum.sum, part.each);
                    let taking = Taking { param, sum, each, table_rows, x, dy };
                    let block = derivative.class.block(reference, taking);
                    let block = block.map(|block| blocks.number(derivative.sig, block, (class, taking)));
                    blocks.found.insert(key, block);
                    block
                }
            };
            if let Some(block) = block {
                return Some(LaneSource { class, x, dy, block });
            }
        }
        None
    }

    /// The class and the node whose derivative made the row that a lane takes.
    fn node_of(&self, operand: StepOperand, lane: u32, reverse: &Reverse<'_>) -> Option<(u32, u32)> {
        let (field, row) = self.plan.operand_row(operand, lane)?;
        match self.name(reverse, field, row) {
            Name::Made { class, node, item: WHOLE, .. } => Some((class, node)),
            _ => None,
        }
    }

    /// Returns whether a lane takes a row from this place of a node.
    fn takes(
        &self,
        operand: Option<StepOperand>,
        lane: u32,
        node: NodeId,
        taken: Taken,
        reverse: &Reverse<'_>,
    ) -> bool {
        let Some(operand) = operand else { return taken == Taken::Nothing };
        let row = || self.plan.operand_row(operand, lane).map(|(field, row)| self.name(reverse, field, row));
        let of = node.index() as u32;
        match taken {
            Taken::Nothing => false,
            Taken::Operand(place) => self.agrees(lane, node, place as usize, operand),
            Taken::Result(place) => self.plan.operand_row(operand, lane).is_some_and(|(field, row)| {
                self.at(field, row) == self.graph.arena.results(node).start as u32 + place
            }),
            Taken::Saved(number) => row() == Some(Name::Saved { node: of, number }),
            Taken::Made(place) => {
                matches!(row(), Some(Name::Made { node, result, item: WHOLE, .. })
                    if node == of && result == place)
            }
        }
    }

    /// The places of a node from which a lane may take its row.
    fn sources(
        &self,
        operand: Option<StepOperand>,
        lane: u32,
        node: NodeId,
        class: u32,
        reverse: &Reverse<'_>,
    ) -> Vec<Taken> {
        let Some(operand) = operand else { return vec![Taken::Nothing] };
        let name = self.plan.operand_row(operand, lane).map(|(field, row)| self.name(reverse, field, row));
        match name {
            Some(Name::Made { class: own, node: of, result, item: WHOLE })
                if own == class && of as usize == node.index() =>
            {
                return vec![Taken::Made(result)];
            }
            Some(Name::Saved { node: of, number }) if of as usize == node.index() => {
                return vec![Taken::Saved(number)];
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

    /// Returns whether reductions take every contribution of every node that a gradient reaches once.
    fn complete(&mut self, trained: &[bool], reverse: &mut Reverse<'_>, blocks_taken: &Blocks) {
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
            let is_trained =
                |arg: &ParamArg| matches!(arg, ParamArg::Module(param) if trained[param.index()]);
            if start == at && !self.graph.signature(node).params.iter().any(is_trained) {
                continue;
            }
            let sig = self.graph.arena.node(node).sig;
            let blocks = reverse.taken[start..at].iter().map(|taken| taken.1);
            if good.get(&sig).is_some_and(|good| good.iter().copied().eq(blocks.clone())) {
                continue;
            }
            let blocks: Vec<u32> = blocks.collect();
            match self.lacks(sig, trained, reverse, blocks_taken, &blocks) {
                None => drop(good.insert(sig, blocks)),
                Some(param) => self.report.push(Disagreement::Parameters { node, param }),
            }
        }
    }

    /// A parameter for which reductions do not take the contribution of a signature exactly once.
    fn lacks(
        &self,
        sig: SigId,
        trained: &[bool],
        reverse: &Reverse<'_>,
        blocks_taken: &Blocks,
        blocks: &[u32],
    ) -> Option<ParamId> {
        let reference = reverse.references.get(sig)?;
        let taken = |number: &u32| blocks_taken.blocks[*number as usize].1;
        let first = coverage::incomplete(reference, blocks.iter().map(taken), trained)?;
        // Several uses may contribute the same on all probes. Then another assignment of the rows may be complete.
        let candidates = |number: &u32| blocks_taken.equal_to(*number, reverse, reference).to_vec();
        let choices: Vec<Vec<Block>> = blocks.iter().map(candidates).collect();
        (!coverage::is_assignable(reference, &choices, trained)).then_some(first)
    }
}

impl Blocks {
    fn number(&mut self, sig: SigId, block: Block, origin: (u32, Taking)) -> u32 {
        let next = self.blocks.len() as u32;
        let number = *self.numbers.entry((sig, block)).or_insert(next);
        if number == next {
            self.blocks.push((sig, block));
            self.origins.push(origin);
            self.equals.push(OnceCell::new());
        }
        number
    }

    /// All blocks that contribute the same as a block on all probes, itself included.
    fn equal_to(&self, number: u32, reverse: &Reverse<'_>, reference: &ReferenceDerivative) -> &[Block] {
        self.equals[number as usize].get_or_init(|| {
            let (class, taking) = self.origins[number as usize];
            reverse.classes[class as usize].class.blocks(reference, taking)
        })
    }
}
