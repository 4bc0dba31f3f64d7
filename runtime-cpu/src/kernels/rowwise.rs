//! Row ops over the lanes of a tile: the functions of `ir::numeric::row` and `loss`.
//!
//! **Bits.** The functions of `numeric` are inlined into loops compiled per instruction set. A fold of exponentials
//! pads a copy of its row with `-inf` to a whole group of lanes: `-inf` is the identity of the maximum and adds `+0` to
//! a sum of exponentials, whose lanes never hold `-0`. So vectors compute the last elements of a row too.
//!
//! [`run`] has no variant of ops that draw noise or sort, and of those that move words only the repetition of each number of a
//! column, which the reverse of a sum of rows is. Its caller uses `plan::row_ops` for them.

use super::elementwise::{Elements, ElementsMut};
use super::isa::{Isa, compiled_per_isa};
use autobatch_ir::graph::{Fold, Op, Over};
use autobatch_ir::numeric::{loss, row, scalar};
use autobatch_ir::types::{Shape, Type};

/// Exponentials are computed in chunks of this many elements; a multiple of the lanes.
const MAX_PADDED: usize = 256;

/// The rows that a row op writes.
#[derive(Clone, Copy, Debug)]
pub struct RowResult {
    /// The rows.
    pub rows: ElementsMut,
    /// Elements of a row.
    pub width: usize,
}

/// Computes `op` for `rows` lanes. Returns `false`, without writing, if the op has no variant here.
///
/// # Safety
/// `isa` is available. `sources` are the operands of `op`, not `single`. Each has `rows` rows of initialised words of
/// its type, which no one writes during the call. The rows of `out`, as wide as the op says, are writable, initialised
/// and not accessed by anyone else.
pub unsafe fn run(isa: Isa, op: Op, rows: usize, sources: &[(Elements, Type)], out: RowResult) -> bool {
    let &[first, ..] = sources else { return false };
    let work = Work { op, rows, first, second: sources.get(1).copied(), out: out.rows, width: out.width };
    // SAFETY: the caller guarantees the instruction set and the memory.
    unsafe { compiled(isa)(&work) }
}

compiled_per_isa! {
    fn compiled -> unsafe fn(work: &Work) -> bool = Work::run
}

/// The arguments of [`run`], whose contract holds as long as the value exists.
struct Work {
    op: Op,
    rows: usize,
    first: (Elements, Type),
    second: Option<(Elements, Type)>,
    out: ElementsMut,
    width: usize,
}

/// Evaluates an expression for each row of the first operand and its result row, lane by lane. This is a macro because
/// a closure would be a separate function without the features of the instruction set.
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

/// Like `by_rows`, with the label of each row.
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

/// Evaluates an expression that maps two operands to a number.
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
    #[inline(always)]
    fn run(&self) -> bool {
        let mut space = [f32::NEG_INFINITY; MAX_PADDED];
        let space = &mut space;
        let width = self.first.1.shape.width();
        // SAFETY: every arm reads exactly the operands of its op, in rows as wide as their types.
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
                Op::Broadcast(to) if repeats_a_column(self.first.1.shape, to) => {
                    by_rows!(self, 1, |x, out| out.fill(x[0]));
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
    /// As for [`run`]. At most one result of each lane is alive.
    #[inline(always)]
    unsafe fn result<'a>(&self, lane: usize) -> &'a mut [f32] {
        // SAFETY: the caller guarantees the rows of the result.
        unsafe { std::slice::from_raw_parts_mut(self.out.base.add(lane * self.out.stride), self.width) }
    }
}

/// Whether a broadcast repeats the elements of rows of one element each.
fn repeats_a_column(from: Shape, to: Shape) -> bool {
    from.width() == 1 && from.rank() == to.rank() && from.without_last() == to.without_last()
}

/// Computes [`row::max_and_log_sum`] with exponentials in whole groups of lanes.
#[inline(always)]
fn max_and_log_sum(x: &[f32], space: &mut [f32; MAX_PADDED]) -> (f32, f32) {
    let top = row::max(x);
    let mut lanes = [0f32; row::LANES];
    for part in x.chunks(MAX_PADDED) {
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

/// Computes [`row::softmax`] of a padded copy of the row.
#[inline(always)]
fn softmax(x: &[f32], out: &mut [f32], space: &mut [f32; MAX_PADDED]) {
    let whole = x.len().next_multiple_of(row::LANES);
    if whole > MAX_PADDED {
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
/// The lane's row exists, as wide as its type, and no one writes it while the result lives.
#[inline(always)]
unsafe fn operand<'a>(of: (Elements, Type), lane: usize) -> &'a [f32] {
    let (rows, ty) = of;
    // SAFETY: the caller guarantees the row.
    unsafe { std::slice::from_raw_parts(rows.base.add(lane * rows.stride), ty.shape.elements()) }
}
