//! Executes reductions: sums over all rows, after the last step.
//!
//! By then nobody writes rows any more, so everything here is safe code over whole fields. Threads
//! take rows of the *gradient*, never a part of a sum, so the bits depend on the plan only.
//!
//! What came back from a product is summed several times: with each part of what entered, and by itself
//! for the bias. Neighbouring reductions that take the same rows are executed together, some rows at a time,
//! which are in cache then for all but the first.

use super::RunError;
use super::gradients::{Gradients, meet};
use super::memory::Memory;
use crate::kernels::{Isa, RowNumbers, Rows, RowsMut, Run, Scratch, TableSum, WeightGrad, column_sums};
use autobatch_ir::plan::{FieldId, Operand, Plan, Reduction, ReductionPart, ReductionSum};
use std::ops::Range;

/// Multiply-adds below which a sum is not split among threads.
const SPLIT_WORK: usize = 1_500_000;
/// Additions to a table below which they are not split among threads.
const SPLIT_ELEMENTS: usize = 100_000;

/// Rows that reductions of the same rows take at a time.
const ROWS_AT_ONCE: usize = 512;
/// Elements of the gradients that are summed together: they go through the cache once for so many rows.
const MOST_TOGETHER: usize = 1 << 18;
/// So many reductions are executed together at most: each is compared with those before it.
const MOST_FINALS: usize = 256;

/// What reductions read.
#[derive(Clone, Copy)]
pub(super) struct Executed<'a> {
    pub(super) isa: Isa,
    pub(super) plan: &'a Plan,
    pub(super) memory: &'a Memory,
    pub(super) words: &'a [u32],
}

