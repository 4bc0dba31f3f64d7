//! Row reductions: folds of the elements of one value, over 16 virtual lanes.
//!
//! # The fold
//! Element `i` belongs to lane `i % 16`. Each lane starts from the identity of the fold and takes its elements in ascending
//! order. A tree then combines the lanes: `l[i] = l[i] op l[i + 8]` for `i < 8`, then `l[i] op l[i + 4]` for `i < 4`, then
//! `l[0] op l[2]`, `l[1] op l[3]`, and the result is `l[0] op l[1]`. One AVX-512 register, two of AVX2, four of NEON and
//! this scalar code implement it literally and agree bit for bit.
//!
//! Padding the last, partial group changes nothing if the padding is neutral for every lane:
//! * `sum`, `sum_of_squares` and other lanes that only add: pad with `+0`. Such a lane starts at
//!   `+0`, adds numbers or squares, and hence never holds `-0`.
//! * `dot`: pad one operand with `-0` and the other with `+0`. A tiny negative product underflows
//!   to `-0` in the fma, so a lane may hold `-0`, which `fma(+0, +0, lane)` would change to `+0`.
//! * `max`, `min`: pad with the identity; on ties the lane wins.
//!
//! # Empty rows
//! The sum is 0, the mean 0, the maximum `-inf`, the minimum `+inf`, `argmax` 0, `logsumexp` `-inf`.

use super::Real;

/// The number of virtual lanes.
pub const LANES: usize = 16;

/// Combines `LANES` lanes by the fixed tree.
#[inline(always)]
pub fn combine<T: Real>(mut lanes: [T; LANES], op: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = op(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The fold of one row: `lane = step(lane, element)` from `identity`, then the tree with `op`.
#[inline(always)]
pub fn fold16<T: Real>(row: &[T], identity: T, step: impl Fn(T, T) -> T, op: impl Fn(T, T) -> T) -> T {
    let mut lanes = [identity; LANES];
    let (groups, rest) = row.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            lanes[lane] = step(lanes[lane], group[lane]);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, x);
    }
    combine(lanes, op)
}

