//! Reductions over shards: a sum for each shard, and the sums added in the tree of the shards.
//!
//! The sum of a node of the tree lies in a *slot*. The left child of a node has its slot, and the right child has the next one,
//! so there is one slot per level of the tree. The first slot is the gradient itself; the others hold only a *unit*, what is
//! reduced together. Units are small enough that slots stay in the cache. A node of a weight with few rows needs no slots: the
//! kernel adds its shards. Steps and batches know nothing of shards.

use super::RunError;
use super::gradients::{Gradient, Gradients};
use super::pieces::Piece;
use super::reductions::{
    Hands, ReductionInputs, RowRun, Sum, Target, column_parts, execute_group, group_size, in_store, runs_of,
};
use crate::crew::Crew;
use crate::kernels::{RowsRun, ShardedTableSum, ShardedWeightGrad, TableAddend};
use autobatch_ir::numeric::tree;
use autobatch_ir::plan::blocks::lie_apart;
use autobatch_ir::plan::{Plan, Reduction, ReductionSum, StoreId};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Floats below which threads do not split an addition.
const SPLIT_FLOATS: usize = 1 << 17;
/// The floats of a unit, so that a few slots stay in the L2 cache. Larger blocks of weights are cut.
const UNIT_FLOATS: usize = 1 << 17;
/// The columns of a part of a large block. Packing a column of dY costs more than one of X, so parts are tall.
const PART_COLUMNS: usize = 256;

/// A block of a store.
type Block = [Range<u64>; 2];

/// How the sums of a store are made.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sharding {
    /// Its blocks are equal or lie apart, so each is summed over all shards before the next. No sum is that of table rows.
    Blocks,
    /// In other cases, all its reductions are executed for one shard before the next.
    Whole,
    /// Row by row, over the shards that add to the row.
    Sparse,
}

impl Sharding {
    fn of(plan: &Plan, store: StoreId, listed: bool) -> Self {
        if listed {
            return Self::Sparse;
        }
        let own = || plan.reductions.iter().filter(|sum| sum.store == store);
        let mut blocks: Vec<Block> = own().map(|sum| sum.block(plan)).collect();
        blocks.sort_unstable_by_key(corners);
        blocks.dedup();
        // Equal blocks of one kind of sum are one chain.
        let kind = |sum: &Reduction| std::mem::discriminant(&sum.sum);
        let is_simple = own().all(|sum| sum.sum != ReductionSum::Tgrad)
            && own().map(kind).collect::<HashSet<_>>().len() <= 1;
        if is_simple && lie_apart(blocks) { Self::Blocks } else { Self::Whole }
    }
}

fn corners([rows, columns]: &Block) -> [u64; 4] {
    [rows.start, rows.end, columns.start, columns.end]
}

/// The contents of the slots of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// A block for each reduction, one behind the other. The reductions sum the same rows.
    Blocks,
    /// One block or a part of it, to which all reductions of the unit add, one after the other.
    Block,
    /// A whole store.
    Store,
}

/// Reductions that are executed together for each shard: their numbers in the plan.
pub(super) struct Unit {
    numbers: Vec<usize>,
    held: Held,
    /// The first float of the block of each reduction in a slot.
    starts: Vec<usize>,
    /// The size of a slot. A block is cut into parts of this size.
    floats: usize,
}

impl Unit {
    fn new(plan: &Plan, numbers: Vec<usize>, held: Held) -> Self {
        let size = |number: &usize| {
            let [rows, columns] = plan.reductions[*number].block(plan);
            ((rows.end - rows.start) * (columns.end - columns.start)) as usize
        };
        let store = plan.reductions[numbers[0]].store;
        let mut starts = vec![0; numbers.len()];
        let floats = match held {
            Held::Blocks => {
                let mut floats = 0;
                for (start, number) in starts.iter_mut().zip(&numbers) {
                    *start = floats;
                    floats += size(number);
                }
                floats
            }
            Held::Block => {
                let parts = parts(plan, &numbers);
                parts.first().map_or_else(|| size(&numbers[0]), |[rows, columns]| rows.len() * columns.len())
            }
            Held::Store => plan.stores[store.index()].ty.shape.elements(),
        };
        Self { numbers, held, starts, floats }
    }

    /// The numbers of its reductions.
    pub(super) fn numbers(&self) -> &[usize] {
        &self.numbers
    }
}