impl Gradients {
    /// Executes all reductions in order.
    pub(super) fn execute(
        &mut self,
        executed: Executed<'_>,
        threads: usize,
        kept: bool,
    ) -> Result<(), RunError> {
        self.touched.mark(executed, &self.listed, kept);
        let reductions = &executed.plan.reductions;
        let mut end = 0;
        while end < reductions.len() {
            let begin = end;
            end += together(executed.plan, &reductions[begin..]);
            let sums: Vec<Sum<'_>> = reductions[begin..end].iter().map(|sum| executed.sum(sum)).collect();
            let count = sums[0].dy.iter().map(|run| run.count).sum();
            let each = if sums.len() > 1 { ROWS_AT_ONCE } else { count };
            let mut rows = 0..each.min(count);
            // A sum of no rows still writes its start, in one turn of no length.
            loop {
                for (sum, fresh) in sums.iter().zip(&self.fresh[begin..end]) {
                    let gradient = &mut self.stores[sum.of.store.index()].values[..];
                    let accumulate = !fresh || rows.start > 0;
                    sum.execute(rows.clone(), gradient, accumulate, &mut self.scratch[..threads])?;
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

/// How many of the reductions, from the first on, take the same rows of what came back and reach no element
/// twice, so that their order does not matter; at least one.
fn together(plan: &Plan, reductions: &[Reduction]) -> usize {
    let size = |sum: &Reduction| match sum.sum {
        ReductionSum::Wgrad { k, n, .. } => k as usize * n as usize,
        ReductionSum::Colsum => 0,
        ReductionSum::Tgrad => MOST_TOGETHER,
    };
    let rows =
        |sum: &Reduction| sum.parts.iter().map(|part| (part.lanes, part.each, part.dy)).collect::<Vec<_>>();
    let (mut count, mut elements, first) = (1, size(&reductions[0]), rows(&reductions[0]));
    while let Some(next) = reductions.get(count) {
        elements += size(next);
        let apart = || reductions[..count].iter().all(|before| !meet(plan, before, next));
        if elements >= MOST_TOGETHER || count == MOST_FINALS || rows(next) != first || !apart() {
            break;
        }
        count += 1;
    }
    count
}

/// Rows of a field, `count` of them: numbers `first + i * step`, or a table of the caller's.
struct RowRun {
    field: FieldId,
    width: usize,
    count: usize,
    numbers: Numbers,
}

enum Numbers {
    Stepped {
        first: usize,
        step: usize,
    },
    /// A range of the plan's tables.
    Tables(usize),
    /// Row numbers of single rows of lanes that hold several.
    Own(Vec<u32>),
}

/// A final, and the rows that it takes.
struct Sum<'a> {
    executed: Executed<'a>,
    of: &'a Reduction,
    x: Vec<RowRun>,
    dy: Vec<RowRun>,
    /// The width of the store.
    columns: usize,
}

impl Sum<'_> {
    /// Adds some of the rows.
    fn execute(
        &self,
        rows: Range<usize>,
        gradient: &mut [f32],
        accumulate: bool,
        scratch: &mut [Scratch],
    ) -> Result<(), RunError> {
        let Self { executed, of, ref x, ref dy, columns } = *self;
        match of.sum {
            ReductionSum::Wgrad { row, col, k, n } => {
                let (row, col, k, n) = (row as usize, col as usize, k as usize, n as usize);
                let target = &mut gradient[row * columns..(row + k) * columns];
                let product = Product { executed, x, dy, rows, k, n, col, accumulate };
                product.execute(target, columns, scratch)
            }
            ReductionSum::Colsum => {
                Ok(column_sums(executed.isa, &runs_of(dy, 0, rows, executed), gradient, accumulate)?)
            }
            ReductionSum::Tgrad => {
                executed.add_table_rows(of, &runs_of(dy, 0, rows, executed), columns, gradient, scratch.len())
            }
        }
    }
}

impl<'a> Executed<'a> {
    fn sum(self, of: &'a Reduction) -> Sum<'a> {
        let ty = self.plan.stores[of.store.index()].ty;
        let columns = ty.shape.width();
        let (k, n) = match of.sum {
            ReductionSum::Wgrad { k, n, .. } => (k as usize, n as usize),
            ReductionSum::Colsum => (0, ty.shape.elements()),
            ReductionSum::Tgrad => (0, columns),
        };
        let x = if k > 0 { self.runs(of, k, |part| part.x) } else { Vec::new() };
        Sum { executed: self, of, x, dy: self.runs(of, n, |part| Some(part.dy)), columns }
    }

    /// What the parts of a final name, as runs of rows of one width.
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
            let count = lanes * each;
            let row = |lane: usize| self.lane_row(operand, lane);
            let numbers = match operand {
                Operand::Rows { start, stride: 1, .. } => {
                    Numbers::Stepped { first: start as usize * each, step: 1 }
                }
                Operand::Rows { start, stride, .. } if each == 1 => {
                    Numbers::Stepped { first: start as usize, step: stride as usize }
                }
                Operand::Table { at, .. } if each == 1 => Numbers::Tables(at as usize),
                _ => {
                    let rows = (0..lanes).flat_map(|lane| (0..each).map(move |i| (lane, i)));
                    Numbers::Own(rows.map(|(lane, i)| (row(lane) * each + i) as u32).collect())
                }
            };
            runs.push(RowRun { field: field_of(operand), width, count, numbers });
        }
        runs
    }

    /// The row of a field that a lane's operand is.
    fn lane_row(&self, operand: Operand, lane: usize) -> usize {
        match operand {
            Operand::Rows { start, stride, .. } => start as usize + lane * stride as usize,
            Operand::Table { at, .. } => self.plan.tables[at as usize + lane] as usize,
            _ => unreachable!("reductions take rows (rule P28)"),
        }
    }

    /// The index that a lane of a `tgrad` adds to.
    pub(super) fn index(&self, operand: Operand, lane: usize) -> u32 {
        match operand {
            Operand::Words { start, stride } => self.words[start as usize + lane * stride as usize],
            Operand::WordTable { at } => self.words[self.plan.tables[at as usize + lane] as usize],
            rows => self.memory.row(field_of(rows).index(), self.lane_row(rows, lane), 1)[0].to_bits(),
        }
    }

    /// Adds rows to those of a table that indices name. Threads take columns.
    fn add_table_rows(
        &self,
        sum: &Reduction,
        dy: &[Run<'_>],
        columns: usize,
        gradient: &mut [f32],
        threads: usize,
    ) -> Result<(), RunError> {
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
    match operand {
        Operand::Rows { field, .. } | Operand::Table { field, .. } => field,
        _ => unreachable!("reductions take rows (rule P28)"),
    }
}

/// Some of the rows, from column `first` on.
fn runs_of<'a>(runs: &'a [RowRun], first: usize, rows: Range<usize>, executed: Executed<'a>) -> Vec<Run<'a>> {
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
            Numbers::Tables(at) => RowNumbers::Table(&executed.plan.tables[*at + begin..*at + end]),
            Numbers::Own(rows) => RowNumbers::Table(&rows[begin..end]),
        };
        let data = &executed.memory.field(run.field.index())[first..];
        Run { rows: Rows::new(data, run.width, numbers), count: end - begin }
    };
    cut.map(run).collect()
}

/// One block of a weight's gradient.
struct Product<'a> {
    executed: Executed<'a>,
    x: &'a [RowRun],
    dy: &'a [RowRun],
    /// Which of the rows.
    rows: Range<usize>,
    k: usize,
    n: usize,
    col: usize,
    /// Whether the sum goes on from what the block holds.
    accumulate: bool,
}

impl Product<'_> {
    /// `target` holds the rows of the block, each as wide as the store.
    fn execute(&self, target: &mut [f32], columns: usize, scratch: &mut [Scratch]) -> Result<(), RunError> {
        let parts = (self.rows.len() * self.k * self.n / SPLIT_WORK + 1).min(scratch.len()).min(self.k);
        if parts <= 1 {
            return self.block(0..self.k, target, columns, &mut scratch[0]);
        }
        let mut outcomes: Vec<Result<(), RunError>> = (0..parts).map(|_| Ok(())).collect();
        rayon::scope(|scope| {
            let (mut rest, mut first) = (target, 0);
            for (number, (scratch, outcome)) in scratch.iter_mut().zip(&mut outcomes).enumerate() {
                let end = self.k * (number + 1) / parts;
                let (own, after) = rest.split_at_mut((end - first) * columns);
                let block = first..end;
                scope.spawn(move |_| *outcome = self.block(block, own, columns, scratch));
                (rest, first) = (after, end);
            }
        });
        outcomes.into_iter().collect()
    }

    /// Some rows of the block, which `target` begins with.
    fn block(
        &self,
        block: Range<usize>,
        target: &mut [f32],
        columns: usize,
        scratch: &mut Scratch,
    ) -> Result<(), RunError> {
        let Self { executed, ref rows, n, accumulate, .. } = *self;
        let x = runs_of(self.x, block.start, rows.clone(), executed);
        let dy = runs_of(self.dy, 0, rows.clone(), executed);
        let product = WeightGrad { isa: executed.isa, k: block.len(), n, x: &x, dy: &dy, accumulate };
        Ok(product.run(RowsMut::new(&mut target[self.col..], columns), scratch)?)
    }
}
