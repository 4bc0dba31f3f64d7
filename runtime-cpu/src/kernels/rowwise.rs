//! Row ops over the lanes of a tile: the functions of `ir::numeric::row` and `loss`.
//!
//! **Bits.** The functions of `numeric` are inlined into loops compiled per instruction set. A fold of exponentials
//! pads a copy of its row with `-inf` to a whole group of lanes: `-inf` is the identity of the maximum and adds `+0` to
//! a sum of exponentials, whose lanes never hold `-0`. So vectors compute the last elements of a row too.
//!
//! [`run`] has no variant of ops that draw noise or sort, and of those that move words only two repetitions: of each number of a
//! column, which the reverse of a sum of rows is, and of a whole value. Its caller uses `plan::row_ops` for them.

use super::elementwise::{Elements, ElementsMut, keep_blocks_apart, map_block, zip_block};
use super::isa::{Isa, compiled_per_isa};
use autobatch_ir::graph::{Fold, Op, Over};
use autobatch_ir::numeric::{loss, row, scalar};
use autobatch_ir::types::{Shape, Type};
use std::slice::from_raw_parts;

/// Exponentials are computed in chunks of this many elements; a multiple of the lanes.
const MAX_PADDED: usize = 256;

/// Rows of few elements that are computed together, one in each lane of a vector.
const TOGETHER: usize = 16;
/// The maximum number of elements of such a row.
const NARROW: usize = 48;
/// The least number of rows that are worth it.
const FEW: usize = 4;

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
        let width = self.first.1.shape.width();
        // SAFETY: as for the arms below.
        if unsafe { self.run_narrow(width) } {
            return true;
        }
        let mut space = [f32::NEG_INFINITY; MAX_PADDED];
        let space = &mut space;
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
                Op::Broadcast(to) if repeats_the_whole(self.first.1.shape, to) => {
                    let whole = self.first.1.shape.elements();
                    by_rows!(self, whole, |x, out| repeat(x, out));
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

    /// Computes a fold, a softmax or the like over rows of few elements: vectors take an element of [`TOGETHER`] rows, because a
    /// fold along a row would wait for one operation after the other. Returns `false`, without writing, if the rows are wide or few,
    /// or the op is another.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn run_narrow(&self, width: usize) -> bool {
        let of_lane = self.first.1.shape.elements() / width.max(1);
        let (count, out) = (self.rows * of_lane, self.width / of_lane.max(1));
        let widest = match self.op {
            Op::Softmax | Op::LogSoftmax | Op::LogSumExp | Op::PickNegLogSoftmax | Op::ArgMax => NARROW,
            // A fold alone is faster along rows that fill a vector.
            Op::Reduce { over: Over::Last, .. } => row::LANES - 1,
            _ => 0,
        };
        if !(1..=widest).contains(&width) || count < FEW {
            return false;
        }
        if self.op == Op::PickNegLogSoftmax && self.second.is_none() {
            return false;
        }
        let mut space = [[0.0; TOGETHER]; NARROW];
        let columns = &mut space[..width];
        let Elements { base: from, stride, .. } = self.first.0;
        let next =
            |(lane, row): (usize, usize)| if row + 1 < of_lane { (lane, row + 1) } else { (lane + 1, 0) };
        let (mut begin, mut done) = ((0, 0), 0);
        while done < count {
            let rows = (count - done).min(TOGETHER);
            let mut at = begin;
            for place in 0..rows {
                // SAFETY: the row is one of the lane.
                let x = unsafe { from_raw_parts(from.add(at.0 * stride + at.1 * width), width) };
                for (column, &x) in columns.iter_mut().zip(x) {
                    // Without it compilers gather and scatter, which is slower.
                    keep_blocks_apart();
                    column[place] = x;
                }
                at = next(at);
            }
            let mut labels = [0; TOGETHER];
            if let (Op::PickNegLogSoftmax, Some(second)) = (self.op, self.second) {
                let mut at = begin;
                for label in &mut labels[..rows] {
                    // SAFETY: there is a label for each row.
                    *label = unsafe { operand(second, at.0)[at.1] }.to_bits().min(width as u32 - 1);
                    at = next(at);
                }
            }
            fold_columns(self.op, columns, &labels);
            let mut at = begin;
            for place in 0..rows {
                // SAFETY: the row is one of the lane, and no other result of it is alive.
                let to = unsafe { &mut self.result(at.0)[at.1 * out..][..out] };
                to.iter_mut().zip(&*columns).for_each(|(to, column)| *to = column[place]);
                at = next(at);
            }
            (begin, done) = (at, done + rows);
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

/// Computes an op of [`TOGETHER`] rows, whose elements stand side by side. Results take the places of the first elements.
#[inline(always)]
fn fold_columns(op: Op, columns: &mut [[f32; TOGETHER]], labels: &[u32; TOGETHER]) {
    match op {
        Op::Reduce { fold, .. } => {
            columns[0] = match fold {
                Fold::Sum => fold_lanes(columns, 0.0, scalar::add),
                Fold::Mean => {
                    let count = [columns.len() as f32; TOGETHER];
                    zip_block(fold_lanes(columns, 0.0, scalar::add), count, scalar::div)
                }
                Fold::Max => fold_lanes(columns, f32::NEG_INFINITY, scalar::max),
                Fold::Min => fold_lanes(columns, f32::INFINITY, scalar::min),
            };
        }
        Op::ArgMax => columns[0] = argmax_of_columns(columns),
        _ => softmax_of_columns(op, columns, labels),
    }
}

/// Above 0 if `x` is greater than `y`, with NaN as the greatest. In numbers, because compilers do not combine truth values in
/// vectors.
#[inline(always)]
fn exceeds(x: f32, y: f32) -> f32 {
    let greater = if x > y { 1.0 } else { 0.0 };
    let first = if x.is_nan() { 1.0 } else { 0.0 };
    let second = if y.is_nan() { 1.0 } else { 0.0 };
    greater + (first - second)
}

/// The words of the numbers of the greatest elements, by [`row::argmax`].
#[inline(always)]
fn argmax_of_columns(columns: &[[f32; TOGETHER]]) -> [f32; TOGETHER] {
    let (mut best, mut place_of) = (columns[0], [0f32; TOGETHER]);
    for (number, column) in columns.iter().enumerate().skip(1) {
        keep_blocks_apart();
        let number = f32::from_bits(number as u32);
        let later = zip_block(*column, best, exceeds);
        place_of = zip_block(later, place_of, |later, before| if later > 0.0 { number } else { before });
        best = zip_block(*column, best, |x, best| if exceeds(x, best) > 0.0 { x } else { best });
    }
    place_of
}

/// Computes a softmax, or a loss or sum that begins as one.
#[inline(always)]
fn softmax_of_columns(op: Op, columns: &mut [[f32; TOGETHER]], labels: &[u32; TOGETHER]) {
    let top = fold_lanes(columns, f32::NEG_INFINITY, scalar::max);
    let mut picked = [0.0; TOGETHER];
    if op == Op::PickNegLogSoftmax {
        for (place, (picked, &label)) in picked.iter_mut().zip(labels).enumerate() {
            *picked = columns[label as usize][place];
        }
    }
    let mut powers = [[0.0; TOGETHER]; NARROW];
    let powers = &mut powers[..columns.len()];
    for (power, column) in powers.iter_mut().zip(&*columns) {
        keep_blocks_apart();
        *power = zip_block(*column, top, |x, top| scalar::exp(scalar::sub(x, top)));
    }
    let total = fold_lanes(powers, 0.0, scalar::add);
    if op == Op::Softmax {
        let scale = map_block(total, scalar::recip);
        for (column, power) in columns.iter_mut().zip(&*powers) {
            keep_blocks_apart();
            *column = zip_block(*power, scale, |e, scale| e * scale);
        }
        return;
    }
    keep_blocks_apart();
    let log = map_block(total, scalar::log);
    if op == Op::LogSoftmax {
        for column in columns {
            keep_blocks_apart();
            *column = zip_block(zip_block(*column, top, scalar::sub), log, scalar::sub);
        }
        return;
    }
    columns[0] = match op {
        Op::LogSumExp => zip_block(top, log, |top, log| match top.abs() == f32::INFINITY {
            true => top,
            false => scalar::add(top, log),
        }),
        _ => zip_block(log, zip_block(picked, top, scalar::sub), scalar::sub),
    };
}

/// [`row::fold16`] of rows whose elements stand side by side.
#[inline(always)]
fn fold_lanes(
    columns: &[[f32; TOGETHER]],
    identity: f32,
    step: impl Fn(f32, f32) -> f32 + Copy,
) -> [f32; TOGETHER] {
    let mut lanes = [[identity; TOGETHER]; row::LANES];
    for group in columns.chunks(row::LANES) {
        for (lane, column) in lanes.iter_mut().zip(group) {
            keep_blocks_apart();
            *lane = zip_block(*lane, *column, step);
        }
    }
    // Lanes without an element hold the identity, which changes no other.
    let mut present = columns.len().min(row::LANES);
    let mut width = row::LANES / 2;
    while width > 0 {
        let (low, high) = lanes[..present].split_at_mut(width.min(present));
        for (low, high) in low.iter_mut().zip(&*high) {
            keep_blocks_apart();
            *low = zip_block(*low, *high, step);
        }
        present = present.min(width);
        width /= 2;
    }
    lanes[0]
}

/// Whether a broadcast repeats the elements of rows of one element each.
fn repeats_a_column(from: Shape, to: Shape) -> bool {
    from.width() == 1 && from.rank() == to.rank() && from.without_last() == to.without_last()
}

/// Whether a broadcast repeats all elements together.
fn repeats_the_whole(from: Shape, to: Shape) -> bool {
    let (from, to) = (from.dims(), to.dims());
    from.len() <= to.len() && from == &to[to.len() - from.len()..]
}

/// Fills a row with copies of a shorter one, twice as many at a time.
#[inline(always)]
fn repeat(x: &[f32], out: &mut [f32]) {
    let Some(first) = out.get_mut(..x.len()) else { return };
    first.copy_from_slice(x);
    let mut done = x.len();
    while 0 < done && done < out.len() {
        let more = done.min(out.len() - done);
        out.copy_within(..more, done);
        done += more;
    }
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
    unsafe { from_raw_parts(rows.base.add(lane * rows.stride), ty.shape.elements()) }
}
