//! Executes the parameter-gradient reductions: sums over all rows, after the last step.
//!
//! No step writes rows any more, so this is safe code. Threads split rows of the *gradient*, never a sum.
//!
//! Several reductions often sum the same gradient rows: with each part of a product's operand, and alone for the bias.
//! Such neighbours run together, a few rows at a time, so that only the first loads the rows from memory.

use super::RunError;
use super::gradients::Gradients;
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
        let reductions = &inputs.plan.reductions;
        let mut end = 0;
        while end < reductions.len() {
            let begin = end;
            end += group_size(inputs.plan, &reductions[begin..]);
            let sums: Vec<Sum<'_>> = reductions[begin..end].iter().map(|sum| inputs.sum(sum)).collect();
            let count = sums[0].dy.iter().map(|run| run.count).sum();
            let each = if sums.len() > 1 { ROWS_AT_ONCE } else { count };
            let mut rows = 0..each.min(count);
            // An empty sum still writes its start, in one iteration of length 0.
            loop {
                for (sum, overwrites) in sums.iter().zip(&self.overwrites[begin..end]) {
                    let gradient = &mut self.stores[sum.of.store.index()].values[..];
                    let continues = !overwrites || rows.start > 0;
                    sum.execute(rows.clone(), gradient, continues, &mut self.scratch[..threads])?;
                }
                if rows.end == count {
                    break;
                }
                rows = rows.end..count.min(rows.end + each);
            }
        }
        Ok(())
    }
}

/// The size of the first group: reductions that sum the same gradient rows into disjoint blocks, in any order.
fn group_size(plan: &Plan, reductions: &[Reduction]) -> usize {
    let size = |sum: &Reduction| match sum.sum {
        ReductionSum::Wgrad { k, n, .. } => k as usize * n as usize,
        ReductionSum::Colsum => 0,
        ReductionSum::Tgrad => MAX_GROUP_ELEMENTS,
    };
    let rows =
        |sum: &Reduction| sum.parts.iter().map(|part| (part.lanes, part.each, part.dy)).collect::<Vec<_>>();
    let (mut count, mut elements, first) = (1, size(&reductions[0]), rows(&reductions[0]));
    while let Some(next) = reductions.get(count) {
        elements += size(next);
        let disjoint = || reductions[..count].iter().all(|before| !before.overlaps(plan, next));
        if elements >= MAX_GROUP_ELEMENTS || count == MAX_GROUP || rows(next) != first || !disjoint() {
            break;
        }
        count += 1;
    }
    count
}

/// Some rows of a field.
struct RowRun {
    field: FieldId,
    width: usize,
    count: usize,
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

struct Sum<'a> {
    inputs: ReductionInputs<'a>,
    of: &'a Reduction,
    x: Vec<RowRun>,
    dy: Vec<RowRun>,
    /// The width of the store.
    columns: usize,
}

impl Sum<'_> {
    /// Adds some of the rows. The sum starts from the gradient if `accumulate`, else from zero.
    fn execute(
        &self,
        rows: Range<usize>,
        gradient: &mut [f32],
        accumulate: bool,
        scratch: &mut [Scratch],
    ) -> Result<(), RunError> {
        let Self { inputs, of, ref x, ref dy, columns } = *self;
        match of.sum {
            ReductionSum::Wgrad { row, col, k, n } => {
                let (row, col, k, n) = (row as usize, col as usize, k as usize, n as usize);
                let target = &mut gradient[row * columns..(row + k) * columns];
                let product = WeightBlock { inputs, x, dy, rows, k, n, col, columns, accumulate };
                product.execute(target, scratch)
            }
            ReductionSum::Colsum => {
                Ok(column_sums(inputs.isa, &runs_of(dy, 0, rows, inputs), gradient, accumulate)?)
            }
            ReductionSum::Tgrad => {
                inputs.add_table_rows(of, &runs_of(dy, 0, rows, inputs), gradient, scratch.len())
            }
        }
    }
}

