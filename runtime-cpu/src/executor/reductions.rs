//! Executes the parameter-gradient reductions: sums over all rows, after the last step.
//!
//! No step writes rows any more, so this is safe code. Threads split rows of the *gradient*, never a sum.
//!
//! Several reductions often sum the same gradient rows: with each part of a product's operand, and alone for the bias.
//! Such neighbours run together, a few rows at a time, so that only the first loads the rows from memory.

use super::RunError;
use super::gradients::{Gradient, Gradients};
use super::memory::Memory;
use crate::kernels::{Isa, RowNumbers, Rows, RowsMut, Run, Scratch, TableSum, WeightGrad, column_sums};
use autobatch_ir::plan::{FieldId, Operand, Plan, Reduction, ReductionPart, ReductionSum};
use std::ops::Range;

/// Multiply-adds below which threads do not split a sum.
const SPLIT_WORK: usize = 1_500_000;
/// Elements below which threads do not split additions to a table.
const SPLIT_ELEMENTS: usize = 100_000;

/// Rows that a group of reductions processes at a time.
const ROWS_AT_ONCE: usize = 512;
/// The maximum number of gradient elements of a group, which passes through the cache once per [`ROWS_AT_ONCE`] rows.
const MAX_GROUP_ELEMENTS: usize = 1 << 18;
/// The maximum number of reductions in a group. Each is compared with all before it.
const MAX_GROUP: usize = 256;

#[derive(Clone, Copy)]
pub(super) struct ReductionInputs<'a> {
    pub(super) isa: Isa,
    pub(super) plan: &'a Plan,
    pub(super) memory: &'a Memory,
    pub(super) words: &'a [u32],
}

impl Gradients {
    pub(super) fn execute(
        &mut self,
        inputs: ReductionInputs<'_>,
        threads: usize,
        accumulate: bool,
    ) -> Result<(), RunError> {
        self.sparse.mark(inputs, &self.listed, accumulate);
        if inputs.plan.shard_count() > 1 {
            return self.execute_shards(inputs, threads);
        }
        let reductions = &inputs.plan.reductions;
        let mut end = 0;
        while end < reductions.len() {
            let begin = end;
            end += group_size(inputs.plan, &reductions[begin..], MAX_GROUP_ELEMENTS);
            let sums: Vec<Sum<'_>> = reductions[begin..end].iter().map(|sum| inputs.sum(sum, 0)).collect();
            let Self { stores, overwrites, scratch, .. } = self;
            let overwrites = &overwrites[begin..end];
            let mut target = |number: usize, with: &mut dyn FnMut(Target<'_>) -> Result<(), RunError>| {
                with(in_store(stores, &sums[number]))
            };
            execute_group(&sums, overwrites, &mut target, &mut scratch[..threads])?;
        }
        Ok(())
    }
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

/// Executes a group of reductions, some rows at a time.
pub(super) fn execute_group(
    sums: &[Sum<'_>],
    overwrites: &[bool],
    with_target: &mut WithTarget<'_>,
    scratch: &mut [Scratch],
) -> Result<(), RunError> {
    let count = sums[0].dy.iter().map(|run| run.count).sum();
    let each = if sums.len() > 1 { ROWS_AT_ONCE } else { count };
    let mut rows = 0..each.min(count);
    // An empty sum still writes its start, in one iteration of length 0.
    loop {
        for (number, (sum, overwrites)) in sums.iter().zip(overwrites).enumerate() {
            let continues = !overwrites || rows.start > 0;
            with_target(number, &mut |target| sum.execute(rows.clone(), target, continues, scratch))?;
        }
        if rows.end == count {
            return Ok(());
        }
        rows = rows.end..count.min(rows.end + each);
    }
}

/// The size of the first group: reductions that sum the same gradient rows into disjoint blocks, in any order, and have fewer
/// than `most` elements together.
pub(super) fn group_size(plan: &Plan, reductions: &[Reduction], most: usize) -> usize {
    let size = |sum: &Reduction| match sum.sum {
        ReductionSum::Wgrad { k, n, .. } => k as usize * n as usize,
        ReductionSum::Colsum => 0,
        ReductionSum::Tgrad => most,
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

/// A reduction over the rows of a shard.
pub(super) struct Sum<'a> {
    inputs: ReductionInputs<'a>,
    pub(super) of: &'a Reduction,
    shard: usize,
    x: Vec<RowRun>,
    pub(super) dy: Vec<RowRun>,
    /// The width of the store.
    columns: usize,
    /// The rows and columns of the block that it computes: all, or in a weight some.
    pub(super) part: [Range<usize>; 2],
}

impl Sum<'_> {
    /// The place of the part in memory that is laid out like the store.
    pub(super) fn at_its_place<'a>(&self, values: &'a mut [f32]) -> Target<'a> {
        let (row, col) = match self.of.sum {
            ReductionSum::Wgrad { row, col, .. } => (row as usize, col as usize),
            ReductionSum::Colsum | ReductionSum::Tgrad => (0, 0),
        };
        let [rows, columns] = &self.part;
        Target { values, columns: self.columns, row: row + rows.start, col: col + columns.start }
    }

