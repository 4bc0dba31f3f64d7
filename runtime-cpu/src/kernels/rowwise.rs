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
use autobatch_ir::numeric::{loss, row, scalar};
use autobatch_ir::types::Type;

/// Exponentials are computed in pieces of so many; a multiple of the lanes.
const MOST_PADDED: usize = 256;

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

/// Executes an expression on each row of the first operand and what it gives, lane by lane. Macros and not closures: a closure would be a function
/// of its own, without the features of the instruction set.
macro_rules! by_rows {
    ($work:ident, $width:expr, |$x:ident, $out:ident| $each:expr) => {{
        let (width, rows) = ($width, $work.first.1.shape.elements() / $width);
        for lane in 0..$work.rows {
            let (x, out) = (operand($work.first, lane), $work.result(lane));
            for ($x, $out) in x.chunks_exact(width).zip(out.chunks_exact_mut($work.width / rows)) {
                $each
            }
        }
    }};
}

/// As `by_rows`, with the label of each row.
macro_rules! labelled {
    ($work:ident, |$x:ident, $label:ident| $each:expr) => {{
        let Some(second) = $work.second else { return false };
        let width = $work.first.1.shape.width();
        for lane in 0..$work.rows {
            let (x, labels, out) = (operand($work.first, lane), operand(second, lane), $work.result(lane));
            for (($x, label), out) in x.chunks_exact(width).zip(labels).zip(out) {
                let $label = label.to_bits().min(width as u32 - 1);
                *out = $each;
            }
        }
    }};
}

/// Two operands give a number.
macro_rules! pairs {
    ($work:ident, |$x:ident, $y:ident| $each:expr) => {{
        let Some(second) = $work.second else { return false };
        for lane in 0..$work.rows {
            let ($x, $y) = (operand($work.first, lane), operand(second, lane));
            $work.result(lane)[0] = $each;
        }
    }};
}

impl Work {
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn run(&self) -> bool {
        let mut space = [f32::NEG_INFINITY; MOST_PADDED];
        let space = &mut space;
        let width = self.first.1.shape.width();
        // SAFETY: every arm takes as many operands as its op has, and rows as wide as their types say.
        unsafe {
            match self.op {
                Op::Reduce { fold, over } => {
                    let width = if over == Over::Last { width } else { self.first.1.shape.elements() };
                    match fold {
                        Fold::Sum => by_rows!(self, width, |x, out| out[0] = row::sum(x)),
                        Fold::Mean => by_rows!(self, width, |x, out| out[0] = row::mean(x)),
                        Fold::Max => by_rows!(self, width, |x, out| out[0] = row::max(x)),
                        Fold::Min => by_rows!(self, width, |x, out| out[0] = row::min(x)),
                    }
                }
                Op::Softmax => by_rows!(self, width, |x, out| softmax(x, out, space)),
                Op::LogSoftmax => by_rows!(self, width, |x, out| {
                    let (top, log) = max_and_log_sum(x, space);
                    for (result, &x) in out.iter_mut().zip(x) {
                        *result = scalar::sub(scalar::sub(x, top), log);
                    }
                }),
                Op::LogSumExp => by_rows!(self, width, |x, out| {
                    let (top, log) = max_and_log_sum(x, space);
                    out[0] = if top.abs() == f32::INFINITY { top } else { scalar::add(top, log) };
                }),
                Op::Norm => by_rows!(self, width, |x, out| out[0] = row::norm(x)),
                Op::LayerNorm { eps } => by_rows!(self, width, |x, out| row::layer_norm(x, eps.get(), out)),
                Op::PickNegLogSoftmax => labelled!(self, |x, label| {
                    let (top, log) = max_and_log_sum(x, space);
                    scalar::sub(log, scalar::sub(x[label as usize], top))
                }),
                Op::Hinge { margin } => labelled!(self, |x, label| loss::hinge(x, label, margin.get())),
                Op::Dot => pairs!(self, |x, y| row::dot(x, y)),
                Op::CrossEntropy => pairs!(self, |x, target| {
                    let (top, log) = max_and_log_sum(x, space);
                    row::fold16_pairs(x, target, |lane, x, t| {
                        let more = scalar::fma(t, scalar::sub(log, scalar::sub(x, top)), lane);
                        if t == 0.0 { lane } else { more }
                    })
                }),
                Op::KlDiv => pairs!(self, |x, y| loss::kl_div(x, y)),
                Op::Mse => pairs!(self, |x, y| loss::mse(x, y)),
                Op::Bce => pairs!(self, |x, y| loss::bce(x, y)),
                _ => return false,
            }
        }
        true
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

/// [`row::max_and_log_sum`], the exponentials computed in whole groups.
#[inline(always)]
fn max_and_log_sum(x: &[f32], space: &mut [f32; MOST_PADDED]) -> (f32, f32) {
    let top = row::max(x);
    let mut lanes = [0f32; row::LANES];
    for part in x.chunks(MOST_PADDED) {
        let whole = part.len().next_multiple_of(row::LANES);
        space[..part.len()].copy_from_slice(part);
        space[part.len()..whole].fill(f32::NEG_INFINITY);
        for x in &mut space[..whole] {
            *x = scalar::exp(scalar::sub(*x, top));
        }
        for group in space[..whole].as_chunks::<{ row::LANES }>().0 {
            for (lane, &e) in lanes.iter_mut().zip(group) {
                *lane = scalar::add(*lane, e);
            }
        }
    }
    (top, scalar::log(row::combine(lanes, scalar::add)))
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
        *x = scalar::exp(scalar::sub(*x, top));
    }
    let scale = scalar::recip(row::sum(&space[..whole]));
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

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::numeric::same_bits;
    use autobatch_ir::plan::row_ops::{Noise, row_op};
    use autobatch_ir::types::{DType, INDEX, Shape};

    /// Rows with now and then a number that is none.
    fn rows(width: usize, wild: bool) -> Vec<f32> {
        let strange = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 1e-40, 3e38];
        let number = |i: usize| match (i * 31) % 97 {
            n if wild && n < strange.len() => strange[n],
            _ => (i as f32 * 0.37).sin() * 6.0,
        };
        (0..3 * width).map(number).collect()
    }