/// The parts of a large block of a weight or of labels' rows, largest first; none of another block.
fn parts(plan: &Plan, numbers: &[usize]) -> Vec<[Range<usize>; 2]> {
    let first = &plan.reductions[numbers[0]];
    let [k, n] = first.block(plan).map(|range| (range.end - range.start) as usize);
    let kind = |number: &usize| std::mem::discriminant(&plan.reductions[*number].sum);
    let widest = match first.sum {
        ReductionSum::Wgrad { .. } => PART_COLUMNS,
        // The logits of a label need all columns.
        ReductionSum::Lgrad => n,
        ReductionSum::Colsum | ReductionSum::Tgrad => return Vec::new(),
    };
    if k * n <= UNIT_FLOATS || !numbers.iter().all(|number| kind(number) == kind(&numbers[0])) {
        return Vec::new();
    }
    let width = n.min(widest);
    let height = (UNIT_FLOATS / width).clamp(1, k);
    let columns = (0..n).step_by(width).map(|first| first..n.min(first + width));
    let rows = |columns: Range<usize>| {
        (0..k).step_by(height).map(move |first| [first..k.min(first + height), columns.clone()])
    };
    columns.flat_map(rows).collect()
}

/// How the sums of each store are made. `listed` says which stores list their sparse rows.
fn shardings(plan: &Plan, listed: &[bool]) -> Vec<Sharding> {
    let listed = |store: usize| listed.get(store).is_some_and(|listed| *listed);
    (0..plan.stores.len()).map(|store| Sharding::of(plan, StoreId(store as u32), listed(store))).collect()
}

/// The units of a plan.
fn units(plan: &Plan, shardings: &[Sharding]) -> Vec<Unit> {
    let reductions = &plan.reductions;
    let is_of_blocks = |sum: &Reduction| shardings[sum.store.index()] == Sharding::Blocks;
    let mut blocks: HashMap<(StoreId, [u64; 4]), Vec<usize>> = HashMap::new();
    let key = |sum: &Reduction| (sum.store, corners(&sum.block(plan)));
    for (number, sum) in reductions.iter().enumerate().filter(|(_, sum)| is_of_blocks(sum)) {
        blocks.entry(key(sum)).or_default().push(number);
    }
    let is_single = |number: &usize| {
        let sum = &reductions[*number];
        is_of_blocks(sum) && blocks[&key(sum)].len() == 1
    };
    let mut units = Vec::new();
    let mut begin = 0;
    while begin < reductions.len() {
        let sum = &reductions[begin];
        let (numbers, held) = match is_single(&begin) {
            true => {
                let group = begin..begin + group_size(plan, &reductions[begin..], UNIT_FLOATS);
                let group: Vec<usize> = group.take_while(is_single).collect();
                let held = if group.len() == 1 { Held::Block } else { Held::Blocks };
                begin += group.len();
                (group, held)
            }
            false => {
                // The first of the reductions of a block stands for all.
                let own = blocks.get(&key(sum)).filter(|own| own[0] == begin).cloned();
                begin += 1;
                (own.unwrap_or_default(), Held::Block)
            }
        };
        if !numbers.is_empty() {
            units.push(Unit::new(plan, numbers, held));
        }
    }
    for store in (0..plan.stores.len()).filter(|&store| shardings[store] == Sharding::Whole) {
        let of_store = |number: &usize| reductions[*number].store.index() == store;
        units.push(Unit::new(plan, (0..reductions.len()).filter(of_store).collect(), Held::Store));
    }
    units
}

/// The pieces of a plan with shards. `listed` says which stores list their sparse rows.
pub(super) fn pieces(plan: &Plan, listed: &[bool]) -> Vec<Piece> {
    let shardings = shardings(plan, listed);
    let tables = (0..).map(StoreId).zip(&shardings).filter(|(_, own)| **own == Sharding::Sparse);
    let units = units(plan, &shardings).into_iter().map(Piece::Unit);
    units.chain(tables.map(|(store, _)| Piece::Rows(store))).collect()
}

/// The number of slots behind the first.
fn levels(plan: &Plan) -> usize {
    plan.shard_count().next_power_of_two().trailing_zeros() as usize
}

/// The bytes of all slots of a plan.
pub(super) fn slot_bytes(plan: &Plan) -> u64 {
    if plan.shard_count() == 1 {
        return 0;
    }
    let mut listed = Vec::new();
    plan.find_sparse_gradients(&mut listed);
    let floats = units(plan, &shardings(plan, &listed)).into_iter().map(|unit| unit.floats).max();
    4 * (levels(plan) * floats.unwrap_or(0)) as u64
}

