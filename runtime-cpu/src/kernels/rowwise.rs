//! Row ops over the lanes of a tile: the functions of `ir::numeric::row` and `loss`, compiled once for each instruction set.
//!
//! **Bits.** The generic functions themselves are inlined into loops with the features of each instruction set. Where a function is a fold of
//! exponentials, a row is first copied to where it ends at a whole group of lanes, filled up with `-inf`: the identity of the maximum, and a
//! `+0` in every sum of exponentials (whose lanes never hold `-0`). So the last elements of a row are computed in vectors too.
//!
//! Ops that only move words, draw noise or search an order have no twin here: [`run`] leaves them to `plan::row_ops`.

use super::elementwise::{Elements, ElementsMut};
use super::isa::Isa;
use autobatch_ir::graph::{Fold, Op, Over};
use autobatch_ir::numeric::{loss, row};
use autobatch_ir::types::Type;

/// Rows up to this width are filled up.
const MOST_PADDED: usize = 1024;

/// Computes `op` for `rows` lanes and says so, or does nothing if the op has no twin here.
///
/// # Safety
/// `isa` is available. `sources` are the operands of `op`, not `single`, each with `rows` rows of initialised words of its type which nobody
/// writes meanwhile. The rows of `out`, `width` wide as the op says, are writable, initialised and touched by nobody else.
pub unsafe fn run(
    isa: Isa,
    op: Op,
    rows: usize,
    sources: &[(Elements, Type)],
    (out, width): (ElementsMut, usize),
) -> bool {
    let &[first, ..] = sources else { return false };
    let work = Work { op, rows, first, second: sources.get(1).copied(), out, width };
    match isa {
        // SAFETY: the caller vouches for the instruction set and for the memory.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { run_avx512(&work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(&work) },
        // SAFETY: as above.
        _ => unsafe { work.run() },
    }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn run_avx512(work: &Work) -> bool {
    // SAFETY: the caller vouches for the memory.
    unsafe { work.run() }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2(work: &Work) -> bool {
    // SAFETY: the caller vouches for the memory.
    unsafe { work.run() }
}

struct Work {
    op: Op,
    rows: usize,
    first: (Elements, Type),
    second: Option<(Elements, Type)>,
    out: ElementsMut,
    width: usize,
}

/// A row filled up with `-inf` to whole groups of lanes, or the row itself if it is very wide.
#[inline(always)]
fn padded<'a>(x: &'a [f32], space: &'a mut [f32; MOST_PADDED]) -> &'a [f32] {
    let whole = x.len().next_multiple_of(row::LANES);
    if whole > MOST_PADDED || whole == x.len() {
        return x;
    }
    space[..x.len()].copy_from_slice(x);
    space[x.len()..whole].fill(f32::NEG_INFINITY);
    &space[..whole]
}

impl Work {
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn run(&self) -> bool {
        let mut space = [f32::NEG_INFINITY; MOST_PADDED];
        let space = &mut space;
        // SAFETY: every arm takes as many operands as its op has, and rows as wide as their types say.
        unsafe {
            match self.op {
                Op::Reduce { fold, over } => self.reduce(fold, over, space),
                Op::Softmax => self.by_rows(|x, out| softmax(x, out, space)),
                Op::LogSoftmax => self.by_rows(|x, out| {
                    let (top, log) = row::max_and_log_sum(padded(x, space));
                    for (result, &x) in out.iter_mut().zip(x) {
                        *result = (x - top) - log;
                    }
                }),
                Op::LogSumExp => self.by_rows(|x, out| out[0] = row::logsumexp(padded(x, space))),
                Op::Norm => self.by_rows(|x, out| out[0] = row::norm(x)),
                Op::LayerNorm { eps } => self.by_rows(|x, out| row::layer_norm(x, eps.get(), out)),
                Op::PickNegLogSoftmax => self.labelled(|x, label| {
                    let label = (label as usize).min(x.len() - 1) as u32;
                    loss::pick_neg_log_softmax(padded(x, space), label)
                }),
                Op::Hinge { margin } => self.labelled(|x, label| loss::hinge(x, label, margin.get())),
                Op::Dot => self.pairs(row::dot),
                Op::CrossEntropy => self.pairs(loss::cross_entropy),
                Op::KlDiv => self.pairs(loss::kl_div),
                Op::Mse => self.pairs(loss::mse),
                Op::Bce => self.pairs(loss::bce),
                _ => return false,
            }
        }
        true
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn reduce(&self, fold: Fold, over: Over, space: &mut [f32; MOST_PADDED]) {
        let fold = |x: &[f32]| match fold {
            Fold::Sum => row::sum(x),
            Fold::Mean => row::mean(x),
            Fold::Max => row::max(padded(x, space)),
            Fold::Min => row::min(x),
        };
        // SAFETY: as for this function.
        unsafe { self.numbers(fold, over) };
    }

    /// One number per row of the operand, or per operand.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn numbers(&self, mut fold: impl FnMut(&[f32]) -> f32, over: Over) {
        for lane in 0..self.rows {
            // SAFETY: as for this function.
            let (x, out) = unsafe { (operand(self.first, lane), self.result(lane)) };
            let width = if over == Over::Last { self.first.1.shape.width() } else { x.len() };
            for (x, out) in x.chunks_exact(width).zip(out) {
                *out = fold(x);
            }
        }
    }

    /// Each row of the operand gives a row of the result.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn by_rows(&self, mut each: impl FnMut(&[f32], &mut [f32])) {
        let shape = self.first.1.shape;
        let (width, results) = (shape.width(), self.width / shape.rows());
        for lane in 0..self.rows {
            // SAFETY: as for this function.
            let (x, out) = unsafe { (operand(self.first, lane), self.result(lane)) };
            for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(results)) {
                each(x, out);
            }
        }
    }

    /// Each row of the operand and its label give a number.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn labelled(&self, mut each: impl FnMut(&[f32], u32) -> f32) {
        let Some(second) = self.second else { return };
        let width = self.first.1.shape.width();
        for lane in 0..self.rows {
            // SAFETY: as for this function.
            let (x, labels, out) =
                unsafe { (operand(self.first, lane), operand(second, lane), self.result(lane)) };
            for ((x, label), out) in x.chunks_exact(width).zip(labels).zip(out) {
                *out = each(x, label.to_bits());
            }
        }
    }

    /// Two operands give a number.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn pairs(&self, each: impl Fn(&[f32], &[f32]) -> f32) {
        let Some(second) = self.second else { return };
        for lane in 0..self.rows {
            // SAFETY: as for this function.
            let (x, y, out) =
                unsafe { (operand(self.first, lane), operand(second, lane), self.result(lane)) };
            out[0] = each(x, y);
        }
    }

    /// The result of a lane.
    ///
    /// # Safety
    /// As for [`run`]; one result at a time of each lane.
    #[inline(always)]
    unsafe fn result<'a>(&self, lane: usize) -> &'a mut [f32] {
        // SAFETY: the caller vouches for the rows of the result.
        unsafe { std::slice::from_raw_parts_mut(self.out.base.add(lane * self.out.stride), self.width) }
    }
}

/// [`row::softmax`], filled up.
#[inline(always)]
fn softmax(x: &[f32], out: &mut [f32], space: &mut [f32; MOST_PADDED]) {
    let whole = x.len().next_multiple_of(row::LANES);
    if whole > MOST_PADDED {
        return row::softmax(x, out);
    }
    space[..x.len()].copy_from_slice(x);
    space[x.len()..whole].fill(f32::NEG_INFINITY);
    let top = row::max(&space[..whole]);
    for x in &mut space[..whole] {
        *x = autobatch_ir::numeric::scalar::exp(*x - top);
    }
    let scale = autobatch_ir::numeric::scalar::recip(row::sum(&space[..whole]));
    for (result, &e) in out.iter_mut().zip(&space[..whole]) {
        *result = e * scale;
    }
}

/// # Safety
/// The lane's row exists, as wide as its type says, and nobody writes it meanwhile.
#[inline(always)]
unsafe fn operand<'a>((rows, ty): (Elements, Type), lane: usize) -> &'a [f32] {
    // SAFETY: the caller vouches for the row.
    unsafe { std::slice::from_raw_parts(rows.base.add(lane * rows.stride), ty.shape.elements()) }
}