    #[test]
    fn row_ops_on_every_instruction_set_have_the_bits_of_the_definitions() {
        let one = [Op::Softmax, Op::LogSoftmax, Op::LogSumExp, Op::Norm, Op::LayerNorm { eps: 1e-5.into() }];
        let folds = [Fold::Sum, Fold::Mean, Fold::Max, Fold::Min];
        let folds = folds.map(|fold| Op::Reduce { fold, over: Over::Last });
        let labelled = [Op::PickNegLogSoftmax, Op::Hinge { margin: 1.0.into() }];
        let pairs = [Op::Dot, Op::CrossEntropy, Op::KlDiv, Op::Mse, Op::Bce];
        for (width, wild) in [(1, false), (5, true), (16, false), (37, true), (100, false), (2000, true)] {
            let ty = Type::new(DType::F32, Shape::new(&[width as u32]).expect("a shape"));
            let (x, y) = (rows(width, wild), rows(width + 1, wild));
            let labels = [0, 7, width as u32 - 1].map(f32::from_bits);
            for op in one.into_iter().chain(folds).chain(labelled).chain(pairs) {
                let out =
                    if matches!(op, Op::Softmax | Op::LogSoftmax | Op::LayerNorm { .. }) { width } else { 1 };
                let second = match op {
                    op if labelled.contains(&op) => (&labels[..], 1, INDEX),
                    _ => (&y[..], width, ty),
                };
                let count = if pairs.contains(&op) || labelled.contains(&op) { 2 } else { 1 };
                let sources = [(&x[..], width, ty), second];
                let mut expected = vec![0f32; 3 * out];
                for (lane, out) in expected.chunks_exact_mut(out).enumerate() {
                    let operands = sources.map(|(x, width, ty)| {
                        (bytemuck::cast_slice::<f32, u32>(&x[lane * width..(lane + 1) * width]), ty)
                    });
                    row_op(op, Noise::Off, &operands[..count], &mut [bytemuck::cast_slice_mut(out)]);
                }
                for isa in Isa::available() {
                    let mut found = vec![9f32; 3 * out];
                    let operands = sources
                        .map(|(x, stride, ty)| (Elements { base: x.as_ptr(), stride, single: false }, ty));
                    let to = (ElementsMut { base: found.as_mut_ptr(), stride: out }, out);
                    // SAFETY: three rows of each exist, and the instruction set is available.
                    let known = unsafe { run(isa, op, 3, &operands[..count], to) };
                    let same = found.iter().zip(&expected).all(|(&a, &b)| same_bits(a, b));
                    assert!(known && same, "{op:?} {isa:?} {width}: {found:?}, not {expected:?}");
                }
            }
        }
    }
}