impl Gradients {
    /// Reduces a unit over all shards.
    pub(super) fn unit(
        &mut self,
        unit: &Unit,
        inputs: ReductionInputs<'_>,
        crew: &mut Crew<'_>,
    ) -> Result<(), RunError> {
        let plan = inputs.plan;
        let (shards, levels) = (plan.shard_count(), levels(plan));
        let Self { stores, overwrites, slots, scratch, .. } = self;
        if slots.len() < levels {
            slots.resize_with(levels, Vec::new);
        }
        for slot in &mut slots[..levels] {
            let more = unit.floats.saturating_sub(slot.len());
            slot.try_reserve_exact(more).map_err(|_| RunError::Memory { bytes: unit.floats as u64 * 4 })?;
            slot.resize(unit.floats.max(slot.len()), 0.0);
        }
        let reductions: Vec<&Reduction> =
            unit.numbers.iter().map(|&number| &plan.reductions[number]).collect();
        let sums = match unit.held {
            Held::Block => vec![reductions.clone()],
            Held::Blocks | Held::Store => reductions.iter().map(|&of| vec![of]).collect(),
        };
        let starts_of = |of: &Vec<&Reduction>| {
            let mut start = 0;
            let ends = (0..shards).map(|shard| {
                start += inputs.rows(of, shard);
                start
            });
            std::iter::once(0).chain(ends).collect()
        };
        let firsts: Vec<Vec<usize>> = sums.iter().map(starts_of).collect();
        let sums: Vec<Sum<'_>> = sums.iter().map(|of| inputs.sum(of, 0..shards)).collect();
        let overwrites: Vec<bool> = unit.numbers.iter().map(|&number| overwrites[number]).collect();
        let hands = Hands { crew, scratch };
        let mut slots = Slots { unit, sums, firsts, stores, overwrites, slots, hands };
        let parts = match unit.held {
            Held::Block => parts(plan, &unit.numbers),
            Held::Blocks | Held::Store => Vec::new(),
        };
        if parts.is_empty() || slots.is_small(&(0..shards)) {
            return slots.node(0..shards, 0);
        }
        for part in parts {
            slots.sums[0].part = part;
            slots.node(0..shards, 0)?;
        }
        Ok(())
    }

    /// Adds rows to a table over all shards.
    pub(super) fn table_rows(
        &mut self,
        inputs: ReductionInputs<'_>,
        store: StoreId,
        crew: &mut Crew<'_>,
    ) -> Result<(), RunError> {
        let plan = inputs.plan;
        let columns = plan.stores[store.index()].ty.shape.width();
        let (mut sums, mut addends, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for of in plan.reductions.iter().filter(|sum| sum.store == store) {
            for shard in 0..plan.shard_count() {
                // A run without rows has no number.
                let dy: Vec<RowRun> =
                    inputs.sum(&[of], shard..shard + 1).dy.into_iter().filter(|run| run.count > 0).collect();
                targets.clear();
                inputs.targets(of, shard, &mut targets);
                let rows = dy
                    .iter()
                    .zip(sums.len() as u32..)
                    .flat_map(|(run, number)| (0..run.count as u32).map(move |lane| (number, lane)));
                let shard = shard as u32;
                addends.extend(targets.iter().zip(rows).map(|(&target, row)| TableAddend {
                    target,
                    shard,
                    row,
                }));
                sums.extend(dy);
            }
        }
        // Rows of a shard stand in the order of the sum.
        addends.sort_unstable();
        let dy: Vec<RowsRun<'_>> = runs_of(&sums, 0, 0..addends.len(), inputs);
        let shards = plan.shard_count();
        let rows = ShardedTableSum { isa: inputs.isa, columns, shards, dy: &dy, addends: &addends };
        let parts = column_parts(addends.len(), columns, crew.threads());
        Ok(rows.run(&mut self.stores[store.index()].values, parts, crew)?)
    }
}

/// The sums of a unit and their memory.
struct Slots<'a, 'c> {
    unit: &'a Unit,
    sums: Vec<Sum<'a>>,
    /// The first row of each shard in each sum, and the end of the last.
    firsts: Vec<Vec<usize>>,
    stores: &'a mut [Gradient],
    /// Whether each reduction of the unit overwrites its block in the first slot.
    overwrites: Vec<bool>,
    /// All slots but the first.
    slots: &'a mut [Vec<f32>],
    hands: Hands<'a, 'c>,
}

impl Slots<'_, '_> {
    /// Makes the sum of a node of the tree in a slot.
    fn node(&mut self, node: Range<usize>, slot: usize) -> Result<(), RunError> {
        if self.is_small(&node) {
            return self.small(node, slot, false);
        }
        if node.len() == 1 {
            return self.leaf(node.start, slot);
        }
        let middle = tree::middle(&node);
        let right = middle..node.end;
        self.node(node.start..middle, slot)?;
        if self.is_small(&right) {
            return self.small(right, slot, true);
        }
        self.node(right, slot + 1)?;
        self.add(slot);
        Ok(())
    }

