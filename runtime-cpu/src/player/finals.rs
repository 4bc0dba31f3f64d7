//! Plays finals: sums over all rows, after the last step.
//!
//! By then nobody writes rows any more, so everything here is safe code over whole fields. Threads
//! take rows of the *gradient*, never a part of a sum, so the bits depend on the plan only.

use super::RunError;
use super::memory::Memory;
use super::touched::Touched;
use crate::kernels::{Isa, RowNumbers, Rows, RowsMut, Run, Scratch, WeightGrad, column_sums};
use autobatch_ir::ParamId;
use autobatch_ir::numeric::scalar;
use autobatch_ir::plan::{FieldId, Final, FinalPart, FinalSum, Operand, Plan, StoreId, StoreKind};
use std::ops::Range;

/// Multiply-adds below which a sum is not split among threads.
const SPLIT_WORK: usize = 1_500_000;

/// The gradients of the plan that was played last, by store. Memory grows and stays.
#[derive(Default)]
pub(super) struct Gradients {
    stores: Vec<Vec<f32>>,
    /// The store of each parameter's gradient.
    params: Vec<Option<StoreId>>,
    touched: Touched,
    scratch: Vec<Scratch>,
}

/// What finals read.
#[derive(Clone, Copy)]
pub(super) struct Played<'a> {
    pub(super) isa: Isa,
    pub(super) plan: &'a Plan,
    pub(super) memory: &'a Memory,
    pub(super) words: &'a [u32],
}

impl Gradients {
    /// Zeros for every gradient store of the plan; what is there, if gradients are to be `kept`.
    pub(super) fn fit(&mut self, plan: &Plan, threads: usize, kept: bool) -> Result<(), RunError> {
        let params = plan.stores.iter().filter(|store| matches!(store.kind, StoreKind::Param(_)));
        let gradient = |(number, _)| plan.gradient_of(ParamId::new(number));
        if kept {
            return match params.enumerate().map(gradient).eq(self.params.iter().copied()) {
                true => Ok(()),
                false => Err(RunError::OtherGradients),
            };
        }
        self.params.clear();
        self.params.extend(params.enumerate().map(gradient));
        if self.stores.len() < plan.stores.len() {
            self.stores.resize_with(plan.stores.len(), Vec::new);
        }
        for (store, gradient) in plan.stores.iter().zip(&mut self.stores) {
            gradient.clear();
            if matches!(store.kind, StoreKind::Grad(_)) {
                let elements = store.ty.shape.elements();
                let bytes = elements as u64 * 4;
                gradient.try_reserve_exact(elements).map_err(|_| RunError::Memory { bytes })?;
                gradient.resize(elements, 0.0);
            }
        }
        self.stores[plan.stores.len()..].iter_mut().for_each(Vec::clear);
        self.scratch.resize_with(threads.max(self.scratch.len()), Scratch::new);
        Ok(())
    }

    /// The elements of a gradient store.
    pub(super) fn of(&self, store: StoreId) -> Option<&[f32]> {
        self.stores.get(store.index()).map(Vec::as_slice).filter(|gradient| !gradient.is_empty())
    }

    /// The gradient of a parameter.
    pub(super) fn of_param(&self, param: ParamId) -> Option<&[f32]> {
        self.of((*self.params.get(param.index())?)?)
    }

    /// The touched rows of a table's gradient, ascending; `None` if all count as touched.
    pub(super) fn touched_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.touched.rows((*self.params.get(param.index())?)?.index())
    }

    /// Plays all finals in order.
    pub(super) fn play(&mut self, played: Played<'_>, threads: usize, kept: bool) -> Result<(), RunError> {
        self.touched.mark(played, kept);
        for sum in &played.plan.finals {
            let gradient = &mut self.stores[sum.store.index()];
            let columns = played.plan.stores[sum.store.index()].ty.shape.width();
            match sum.sum {
                FinalSum::Wgrad { row, col, k, n } => {
                    let dy = played.runs(sum, n as usize, |part| Some(part.dy));
                    let (row, k) = (row as usize, k as usize);
                    let target = &mut gradient[row * columns..(row + k) * columns];
                    let x = played.runs(sum, k, |part| part.x);
                    let product = Product { played, x: &x, dy: &dy, k, n: n as usize, col: col as usize };
                    product.play(target, columns, &mut self.scratch[..threads])?;
                }
                FinalSum::Colsum => {
                    let dy = played.runs(sum, gradient.len(), |part| Some(part.dy));
                    column_sums(played.isa, &runs_of(&dy, 0, played), gradient, true)?;
                }
                FinalSum::Tgrad => played.add_table_rows(sum, columns, gradient),
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

    fn add_table_rows(&self, sum: &Final, columns: usize, gradient: &mut [f32]) {
        let last = gradient.len() / columns - 1;
        for part in &sum.parts {
            let Some(x) = part.x else { continue };
            for lane in 0..part.lanes as usize {
                let row = (self.index(x, lane) as usize).min(last);
                let dy = self.memory.row(field_of(part.dy).index(), self.lane_row(part.dy, lane), columns);
                for (sum, &dy) in gradient[row * columns..][..columns].iter_mut().zip(dy) {
                    *sum = scalar::add(*sum, dy);
                }
            }
        }
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
        let product =
            WeightGrad { isa: self.played.isa, k: rows.len(), n: self.n, x: &x, dy: &dy, accumulate: true };
        Ok(product.run(RowsMut::new(&mut target[self.col..], columns), scratch)?)
    }
}
