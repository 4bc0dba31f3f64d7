//! Executes the parameter-gradient reductions: sums over all rows, after the last step.
//!
//! No step writes rows any more, so this is safe code. Threads split rows of the *gradient*, never a sum.
//!
//! Several reductions often sum the same gradient rows: with each part of a product's operand, and alone for the bias.
//! Such neighbours run together, a few rows at a time, so that only the first loads the rows from memory and packs them.

use super::RunError;
use super::gradients::{Gradient, Gradients};
use super::memory::Memory;
use crate::crew::Crew;
use crate::kernels::{
    CHAIN_ROWS, GradientRows, Isa, KernelError, RowNumbers, Rows, RowsMut, RowsRun, Scratch,
    ShardedWeightGrad, TableSum, WeightGrad, column_sums,
};
use autobatch_ir::numeric::label_loss::FACTORS;
use autobatch_ir::plan::{FieldId, Plan, Reduction, ReductionPart, ReductionSum, StepOperand, StoreId};
use std::ops::Range;

/// Multiply-adds below which threads do not split a sum: about 4 µs of one core.
pub(super) const SPLIT_WORK: usize = 200_000;
/// Elements below which threads do not split additions of rows.
const SPLIT_ELEMENTS: usize = 20_000;

/// Floats of a cache line.
const LINE: usize = 16;

/// The maximum number of gradient elements of a group, which passes through the cache once per [`CHAIN_ROWS`] rows.
pub(super) const MAX_GROUP_ELEMENTS: usize = 1 << 18;
/// The maximum number of reductions in a group. Each is compared with all before it.
const MAX_GROUP: usize = 256;

#[derive(Clone, Copy)]
pub(super) struct ReductionInputs<'a> {
    pub(super) isa: Isa,
    pub(super) plan: &'a Plan,
    /// The result of [`label_rows`](super::labels::label_rows).
    pub(super) labels: &'a [(StoreId, &'a [f32])],
    pub(super) memory: &'a Memory,
    pub(super) words: &'a [u32],
}

impl Gradients {
    /// Executes a group of reductions of a plan without shards.
    pub(super) fn group(
        &mut self,
        numbers: Range<usize>,
        inputs: ReductionInputs<'_>,
        crew: &mut Crew<'_>,
    ) -> Result<(), RunError> {
        let reductions = &inputs.plan.reductions[numbers.clone()];
        let sums: Vec<Sum<'_>> = reductions.iter().map(|sum| inputs.sum(&[sum], 0..1)).collect();
        let Self { stores, overwrites, scratch, .. } = self;
        let mut target = |number: usize, with: &mut dyn FnMut(Target<'_>) -> Result<(), RunError>| {
            with(in_store(stores, &sums[number]))
        };
        let hands = &mut Hands { crew, scratch };
        execute_group(&sums, 0..sums[0].rows(), &overwrites[numbers], &mut target, hands)
    }
}

/// The threads that execute reductions, and the scratch space of each.
pub(super) struct Hands<'h, 'c> {
    pub(super) crew: &'h mut Crew<'c>,
    pub(super) scratch: &'h mut [Scratch],
}

/// The memory of the block of a reduction.
pub(super) struct Target<'a> {
    pub(super) values: &'a mut [f32],
    /// Floats from one row to the next.
    pub(super) columns: usize,
    /// The first row and column of the block.
    pub(super) row: usize,
    pub(super) col: usize,
}

/// The block of a reduction in its store.
pub(super) fn in_store<'a>(stores: &'a mut [Gradient], sum: &Sum<'_>) -> Target<'a> {
    sum.at_its_place(&mut stores[sum.of.store.index()].values)
}

