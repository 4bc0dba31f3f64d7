//! Executes row ops, lookups and losses of labels on a tile.
//!
//! A row op runs on its compiled kernel if there is one. Otherwise `plan::row_ops`, the definition, computes it.

use super::prepared::recycled;
use super::tile::{LaneFault, StageScratch, Strip, Tile};
use crate::kernels::elementwise::{Elements, ElementsMut};
use crate::kernels::rowwise::{RowResult, run as run_row};
use crate::kernels::{LabelLosses, LabelResults, Matrix, RowsMut};
use autobatch_ir::graph::Op;
use autobatch_ir::plan::row_ops::row_op;
use autobatch_ir::plan::{View, WordLimit};
use autobatch_ir::types::Type;

impl Tile<'_> {
    pub(super) fn row(&self, op: Op, sources: &[(View, Type)], dsts: &[View], space: &mut StageScratch) {
        if let ([dst], [(view, ty), rest @ ..]) = (dsts, sources) {
            let elements = |view: View, ty: Type| {
                let Strip { base, stride } = self.strip(view);
                (Elements { base, stride, single: false }, ty)
            };
            let first = elements(*view, *ty);
            let second = rest.first().map_or(first, |(view, ty)| elements(*view, *ty));
            let operands = &[first, second][..sources.len().min(2)];
            let to = self.strip(*dst);
            let rows = ElementsMut { base: to.base, stride: to.stride };
            let to = RowResult { rows, width: dst.width as usize };
            // SAFETY: the contract of the tile; a result overlaps no operand of its stage.
            if unsafe { run_row(self.step.isa, op, self.lanes.len(), operands, to) } {
                return;
            }
        }
        self.row_by_row(op, sources, dsts, space);
    }

    /// Computes a row op by its definition, lane by lane.
    fn row_by_row(&self, op: Op, sources: &[(View, Type)], dsts: &[View], space: &mut StageScratch) {
        space.strips.clear();
        let views = sources.iter().map(|(view, _)| view).chain(dsts);
        space.strips.extend(views.map(|view| self.strip(*view)));
        let (from, to) = space.strips.split_at(sources.len());
        let mut operands: Vec<(&[u32], Type)> = recycled(std::mem::take(&mut space.operands));
        let mut results: Vec<&mut [u32]> = recycled(std::mem::take(&mut space.results));
        for row in 0..self.lanes.len() {
            operands.clear();
            operands.extend(from.iter().zip(sources).map(|(strip, (view, ty))| {
                // SAFETY: the contract of the tile.
                (unsafe { slice(*strip, row, view.width as usize) }, *ty)
            }));
            results.clear();
            results.extend(to.iter().zip(dsts).map(|(strip, view)| {
                let base = strip.base.wrapping_add(row * strip.stride);
                // SAFETY: the contract of the tile; the results of a lane do not overlap.
                unsafe { std::slice::from_raw_parts_mut(base.cast::<u32>(), view.width as usize) }
            }));
            row_op(op, self.step.noise, &operands, &mut results);
        }
        (space.operands, space.results) = (recycled(operands), recycled(results));
    }

    /// Keeps the first lane whose index is not below the limit. The index is computed: bound ones were checked before.
    pub(super) fn check_indices(&self, limit: WordLimit, first: &mut Option<LaneFault>) {
        let (strip, width) = (self.strip(limit.view), limit.view.width as usize);
        for (row, lane) in self.lanes.clone().enumerate() {
            // SAFETY: the contract of the tile.
            let words = unsafe { slice(strip, row, width) };
            let step = self.step;
            let below = limit.of_lane(step.tables, step.groups, step.operands, lane as u32);
            if let Some(&found) = words.iter().find(|&&word| word >= below) {
                if first.is_none_or(|first| lane < first.lane) {
                    *first = Some(LaneFault { lane, found, limit: below });
                }
                return;
            }
        }
    }

    pub(super) fn lookup(&self, param: usize, index: View, dst: View) {
        let table = self.step.params[param];
        let width = dst.width as usize;
        let last = table.len() / width - 1;
        let (index, to) = (self.strip(index), self.strip(dst));
        for row in 0..self.lanes.len() {
            // SAFETY: the contract of the tile; the index is clamped to the last row.
            unsafe {
                let number = ((*index.base.add(row * index.stride)).to_bits() as usize).min(last);
                let from = table[number * width..].as_ptr();
                std::ptr::copy_nonoverlapping(from, to.base.add(row * to.stride), width);
            }
        }
    }
}

impl Tile<'_> {
    /// Computes the losses of all lanes together, and what the reverse takes of them.
    pub(super) fn label_loss(
        &self,
        param: usize,
        [x, label]: [View; 2],
        dsts: [Option<View>; 3],
        space: &mut StageScratch,
    ) {
        let StageScratch { scratch, label: own, labels, .. } = space;
        let (rows, width, lanes) = (self.step.params[param], x.width as usize, self.lanes.len());
        let last = (rows.len() / width - 1) as u32;
        let (x, of_labels) = (self.strip(x), self.strip(label));
        labels.clear();
        // SAFETY: the contract of the tile, here and below.
        labels.extend((0..lanes).map(|row| unsafe { slice(of_labels, row, 1)[0] }.min(last)));
        let floats = (lanes - 1) * x.stride + width;
        // SAFETY: the rows of all lanes lie within these floats, and no one writes them now.
        let operand = unsafe { std::slice::from_raw_parts(x.base, floats) };
        let x = Matrix::new(operand, x.stride, lanes, width);
        let [losses, log_sums, slopes] = dsts.map(|dst| {
            let to = self.strip(dst?);
            // SAFETY: a lane has a row of each result, which is no operand of the stage.
            Some(unsafe { RowsMut::from_raw(to.base, usize::MAX, to.stride) })
        });
        let Some(losses) = losses else { return };
        let loss = LabelLosses { isa: self.step.isa, rows, width, x, labels };
        // SAFETY: the rows are those of the lanes, as wide as the verifier checked (plan rule on losses of labels).
        unsafe { loss.run(&LabelResults { losses, log_sums, slopes }, own, scratch) };
    }
}

/// A row of words.
///
/// # Safety
/// The row exists, and no one writes it while the result lives.
unsafe fn slice<'a>(strip: Strip, row: usize, width: usize) -> &'a [u32] {
    // SAFETY: the caller guarantees the row.
    unsafe { std::slice::from_raw_parts(strip.base.wrapping_add(row * strip.stride).cast(), width) }
}
