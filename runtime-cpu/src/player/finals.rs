//! Plays finals: sums over all rows, after the last step.
//!
//! By then nobody writes rows any more, so everything here is safe code over whole fields. Threads
//! take rows of the *gradient*, never a part of a sum, so the bits depend on the plan only.

use super::RunError;
use super::gradients::Gradients;
use super::memory::Memory;
use crate::kernels::{Isa, RowNumbers, Rows, RowsMut, Run, Scratch, TableSum, WeightGrad, column_sums};
use autobatch_ir::plan::{FieldId, Final, FinalPart, FinalSum, Operand, Plan};
use std::ops::Range;

/// Multiply-adds below which a sum is not split among threads.
const SPLIT_WORK: usize = 1_500_000;
/// Additions to a table below which they are not split among threads.
const SPLIT_ELEMENTS: usize = 100_000;

/// What finals read.
#[derive(Clone, Copy)]
pub(super) struct Played<'a> {
    pub(super) isa: Isa,
    pub(super) plan: &'a Plan,
    pub(super) memory: &'a Memory,
    pub(super) words: &'a [u32],
}

impl Gradients {
    /// Plays all finals in order.
    pub(super) fn play(&mut self, played: Played<'_>, threads: usize, kept: bool) -> Result<(), RunError> {
        self.touched.mark(played, kept);
        for (sum, &fresh) in played.plan.finals.iter().zip(&self.fresh) {
            let gradient = &mut self.stores[sum.store.index()].values[..];
            let columns = played.plan.stores[sum.store.index()].ty.shape.width();
            let scratch = &mut self.scratch[..threads];
            match sum.sum {
                FinalSum::Wgrad { row, col, k, n } => {
                    let (row, col, k, n) = (row as usize, col as usize, k as usize, n as usize);
                    let dy = played.runs(sum, n, |part| Some(part.dy));
                    let target = &mut gradient[row * columns..(row + k) * columns];
                    let x = played.runs(sum, k, |part| part.x);
                    let product = Product { played, x: &x, dy: &dy, k, n, col, accumulate: !fresh };
                    product.play(target, columns, scratch)?;
                }
                FinalSum::Colsum => {
                    let dy = played.runs(sum, gradient.len(), |part| Some(part.dy));
                    column_sums(played.isa, &runs_of(&dy, 0, played), gradient, !fresh)?;
                }
                FinalSum::Tgrad => played.add_table_rows(sum, columns, gradient, threads)?,
            }
        }
        Ok(())
    }
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

impl Played<'_> {
    /// What the parts of a final name, as runs of rows of one width.
    fn runs(
        &self,
        sum: &Final,
        width: usize,
        operand: impl Fn(&FinalPart) -> Option<Operand>,
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
            _ => unreachable!("finals take rows (rule P28)"),
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
        sum: &Final,
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
        let dy = self.runs(sum, columns, |part| Some(part.dy));
        let rows = TableSum { isa: self.isa, columns, dy: &runs_of(&dy, 0, *self), targets: &targets };
        let parts = (lanes * columns / SPLIT_ELEMENTS + 1).min(threads).min(columns);
        Ok(rows.run(gradient, parts)?)
    }
}

fn field_of(operand: Operand) -> FieldId {
    match operand {
        Operand::Rows { field, .. } | Operand::Table { field, .. } => field,
        _ => unreachable!("finals take rows (rule P28)"),
    }
}

/// The rows from column `first` on.
fn runs_of<'a>(runs: &'a [RowRun], first: usize, played: Played<'a>) -> Vec<Run<'a>> {
    let run = |run: &'a RowRun| {
        let numbers = match &run.numbers {
            Numbers::Stepped { first, step } => RowNumbers::Stepped { first: *first, step: *step },
            Numbers::Tables(at) => RowNumbers::Table(&played.plan.tables[*at..*at + run.count]),
            Numbers::Own(rows) => RowNumbers::Table(rows),
        };
        let data = &played.memory.field(run.field.index())[first..];
        Run { rows: Rows::new(data, run.width, numbers), count: run.count }
    };
    runs.iter().map(run).collect()
}

/// One block of a weight's gradient.
struct Product<'a> {
    played: Played<'a>,
    x: &'a [RowRun],
    dy: &'a [RowRun],
    k: usize,
    n: usize,
    col: usize,
    /// Whether the sum goes on from what the block holds.
    accumulate: bool,
}

impl Product<'_> {
    /// `target` holds the rows of the block, each as wide as the store.
    fn play(&self, target: &mut [f32], columns: usize, scratch: &mut [Scratch]) -> Result<(), RunError> {
        let count: usize = self.x.iter().map(|run| run.count).sum();
        let parts = (count * self.k * self.n / SPLIT_WORK + 1).min(scratch.len()).min(self.k);
        if parts <= 1 {
            return self.rows(0..self.k, target, columns, &mut scratch[0]);
        }
        let mut outcomes: Vec<Result<(), RunError>> = (0..parts).map(|_| Ok(())).collect();
        rayon::scope(|scope| {
            let (mut rest, mut first) = (target, 0);
            for (number, (scratch, outcome)) in scratch.iter_mut().zip(&mut outcomes).enumerate() {
                let end = self.k * (number + 1) / parts;
                let (own, after) = rest.split_at_mut((end - first) * columns);
                let rows = first..end;
                scope.spawn(move |_| *outcome = self.rows(rows, own, columns, scratch));
                (rest, first) = (after, end);
            }
        });
        outcomes.into_iter().collect()
    }

    /// Some rows of the block, which `target` begins with.
    fn rows(
        &self,
        rows: Range<usize>,
        target: &mut [f32],
        columns: usize,
        scratch: &mut Scratch,
    ) -> Result<(), RunError> {
        let (x, dy) = (runs_of(self.x, rows.start, self.played), runs_of(self.dy, 0, self.played));
        let Self { played: Played { isa, .. }, n, accumulate, .. } = *self;
        let product = WeightGrad { isa, k: rows.len(), n, x: &x, dy: &dy, accumulate };
        Ok(product.run(RowsMut::new(&mut target[self.col..], columns), scratch)?)
    }
}