    /// The place of the part at the beginning of memory of its own.
    pub(super) fn packed<'a>(&self, values: &'a mut [f32]) -> Target<'a> {
        let [rows, columns] = self.part.each_ref().map(Range::len);
        Target { values: &mut values[..rows * columns], columns, row: 0, col: 0 }
    }

    /// Whether it may write its block without reading it.
    pub(super) fn can_overwrite(&self) -> bool {
        self.of.sum != ReductionSum::Tgrad
    }

    /// Adds some of the rows. The sum starts from the target if `accumulate`, else from zero.
    fn execute(
        &self,
        rows: Range<usize>,
        target: Target<'_>,
        accumulate: bool,
        scratch: &mut [Scratch],
    ) -> Result<(), RunError> {
        let Self { inputs, of, shard, ref x, ref dy, .. } = *self;
        let Target { values, columns, row, col } = target;
        match of.sum {
            ReductionSum::Wgrad { .. } => {
                let [k, n] = self.part.clone();
                let values = &mut values[row * columns..(row + k.len()) * columns];
                let product = WeightBlock { inputs, x, dy, rows, k, n, col, columns, accumulate };
                product.execute(values, scratch)
            }
            ReductionSum::Colsum => {
                Ok(column_sums(inputs.isa, &runs_of(dy, 0, rows, inputs), values, accumulate)?)
            }
            ReductionSum::Tgrad => {
                inputs.add_table_rows((of, shard), &runs_of(dy, 0, rows, inputs), values, scratch.len())
            }
        }
    }
}

impl<'a> ReductionInputs<'a> {
    /// A reduction over the rows of a shard.
    pub(super) fn sum(self, of: &'a Reduction, shard: usize) -> Sum<'a> {
        let ty = self.plan.stores[of.store.index()].ty;
        let columns = ty.shape.width();
        let (k, n) = match of.sum {
            ReductionSum::Wgrad { k, n, .. } => (k as usize, n as usize),
            ReductionSum::Colsum => (0, ty.shape.elements()),
            ReductionSum::Tgrad => (0, columns),
        };
        let x = if k > 0 { self.runs((of, shard), k, |part| part.x) } else { Vec::new() };
        let dy = self.runs((of, shard), n, |part| Some(part.dy));
        let part = of.block(self.plan).map(|range| 0..(range.end - range.start) as usize);
        Sum { inputs: self, of, shard, x, dy, columns, part }
    }

    /// The rows of one operand of all parts of a reduction, in a shard.
    pub(super) fn runs(
        &self,
        (sum, shard): (&Reduction, usize),
        width: usize,
        operand: impl Fn(&ReductionPart) -> Option<Operand>,
    ) -> Vec<RowRun> {
        let mut runs = Vec::with_capacity(sum.parts.len());
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
        runs
    }

    /// The field row of a lane's operand.
    fn lane_row(&self, operand: Operand, lane: usize) -> usize {
        let row = self.plan.operand_row(operand, lane as u32);
        row.expect("reductions read rows (rule P28)").1 as usize
    }

    /// The table row that a lane of a `tgrad` adds to.
    pub(super) fn index(&self, operand: Operand, lane: usize) -> u32 {
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

    /// Adds rows to the table rows given by indices. Threads split columns.
    fn add_table_rows(
        &self,
        (sum, shard): (&Reduction, usize),
        dy: &[Run<'_>],
        gradient: &mut [f32],
        threads: usize,
    ) -> Result<(), RunError> {
        let columns = self.plan.stores[sum.store.index()].ty.shape.width();
        let mut targets: Vec<u32> = Vec::new();
        self.targets(sum, shard, &mut targets);
        let rows = TableSum { isa: self.isa, columns, dy, targets: &targets };
        Ok(rows.run(gradient, column_parts(targets.len(), columns, threads))?)
    }
}

/// The number of threads that split the columns of additions to a table.
pub(super) fn column_parts(rows: usize, columns: usize, threads: usize) -> usize {
    (rows * columns / SPLIT_ELEMENTS + 1).min(threads).min(columns)
}

fn field_of(operand: Operand) -> FieldId {
    operand.field().expect("reductions read rows (rule P28)")
}

/// Some of the rows, from column `first` on.
pub(super) fn runs_of<'a>(
    runs: &'a [RowRun],
    first: usize,
    rows: Range<usize>,
    inputs: ReductionInputs<'a>,
) -> Vec<Run<'a>> {
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
        Run { rows: Rows::new(data, run.width, numbers), count: end - begin }
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
    /// The width of the store.
    columns: usize,
    /// True if the sum starts from the contents of the block.
    accumulate: bool,
}

impl WeightBlock<'_> {
    /// Computes the block into `target`, which holds its rows at the width of the store.
    fn execute(&self, target: &mut [f32], scratch: &mut [Scratch]) -> Result<(), RunError> {
        let k = self.k.len();
        let parts = (self.rows.len() * k * self.n.len() / SPLIT_WORK + 1).min(scratch.len()).min(k);
        if parts <= 1 {
            return self.part(0..k, target, &mut scratch[0]);
        }
        let mut outcomes: Vec<Result<(), RunError>> = (0..parts).map(|_| Ok(())).collect();
        rayon::scope(|scope| {
            let (mut rest, mut first) = (target, 0);
            for (number, (scratch, outcome)) in scratch.iter_mut().zip(&mut outcomes).enumerate() {
                let end = k * (number + 1) / parts;
                let (own, after) = rest.split_at_mut((end - first) * self.columns);
                let part = first..end;
                scope.spawn(move |_| *outcome = self.part(part, own, scratch));
                (rest, first) = (after, end);
            }
        });
        outcomes.into_iter().collect()
    }

    /// Computes some rows of the block into `target`.
    fn part(&self, part: Range<usize>, target: &mut [f32], scratch: &mut Scratch) -> Result<(), RunError> {
        let Self { inputs, ref rows, accumulate, .. } = *self;
        let x = runs_of(self.x, self.k.start + part.start, rows.clone(), inputs);
        let dy = runs_of(self.dy, self.n.start, rows.clone(), inputs);
        let (isa, k, n) = (inputs.isa, part.len(), self.n.len());
        let product = WeightGrad { isa, k, n, x: &x, dy: &dy, accumulate };
        Ok(product.run(RowsMut::new(&mut target[self.col..], self.columns), scratch)?)
    }
}