/// Calls a function with the memory of the block of a reduction in a group.
pub(super) type WithTarget<'a> =
    dyn FnMut(usize, &mut dyn FnMut(Target<'_>) -> Result<(), RunError>) -> Result<(), RunError> + 'a;

/// Executes a group of reductions over some of their rows, a few at a time.
pub(super) fn execute_group(
    sums: &[Sum<'_>],
    rows: Range<usize>,
    overwrites: &[bool],
    with_target: &mut WithTarget<'_>,
    hands: &mut Hands<'_, '_>,
) -> Result<(), RunError> {
    let each = if sums.len() > 1 { CHAIN_ROWS } else { rows.len() };
    hands.scratch.iter_mut().for_each(Scratch::forget_gradient_rows);
    let mut own = rows.start..rows.end.min(rows.start + each);
    // An empty sum still writes its start, in one iteration of length 0.
    loop {
        for (number, (sum, overwrites)) in sums.iter().zip(overwrites).enumerate() {
            let continues = !overwrites || own.start > rows.start;
            with_target(number, &mut |target| sum.execute(own.clone(), target, continues, hands))?;
        }
        if own.end == rows.end {
            return Ok(());
        }
        own = own.end..rows.end.min(own.end + each);
    }
}

/// The size of the first group: reductions that sum the same gradient rows into disjoint blocks, in any order, and have fewer
/// than `most` elements together.
pub(super) fn group_size(plan: &Plan, reductions: &[Reduction], most: usize) -> usize {
    let size = |sum: &Reduction| match sum.sum {
        ReductionSum::Wgrad { k, n, .. } => k as usize * n as usize,
        ReductionSum::Colsum => 0,
        ReductionSum::Tgrad | ReductionSum::Lgrad => most,
    };
    let rows =
        |sum: &Reduction| sum.parts.iter().map(|part| (part.lanes, part.each, part.dy)).collect::<Vec<_>>();
    let (mut count, mut elements, first) = (1, size(&reductions[0]), rows(&reductions[0]));
    while let Some(next) = reductions.get(count) {
        elements += size(next);
        let disjoint = || reductions[..count].iter().all(|before| !before.overlaps(plan, next));
        if elements >= most || count == MAX_GROUP || rows(next) != first || !disjoint() {
            break;
        }
        count += 1;
    }
    count
}

/// Some rows of a field.
pub(super) struct RowRun {
    field: FieldId,
    width: usize,
    pub(super) count: usize,
    numbers: Numbers,
}

enum Numbers {
    /// Rows `first + i * step`.
    Stepped { first: usize, step: usize },
    /// A range of the plan's tables.
    Tables(usize),
    /// The numbers of single rows, where a lane has several.
    Own(Vec<u32>),
}

/// A reduction, or several to one block, over the rows of some shards.
pub(super) struct Sum<'a> {
    pub(super) inputs: ReductionInputs<'a>,
    /// The first of the reductions.
    pub(super) of: &'a Reduction,
    shards: Range<usize>,
    pub(super) x: Vec<RowRun>,
    pub(super) dy: Vec<RowRun>,
    /// The width of the store.
    pub(super) columns: usize,
    /// The rows and columns of the block that it computes: all, or in a weight some.
    pub(super) part: [Range<usize>; 2],
}

impl Sum<'_> {
    /// The place of the part in memory that is laid out like the store.
    pub(super) fn at_its_place<'a>(&self, values: &'a mut [f32]) -> Target<'a> {
        let (row, col) = match self.of.sum {
            ReductionSum::Wgrad { row, col, .. } => (row as usize, col as usize),
            ReductionSum::Colsum | ReductionSum::Tgrad | ReductionSum::Lgrad => (0, 0),
        };
        let [rows, columns] = &self.part;
        Target { values, columns: self.columns, row: row + rows.start, col: col + columns.start }
    }

    /// The place of the part at the beginning of memory of its own.
    pub(super) fn packed<'a>(&self, values: &'a mut [f32]) -> Target<'a> {
        let [rows, columns] = self.part.each_ref().map(Range::len);
        Target { values: &mut values[..rows * columns], columns, row: 0, col: 0 }
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.dy.iter().map(|run| run.count).sum()
    }

    /// Makes the sum of a node of the tree of shards, whose rows are `rows`. It is added to the target if `adds`, else it
    /// replaces it.
    pub(super) fn execute_node(
        &self,
        rows: Range<usize>,
        shards: &[usize],
        adds: bool,
        target: Target<'_>,
        hands: &mut Hands<'_, '_>,
    ) -> Result<(), RunError> {
        self.weight_block(rows, Chains::OfShards { shards, adds }, target, hands)
    }

    fn weight_block(
        &self,
        rows: Range<usize>,
        chains: Chains<'_>,
        Target { values, columns, row, col }: Target<'_>,
        hands: &mut Hands<'_, '_>,
    ) -> Result<(), RunError> {
        let [k, n] = self.part.clone();
        let values = &mut values[row * columns..(row + k.len()) * columns];
        let block =
            WeightBlock { inputs: self.inputs, x: &self.x, dy: &self.dy, rows, k, n, col, columns, chains };
        block.execute(values, hands)
    }

    /// Adds some of the rows. The sum starts from the target if `accumulate`, else from zero.
    fn execute(
        &self,
        rows: Range<usize>,
        target: Target<'_>,
        accumulate: bool,
        hands: &mut Hands<'_, '_>,
    ) -> Result<(), RunError> {
        let Self { inputs, of, ref dy, .. } = *self;
        match of.sum {
            ReductionSum::Wgrad { .. } => self.weight_block(rows, Chains::One { accumulate }, target, hands),
            ReductionSum::Colsum => {
                let columns = target.values.len();
                let parts = column_parts(rows.len(), columns, hands.crew.threads());
                let each = columns.div_ceil(parts.max(1)).next_multiple_of(LINE).max(LINE);
                let mut outcomes: Vec<Result<(), KernelError>> = (0..parts).map(|_| Ok(())).collect();
                let parts = target.values.chunks_mut(each).enumerate().zip(&mut outcomes);
                hands.crew.each_of(parts, |((number, sums), outcome)| {
                    let dy = runs_of(dy, number * each, rows.clone(), inputs);
                    *outcome = column_sums(inputs.isa, &dy, sums, accumulate);
                });
                Ok(outcomes.into_iter().collect::<Result<(), KernelError>>()?)
            }
            ReductionSum::Tgrad => {
                let mut targets: Vec<u32> = Vec::new();
                self.shards.clone().for_each(|shard| inputs.targets(of, shard, &mut targets));
                let (columns, targets) = (self.columns, &targets[rows.clone()]);
                let table = TableSum { isa: inputs.isa, columns, dy: &runs_of(dy, 0, rows, inputs), targets };
                let parts = column_parts(targets.len(), columns, hands.crew.threads());
                Ok(table.run(target.values, parts, hands.crew)?)
            }
            ReductionSum::Lgrad => self.label_rows(rows, target, accumulate, hands),
        }
    }
}

