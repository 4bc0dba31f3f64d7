//! Gradients of folds over lists.
//!
//! **Bits.** `ir::plan::row_ops::seg_grad` defines the results. The same functions are inlined here into code with
//! fused multiply-adds and vectors. Elements of a value are independent; sums over a list go left to right.

use super::isa::compiled_per_isa;
use super::lists::softmax_of_scores;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::numeric::{list, row, scalar};

/// A fold and the gradient `dy` of its result. Sums have one list.
#[derive(Clone, Copy, Debug)]
pub struct FoldGradient<'a> {
    /// The fold.
    pub op: Op,
    /// The index of a pick; empty for others.
    pub query: &'a [f32],
    /// The lists of the fold: values; scores and values.
    pub lists: [&'a [&'a [f32]]; 2],
    /// The gradient of the result.
    pub dy: &'a [f32],
}

/// Scratch space that grows to the elements of the largest list of scores.
#[derive(Clone, Debug, Default)]
pub struct FoldSpace {
    weights: Vec<f32>,
    slopes: Vec<f32>,
    common: Vec<f32>,
    winners: Vec<u32>,
}

compiled_per_isa! {
    /// Returns the function that computes the gradients of the values of both lists (contiguous).
    ///
    /// An empty output slice means that this gradient is not needed. Other ops leave the outputs unchanged. Calls
    /// require that the instruction set is available.
    pub fn kernel -> unsafe fn(
        fold: FoldGradient<'_>,
        outs: [&mut [f32]; 2],
        space: &mut FoldSpace,
    ) = FoldGradient::gradients
}

impl FoldGradient<'_> {
    #[inline(always)]
    fn gradients(self, [first_out, second_out]: [&mut [f32]; 2], space: &mut FoldSpace) {
        let Self { op, query, lists: [first, second], dy } = self;
        let FoldSpace { weights, slopes, common, winners } = space;
        weights.clear();
        slopes.clear();
        match op {
            Op::ListFold(ListFold::LogSumExp) => {
                softmax_of_scores(first, dy.len(), weights);
                common.clear();
                common.resize(dy.len(), 0.0);
                list::max(first, common);
                list::logsumexp_gradient(common, dy, weights);
                if !first_out.is_empty() {
                    first_out.copy_from_slice(weights);
                }
            }
            Op::ListFold(fold) => reduction(fold, first, dy, first_out, winners),
            Op::ListPick => list::pick_gradient(query[0].to_bits(), dy, first_out),
            Op::WeightedSum { softmax } => {
                let width = first.first().map_or(1, |score| score.len());
                coefficients(width, second, dy, slopes);
                if softmax {
                    softmax_of_scores(first, width, weights);
                    through_softmax(weights, slopes, width, common);
                } else {
                    first.iter().for_each(|score| weights.extend_from_slice(score));
                }
                if !first_out.is_empty() {
                    first_out.copy_from_slice(slopes);
                }
                scaled(weights, width, dy, second_out);
            }
            _ => {}
        }
    }
}

#[inline(always)]
fn reduction(fold: ListFold, values: &[&[f32]], dy: &[f32], out: &mut [f32], winners: &mut Vec<u32>) {
    let rows = out.chunks_exact_mut(dy.len().max(1));
    match fold {
        ListFold::Sum => rows.for_each(|row| row.copy_from_slice(dy)),
        ListFold::Mean => {
            let count = values.len() as f32;
            for row in rows {
                for (dx, &dy) in row.iter_mut().zip(dy) {
                    *dx = scalar::div(dy, count);
                }
            }
        }
        ListFold::Max => {
            winners.clear();
            winners.resize(dy.len(), 0);
            list::argmax(values, winners);
            for (number, row) in rows.enumerate() {
                for ((dx, &dy), &winner) in row.iter_mut().zip(dy).zip(&*winners) {
                    *dx = if winner == number as u32 { dy } else { 0.0 };
                }
            }
        }
        ListFold::LogSumExp | ListFold::ArgMax => {}
    }
}

/// Computes `dc_i = dot(dy, v_i)` if coefficients have one element, else `dc_i = dy * v_i`.
#[inline(always)]
fn coefficients(width: usize, values: &[&[f32]], dy: &[f32], made: &mut Vec<f32>) {
    made.resize(values.len() * width, 0.0);
    if width == 1 {
        // A loop, because the adapters of iterators are not always inlined into the code with fused multiply-adds.
        for (dc, value) in made.iter_mut().zip(values) {
            *dc = row::dot(dy, value);
        }
        return;
    }
    for (row, value) in made.chunks_exact_mut(width.max(1)).zip(values) {
        for (dc, (&dy, &v)) in row.iter_mut().zip(dy.iter().zip(*value)) {
            *dc = scalar::mul(dy, v);
        }
    }
}

/// Replaces `dw_i` by `ds_i = w_i * (dw_i - t)`, element by element, where `t` is the chain of `w_i * dw_i` from +0.
#[inline(always)]
fn through_softmax(weights: &[f32], dw: &mut [f32], width: usize, common: &mut Vec<f32>) {
    if width == 1 {
        let mut t = 0.0;
        for (&w, &dw) in weights.iter().zip(&*dw) {
            t = scalar::fma(w, dw, t);
        }
        for (dw, &w) in dw.iter_mut().zip(weights) {
            *dw = scalar::mul(w, scalar::sub(*dw, t));
        }
        return;
    }
    common.clear();
    common.resize(width, 0.0);
    let width = width.max(1);
    for (w, dw) in weights.chunks_exact(width).zip(dw.chunks_exact(width)) {
        for (t, (&w, &dw)) in common.iter_mut().zip(w.iter().zip(dw)) {
            *t = scalar::fma(w, dw, *t);
        }
    }
    for (w, dw) in weights.chunks_exact(width).zip(dw.chunks_exact_mut(width)) {
        for (dw, (&w, &t)) in dw.iter_mut().zip(w.iter().zip(&*common)) {
            *dw = scalar::mul(w, scalar::sub(*dw, t));
        }
    }
}

/// Computes `dv_i = c_i * dy`, where `c_i` has `width` elements.
#[inline(always)]
fn scaled(coefficients: &[f32], width: usize, dy: &[f32], out: &mut [f32]) {
    for (row, c) in out.chunks_exact_mut(dy.len().max(1)).zip(coefficients.chunks_exact(width.max(1))) {
        if let [c] = c {
            for (dv, &dy) in row.iter_mut().zip(dy) {
                *dv = scalar::mul(*c, dy);
            }
        } else {
            for (dv, (&c, &dy)) in row.iter_mut().zip(c.iter().zip(dy)) {
                *dv = scalar::mul(c, dy);
            }
        }
    }
}