/// The elementwise fold of two rows, up to the end of the shorter one: `lane = step(lane, a, b)`, then the tree with `+`.
#[inline(always)]
pub fn fold16_pairs<T: Real>(a: &[T], b: &[T], step: impl Fn(T, T, T) -> T) -> T {
    let length = a.len().min(b.len());
    let mut lanes = [T::ZERO; LANES];
    let (groups_a, rest_a) = a[..length].as_chunks::<LANES>();
    let (groups_b, rest_b) = b[..length].as_chunks::<LANES>();
    for (x, y) in groups_a.iter().zip(groups_b) {
        for lane in 0..LANES {
            lanes[lane] = step(lanes[lane], x[lane], y[lane]);
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(rest_a.iter().zip(rest_b)) {
        *lane = step(*lane, x, y);
    }
    combine(lanes, T::add)
}

/// The length as the divisor of a mean (rounded above 2^24 in f32). It is at least 1, so the mean of an empty row is 0.
#[inline(always)]
fn count<T: Real>(row: &[T]) -> T {
    T::from_f64(row.len().max(1) as f64)
}

/// The sum.
#[inline(always)]
pub fn sum<T: Real>(row: &[T]) -> T {
    fold16(row, T::ZERO, T::add, T::add)
}

/// [`sum`] divided by the length: one division, not a product with a reciprocal.
#[inline(always)]
pub fn mean<T: Real>(row: &[T]) -> T {
    sum(row).div(count(row))
}

/// The maximum by [`scalar::max`](super::scalar::max): NaN if any element is NaN. Among zeros with
/// different signs the first in fold order wins (lanes before elements), which fixes the bits.
#[inline(always)]
pub fn max<T: Real>(row: &[T]) -> T {
    fold16(row, T::NEG_INFINITY, T::max, T::max)
}

/// The minimum by [`scalar::min`](super::scalar::min): NaN if any element is NaN.
#[inline(always)]
pub fn min<T: Real>(row: &[T]) -> T {
    fold16(row, T::INFINITY, T::min, T::min)
}

/// Whether `a` precedes `b` in a descending order with NaN as the greatest number. `+0` equals `-0`, NaN equals NaN.
#[inline(always)]
fn exceeds<T: Real>(a: T, b: T) -> bool {
    a > b || (a.is_nan() && !b.is_nan())
}

/// The index of the maximum: the first of ties (`+0` ties with `-0`), the first NaN if there is one.
#[inline(always)]
pub fn argmax<T: Real>(row: &[T]) -> u32 {
    let mut best = 0;
    for (i, &x) in row.iter().enumerate() {
        if exceeds(x, row[best]) {
            best = i;
        }
    }
    best as u32
}

/// The indices of the `out.len()` greatest elements in descending order; ties by ascending index, NaN before all numbers.
/// Returns the number of indices written, which is less if the row is shorter.
pub fn top_k<T: Real>(row: &[T], out: &mut [u32]) -> usize {
    let max = out.len().min(row.len());
    let mut filled = 0;
    for (i, &x) in row.iter().enumerate() {
        // Most elements of a long row are behind the last one.
        if filled == max && out[..filled].last().is_none_or(|&last| !exceeds(x, row[last as usize])) {
            continue;
        }
        let place = out[..filled].partition_point(|&j| !exceeds(x, row[j as usize]));
        if place < max {
            filled = (filled + 1).min(max);
            out[place..filled].rotate_right(1);
            out[place] = i as u32;
        }
    }
    filled
}

/// Softmax: `e[i] = exp(x[i] - max)`, `out[i] = e[i] * (1 / sum(e))`.
///
/// One reciprocal per row saves a division per element and costs a second rounding. A row with a
/// NaN, with `+inf`, or of `-inf` only, gives NaN.
#[inline(always)]
pub fn softmax<T: Real>(row: &[T], out: &mut [T]) {
    let top = max(row);
    let length = out.len().min(row.len());
    for (result, &x) in out.iter_mut().zip(row) {
        *result = x.sub(top).exp();
    }
    let scale = sum(&out[..length]).recip();
    for result in &mut out[..length] {
        *result = result.mul(scale);
    }
}

/// [`softmax`] of a row that takes the result. Returns the maximum and the factor of the exponentials.
#[inline(always)]
pub fn softmax_in_place<T: Real>(row: &mut [T]) -> [T; 2] {
    let top = max(row);
    for x in &mut *row {
        *x = x.sub(top).exp();
    }
    let scale = sum(row).recip();
    for x in row {
        *x = x.mul(scale);
    }
    [top, scale]
}

/// The parts of a logsumexp: the maximum, and the logarithm of `sum(exp(x[i] - max))`.
#[inline(always)]
pub fn max_and_log_sum<T: Real>(row: &[T]) -> (T, T) {
    let top = max(row);
    let total = fold16(row, T::ZERO, |lane, x| lane.add(x.sub(top).exp()), T::add);
    (top, total.log())
}

/// `max + log(sum(exp(x[i] - max)))`; an infinite maximum is the result itself.
#[inline(always)]
pub fn logsumexp<T: Real>(row: &[T]) -> T {
    let (top, log) = max_and_log_sum(row);
    let finite = top.add(log);
    if top.abs() == T::INFINITY { top } else { finite }
}

/// `out[i] = (x[i] - max) - log(sum(exp(x[j] - max)))`: two roundings after the logarithm.
#[inline(always)]
pub fn log_softmax<T: Real>(row: &[T], out: &mut [T]) {
    let (top, log) = max_and_log_sum(row);
    for (result, &x) in out.iter_mut().zip(row) {
        *result = x.sub(top).sub(log);
    }
}

/// The sum of squares: `lane = fma(x, x, lane)`.
#[inline(always)]
pub fn sum_of_squares<T: Real>(row: &[T]) -> T {
    fold16(row, T::ZERO, |lane, x| x.fma(x, lane), T::add)
}

/// The Euclidean norm: the square root of [`sum_of_squares`]. It does not scale, so it overflows for elements above 1.8e19.
#[inline(always)]
pub fn norm<T: Real>(row: &[T]) -> T {
    sum_of_squares(row).sqrt()
}

/// The inner product of two values: `lane = fma(a, b, lane)`. Both operands are rows and no weight
/// can be packed, so this is a row reduction and not a product with parameters.
#[inline(always)]
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    fold16_pairs(a, b, |lane, x, y| x.fma(y, lane))
}

/// The mean and the factor `1 / sqrt(variance + eps)` of a layer norm; the variance is the mean of
/// `(x - mean)^2` (second pass, by fma lanes, divided by the length).
#[inline(always)]
pub fn moments<T: Real>(row: &[T], eps: T) -> (T, T) {
    let centre = mean(row);
    let squares = fold16(
        row,
        T::ZERO,
        |lane, x| {
            let d = x.sub(centre);
            d.fma(d, lane)
        },
        T::add,
    );
    (centre, squares.div(count(row)).add(eps).rsqrt())
}

/// Layer norm without gain and bias, which are `mul` and `add`: `out[i] = (x[i] - mean) * factor` with [`moments`].
#[inline(always)]
pub fn layer_norm<T: Real>(row: &[T], eps: T, out: &mut [T]) {
    let (centre, factor) = moments(row, eps);
    for (result, &x) in out.iter_mut().zip(row) {
        *result = x.sub(centre).mul(factor);
    }
}