impl<'a> ReductionInputs<'a> {
    /// Reductions to one block, over the rows of some shards: shard by shard, and in each one reduction after the other.
    pub(super) fn sum(self, all: &[&'a Reduction], shards: Range<usize>) -> Sum<'a> {
        let of = all[0];
        let ty = self.plan.stores[of.store.index()].ty;
        let columns = ty.shape.width();
        let (k, n) = match of.sum {
            ReductionSum::Wgrad { k, n, .. } => (k as usize, n as usize),
            ReductionSum::Colsum => (0, ty.shape.elements()),
            ReductionSum::Tgrad => (0, columns),
            ReductionSum::Lgrad => (columns, FACTORS),
        };
        let (mut x, mut dy) = (Vec::new(), Vec::new());
        for shard in shards.clone() {
            for of in all {
                if k > 0 {
                    self.push_runs(of, shard, k, |part| part.x, &mut x);
                }
                self.push_runs(of, shard, n, |part| Some(part.dy), &mut dy);
            }
        }
        let part = of.block(self.plan).map(|range| 0..(range.end - range.start) as usize);
        Sum { inputs: self, of, shards, x, dy, columns, part }
    }

    /// The number of rows of reductions in a shard.
    pub(super) fn rows(self, all: &[&Reduction], shard: usize) -> usize {
        let parts = all.iter().flat_map(|of| &of.parts);
        parts.map(|part| part.lanes_of(shard).len() * part.each as usize).sum()
    }

    /// The rows of one operand of all parts of a reduction, in a shard.
    fn push_runs(
        &self,
        sum: &Reduction,
        shard: usize,
        width: usize,
        operand: impl Fn(&ReductionPart) -> Option<StepOperand>,
        runs: &mut Vec<RowRun>,
    ) {
        runs.reserve(sum.parts.len());
        for part in &sum.parts {
            let Some(operand) = operand(part) else { continue };
            let (lanes, each) = (part.lanes_of(shard), part.each as usize);
            let (first, count) = (lanes.start as usize, lanes.len());
            let numbers = match (operand.address.steps(), operand.address.table()) {
                (Some((start, 1)), _) => Numbers::Stepped { first: (start as usize + first) * each, step: 1 },
                (Some((start, stride)), _) if each == 1 => {
                    let (start, step) = (start as usize, stride as usize);
                    Numbers::Stepped { first: start + first * step, step }
                }
                (_, Some(at)) if each == 1 => Numbers::Tables(at as usize + first),
                _ => {
                    let rows = lanes.map(|lane| self.lane_row(operand, lane as usize) * each);
                    Numbers::Own(rows.flat_map(|first| first as u32..(first + each) as u32).collect())
                }
            };
            runs.push(RowRun { field: field_of(operand), width, count: count * each, numbers });
        }
    }

    /// The field row of a lane's operand.
    fn lane_row(&self, operand: StepOperand, lane: usize) -> usize {
        let row = self.plan.operand_row(operand, lane as u32);
        row.expect("reductions read rows (rule P28)").1 as usize
    }

    /// The table row that a lane of a `tgrad` adds to.
    pub(super) fn index(&self, operand: StepOperand, lane: usize) -> u32 {
        match self.plan.bound_word(operand, lane as u32) {
            Some(word) => self.words[word as usize],
            None => self.memory.row(field_of(operand).index(), self.lane_row(operand, lane), 1)[0].to_bits(),
        }
    }

    /// The table rows that the lanes of a shard add to.
    pub(super) fn targets(&self, sum: &Reduction, shard: usize, targets: &mut Vec<u32>) {
        let last = self.plan.stores[sum.store.index()].ty.shape.dims()[0] - 1;
        for part in &sum.parts {
            let Some(x) = part.x else { continue };
            targets.extend(part.lanes_of(shard).map(|lane| self.index(x, lane as usize).min(last)));
        }
    }
}

/// The number of threads that split the columns of additions to a table.
pub(super) fn column_parts(rows: usize, columns: usize, threads: usize) -> usize {
    (rows * columns / SPLIT_ELEMENTS + 1).min(threads).min(columns)
}

fn field_of(operand: StepOperand) -> FieldId {
    operand.field().expect("reductions read rows (rule P28)")
}

/// Some of the rows, from column `first` on.
pub(super) fn runs_of<'a>(
    runs: &'a [RowRun],
    first: usize,
    rows: Range<usize>,
    inputs: ReductionInputs<'a>,
) -> Vec<RowsRun<'a>> {
    let mut before = 0;
    let cut = runs.iter().filter_map(|run| {
        let begin = rows.start.saturating_sub(before).min(run.count);
        let end = rows.end.saturating_sub(before).min(run.count);
        before += run.count;
        (begin < end).then_some((run, begin, end))
    });
    let run = |(run, begin, end): (&'a RowRun, usize, usize)| {
        let numbers = match &run.numbers {
            Numbers::Stepped { first, step } => {
                RowNumbers::Stepped { first: *first + begin * *step, step: *step }
            }
            Numbers::Tables(at) => RowNumbers::Table(&inputs.plan.tables[*at + begin..*at + end]),
            Numbers::Own(rows) => RowNumbers::Table(&rows[begin..end]),
        };
        let data = &inputs.memory.field(run.field.index())[first..];
        RowsRun { rows: Rows::new(data, run.width, numbers), count: end - begin }
    };
    cut.map(run).collect()
}