impl<'a> ReductionInputs<'a> {
    fn sum(self, of: &'a Reduction) -> Sum<'a> {
        let ty = self.plan.stores[of.store.index()].ty;
        let columns = ty.shape.width();
        let (k, n) = match of.sum {
            ReductionSum::Wgrad { k, n, .. } => (k as usize, n as usize),
            ReductionSum::Colsum => (0, ty.shape.elements()),
            ReductionSum::Tgrad => (0, columns),
        };
        let x = if k > 0 { self.runs(of, k, |part| part.x) } else { Vec::new() };
        Sum { inputs: self, of, x, dy: self.runs(of, n, |part| Some(part.dy)), columns }
    }

    /// The rows of one operand of all parts of a reduction.
    fn runs(
        &self,
        sum: &Reduction,
        width: usize,
        operand: impl Fn(&ReductionPart) -> Option<Operand>,
    ) -> Vec<RowRun> {
        let mut runs = Vec::with_capacity(sum.parts.len());
        for part in &sum.parts {
            let Some(operand) = operand(part) else { continue };
            let (lanes, each) = (part.lanes as usize, part.each as usize);
            let numbers = match (operand.address.steps(), operand.address.table()) {
                (Some((start, 1)), _) => Numbers::Stepped { first: start as usize * each, step: 1 },
                (Some((start, stride)), _) if each == 1 => {
                    Numbers::Stepped { first: start as usize, step: stride as usize }
                }
                (_, Some(at)) if each == 1 => Numbers::Tables(at as usize),
                _ => {
                    let rows = (0..lanes).map(|lane| self.lane_row(operand, lane) * each);
                    Numbers::Own(rows.flat_map(|first| first as u32..(first + each) as u32).collect())
                }
            };
            runs.push(RowRun { field: field_of(operand), width, count: lanes * each, numbers });
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

    /// Adds rows to the table rows given by indices. Threads split columns.
    fn add_table_rows(
        &self,
        sum: &Reduction,
        dy: &[Run<'_>],
        gradient: &mut [f32],
        threads: usize,
    ) -> Result<(), RunError> {
        let columns = self.plan.stores[sum.store.index()].ty.shape.width();
        let lanes: usize = sum.parts.iter().map(|part| part.lanes as usize).sum();
        let last = gradient.len() / columns - 1;
        let mut targets: Vec<u32> = Vec::with_capacity(lanes);
        for part in &sum.parts {
            let Some(x) = part.x else { continue };
            let row = |lane| (self.index(x, lane) as usize).min(last) as u32;
            targets.extend((0..part.lanes as usize).map(row));
        }
        let rows = TableSum { isa: self.isa, columns, dy, targets: &targets };
        let parts = (lanes * columns / SPLIT_ELEMENTS + 1).min(threads).min(columns);
        Ok(rows.run(gradient, parts)?)
    }
}

fn field_of(operand: Operand) -> FieldId {
    operand.field().expect("reductions read rows (rule P28)")
}

/// Some of the rows, from column `first` on.
fn runs_of<'a>(
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

/// A block of a weight's gradient, over some rows of the sum.
struct WeightBlock<'a> {
    inputs: ReductionInputs<'a>,
    x: &'a [RowRun],
    dy: &'a [RowRun],
    rows: Range<usize>,
    k: usize,
    n: usize,
    col: usize,
    /// The width of the store.
    columns: usize,
    /// True if the sum starts from the contents of the block.
    accumulate: bool,
}

impl WeightBlock<'_> {
    /// Computes the block into `target`, which holds its rows at the width of the store.
    fn execute(&self, target: &mut [f32], scratch: &mut [Scratch]) -> Result<(), RunError> {
        let parts = (self.rows.len() * self.k * self.n / SPLIT_WORK + 1).min(scratch.len()).min(self.k);
        if parts <= 1 {
            return self.part(0..self.k, target, &mut scratch[0]);
        }
        let mut outcomes: Vec<Result<(), RunError>> = (0..parts).map(|_| Ok(())).collect();
        rayon::scope(|scope| {
            let (mut rest, mut first) = (target, 0);
            for (number, (scratch, outcome)) in scratch.iter_mut().zip(&mut outcomes).enumerate() {
                let end = self.k * (number + 1) / parts;
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
        let Self { inputs, ref rows, n, accumulate, .. } = *self;
        let x = runs_of(self.x, part.start, rows.clone(), inputs);
        let dy = runs_of(self.dy, 0, rows.clone(), inputs);
        let product = WeightGrad { isa: inputs.isa, k: part.len(), n, x: &x, dy: &dy, accumulate };
        Ok(product.run(RowsMut::new(&mut target[self.col..], self.columns), scratch)?)
    }
}