    /// Whether the kernel adds the shards of a node.
    fn is_small(&self, node: &Range<usize>) -> bool {
        let has_few_rows =
            |firsts: &Vec<usize>| firsts[node.end] - firsts[node.start] <= ShardedWeightGrad::MOST_ROWS;
        let is_weight = |sum: &Sum<'_>| matches!(sum.of.sum, ReductionSum::Wgrad { .. });
        self.unit.held != Held::Store
            // The first chain may continue from the gradient.
            && (node.start > 0 || self.overwrites[..self.sums.len()].iter().all(|overwrites| *overwrites))
            && node.len() <= ShardedWeightGrad::MOST_SHARDS
            && self.sums.iter().all(is_weight)
            && self.firsts.iter().all(has_few_rows)
    }

    /// Makes the sum of a small node in a slot, or adds it to the slot.
    fn small(&mut self, node: Range<usize>, slot: usize, adds: bool) -> Result<(), RunError> {
        for (number, (sum, firsts)) in self.sums.iter().zip(&self.firsts).enumerate() {
            let firsts = &firsts[node.start..=node.end];
            let counts: Vec<usize> = firsts.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let rows = firsts[0]..firsts[node.len()];
            let target = match slot.checked_sub(1) {
                None => in_store(self.stores, sum),
                Some(slot) => sum.packed(&mut self.slots[slot][self.unit.starts[number]..]),
            };
            sum.execute_node(rows, &counts, adds, target, &mut self.hands)?;
        }
        Ok(())
    }

    /// Makes the sum of a shard in a slot.
    fn leaf(&mut self, shard: usize, slot: usize) -> Result<(), RunError> {
        let Self { unit, sums, firsts, stores, overwrites, slots, hands } = self;
        let behind = slot.checked_sub(1);
        let overwrites = match (behind, unit.held) {
            (None, _) => overwrites.clone(),
            (_, Held::Blocks | Held::Block) => vec![true; sums.len()],
            (_, Held::Store) => vec![false; sums.len()],
        };
        if let (Some(slot), Held::Store) = (behind, unit.held) {
            slots[slot][..unit.floats].fill(0.0);
        }
        let together = if unit.held == Held::Blocks { sums.len() } else { 1 };
        for first in (0..sums.len()).step_by(together) {
            let own = first..first + together;
            let mut target = |number: usize, with: &mut dyn FnMut(Target<'_>) -> Result<(), RunError>| {
                let (sum, start) = (&sums[first + number], unit.starts[first + number]);
                match behind {
                    None => with(in_store(stores, sum)),
                    Some(slot) if unit.held == Held::Store => {
                        with(sum.at_its_place(&mut slots[slot][..unit.floats]))
                    }
                    Some(slot) => with(sum.packed(&mut slots[slot][start..])),
                }
            };
            let rows = firsts[first][shard]..firsts[first][shard + 1];
            execute_group(&sums[own.clone()], rows, &overwrites[own], &mut target, hands)?;
        }
        Ok(())
    }

    /// Adds the next slot to a slot.
    fn add(&mut self, slot: usize) {
        let (unit, crew) = (self.unit, &mut *self.hands.crew);
        let (before, right) = self.slots.split_at_mut(slot);
        let right = &right[0][..unit.floats];
        if let Some(left) = before.last_mut() {
            return add(&mut left[..unit.floats], right, crew);
        }
        if unit.held == Held::Store {
            return add(&mut self.stores[self.sums[0].of.store.index()].values, right, crew);
        }
        for (sum, &start) in self.sums.iter().zip(&unit.starts) {
            let Target { values, columns: width, row, col } = in_store(self.stores, sum);
            let [rows, columns] = sum.part.each_ref().map(Range::len);
            let left = &mut values[row * width..(row + rows) * width];
            let right = &right[start..][..rows * columns];
            match columns == width {
                true => add(left, right, crew),
                false => left
                    .chunks_exact_mut(width)
                    .zip(right.chunks_exact(columns))
                    .for_each(|(left, right)| add(&mut left[col..col + columns], right, &mut Crew::alone())),
            }
        }
    }
}

/// Adds floats element by element.
fn add(left: &mut [f32], right: &[f32], crew: &mut Crew<'_>) {
    let add = |left: &mut [f32], right: &[f32]| left.iter_mut().zip(right).for_each(|(sum, x)| *sum += x);
    let parts = (left.len() / SPLIT_FLOATS + 1).min(crew.threads());
    if parts <= 1 {
        return add(left, right);
    }
    let each = left.len().div_ceil(parts);
    crew.each_of(left.chunks_mut(each).zip(right.chunks(each)), |(left, right)| add(left, right));
}