/// A part of a block of a weight's gradient, over some rows of the sum.
struct WeightBlock<'a> {
    inputs: ReductionInputs<'a>,
    x: &'a [RowRun],
    dy: &'a [RowRun],
    rows: Range<usize>,
    /// The columns of `x`.
    k: Range<usize>,
    /// The columns of `dy`.
    n: Range<usize>,
    /// The first column in the target.
    col: usize,
    /// The width of the target.
    columns: usize,
    chains: Chains<'a>,
}

/// The chains of a weight's gradient.
#[derive(Clone, Copy)]
enum Chains<'a> {
    /// One over all rows. It starts from the contents of the block if `accumulate`, else from zero.
    One { accumulate: bool },
    /// One for each shard of a node of the tree, added in the tree. The sum is added to the block if `adds`.
    OfShards { shards: &'a [usize], adds: bool },
}

impl WeightBlock<'_> {
    /// Computes the block into `target`, which holds its rows at the width of the store.
    fn execute(&self, target: &mut [f32], hands: &mut Hands<'_, '_>) -> Result<(), RunError> {
        let k = self.k.len();
        let Hands { crew, scratch } = hands;
        let parts = (self.rows.len() * k * self.n.len() / SPLIT_WORK + 1).min(crew.threads()).min(k);
        if parts <= 1 {
            return self.part(0..k, target, &mut scratch[0]);
        }
        let mut outcomes: Vec<Result<(), RunError>> = (0..parts).map(|_| Ok(())).collect();
        let mut rest = target;
        let parts = scratch.iter_mut().zip(&mut outcomes).enumerate().map(|(number, (scratch, outcome))| {
            let part = k * number / parts..k * (number + 1) / parts;
            let own = rest.split_off_mut(..part.len() * self.columns).unwrap_or_default();
            (part, own, scratch, outcome)
        });
        crew.each_of(parts, |(part, own, scratch, outcome)| *outcome = self.part(part, own, scratch));
        outcomes.into_iter().collect()
    }

    /// Computes some rows of the block into `target`.
    fn part(&self, part: Range<usize>, target: &mut [f32], scratch: &mut Scratch) -> Result<(), RunError> {
        let Self { inputs, ref rows, chains, .. } = *self;
        let x = runs_of(self.x, self.k.start + part.start, rows.clone(), inputs);
        let dy = runs_of(self.dy, self.n.start, rows.clone(), inputs);
        let (isa, k, n) = (inputs.isa, part.len(), self.n.len());
        let out = RowsMut::new(&mut target[self.col..], self.columns);
        let sum = WeightGrad { isa, k, n, x: &x, dy: &dy, accumulate: false };
        Ok(match chains {
            Chains::One { accumulate } => {
                let dy = GradientRows { rows: rows.clone(), columns: self.n.clone() };
                WeightGrad { accumulate, ..sum }.run_again(out, scratch, Some(dy))
            }
            Chains::OfShards { shards, adds } => ShardedWeightGrad { sum, shards, adds }.run(out, scratch),
        }?)
    }
}
