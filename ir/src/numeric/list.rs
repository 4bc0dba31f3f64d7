//! List folds: elementwise reductions over the values of a list, left to right.
//!
//! Every fold of an empty list is `+0` in every element. A value or output shorter than the others
//! ends the loop early; types exclude this case. The folds are chains, not trees: an executor may
//! fold a list while it gathers the list's rows, and the order must not depend on the length.

use super::Real;
use super::row;

/// `out = values[0]`, then `out = out + values[i]`. The sum of one value keeps its bits (also a `-0`).
#[inline(always)]
pub fn sum<T: Real>(values: &[&[T]], out: &mut [T]) {
    fold(values, out, T::add);
}

/// [`sum`] divided by the number of values: one division per element, as in the mean of a row.
#[inline(always)]
pub fn mean<T: Real>(values: &[&[T]], out: &mut [T]) {
    sum(values, out);
    let count = T::from_f64(values.len().max(1) as f64);
    for result in out {
        *result = result.div(count);
    }
}

/// The maximum by [`scalar::max`](super::scalar::max): the first of ties; NaN if any element is NaN.
#[inline(always)]
pub fn max<T: Real>(values: &[&[T]], out: &mut [T]) {
    fold(values, out, T::max);
}

/// For each element, the list position of the value that [`max`] selects: the first of ties, the
/// first NaN; 0 for an empty list. The derivative of `max` flows to that value.
#[inline(always)]
pub fn argmax<T: Real>(values: &[&[T]], out: &mut [u32]) {
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let (mut best, mut winners) = ([T::ZERO; BLOCK], [0; BLOCK]);
        for (number, value) in values.iter().enumerate() {
            let Some(value) = value.get(block * BLOCK..) else { continue };
            for ((best, winner), &x) in best.iter_mut().zip(&mut winners).zip(value) {
                let wins = number == 0 || x > *best || (x.is_nan() && !best.is_nan());
                *best = if wins { x } else { *best };
                *winner = if wins { number as u32 } else { *winner };
            }
        }
        out.copy_from_slice(&winners[..out.len()]);
    }
}

/// `log(sum e^x)`, element by element: with `m` = [`max`], `m` plus the logarithm of [`sum`] of `e^(x[i] - m)`. An infinite
/// maximum is the result itself.
#[inline(always)]
pub fn logsumexp<T: Real>(values: &[&[T]], out: &mut [T]) {
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    let rest_start = blocks.len() * BLOCK;
    for (number, block) in blocks.iter_mut().enumerate() {
        logsumexp_of_block(values, number * BLOCK, block);
    }
    for (number, element) in rest.iter_mut().enumerate() {
        logsumexp_of_block(values, rest_start + number, std::array::from_mut(element));
    }
}

/// [`logsumexp`] of `N` elements from `start` on. Their number is constant, so that a kernel uses vectors.
#[inline(always)]
fn logsumexp_of_block<T: Real, const N: usize>(values: &[&[T]], start: usize, out: &mut [T; N]) {
    let rows = || values.iter().filter_map(|row| row.get(start..)?.first_chunk::<N>());
    let Some(first) = rows().next() else {
        out.fill(T::ZERO);
        return;
    };
    let mut tops = *first;
    for row in rows().skip(1) {
        for (top, &x) in tops.iter_mut().zip(row) {
            *top = top.max(x);
        }
    }
    // The first addend replaces a sum of -0, which keeps every bit.
    let mut totals = [T::ZERO.neg(); N];
    for row in rows() {
        for ((total, &top), &x) in totals.iter_mut().zip(&tops).zip(row) {
            *total = total.add(x.sub(top).exp());
        }
    }
    for ((result, top), total) in out.iter_mut().zip(tops).zip(totals) {
        let finite = top.add(total.log());
        *result = if top.abs() == T::INFINITY { top } else { finite };
    }
}

/// The reverse of [`logsumexp`] for each value, side by side: `dx = dy * w` with the weights `w` of [`softmax`]; 0 where the
/// result is -inf, because every element then is.
#[inline(always)]
pub fn logsumexp_gradient<T: Real>(tops: &[T], dy: &[T], weights: &mut [T]) {
    for row in weights.chunks_exact_mut(dy.len().max(1)) {
        for (dx, (&top, &dy)) in row.iter_mut().zip(tops.iter().zip(dy)) {
            *dx = if top == T::NEG_INFINITY { T::ZERO } else { dy.mul(*dx) };
        }
    }
}

/// The value at an index. An index out of range selects the last.
#[inline(always)]
pub fn pick<T: Real>(values: &[&[T]], index: u32, out: &mut [T]) {
    match values.get(index as usize).or(values.last()) {
        Some(value) => out.copy_from_slice(value),
        None => out.fill(T::ZERO),
    }
}

/// The reverse of [`pick`] for all values, side by side: `dy` for the one at the index, zeros for the others.
#[inline(always)]
pub fn pick_gradient<T: Real>(index: u32, dy: &[T], out: &mut [T]) {
    out.fill(T::ZERO);
    let width = dy.len().max(1);
    let last = (out.len() / width).saturating_sub(1);
    let taken = out.chunks_exact_mut(width).nth((index as usize).min(last));
    taken.into_iter().for_each(|row| row.copy_from_slice(dy));
}

/// The elements whose winners or sums are computed together: they are independent, so a kernel uses vectors.
const BLOCK: usize = 16;

#[inline(always)]
fn fold<T: Real>(values: &[&[T]], out: &mut [T], op: impl Fn(T, T) -> T) {
    let Some((first, rest)) = values.split_first() else {
        out.fill(T::ZERO);
        return;
    };
    for (result, &x) in out.iter_mut().zip(*first) {
        *result = x;
    }
    for value in rest {
        for (result, &x) in out.iter_mut().zip(*value) {
            *result = op(*result, x);
        }
    }
}

/// `out = 0`, then `out = fma(coefficient[i], values[i], out)`. A coefficient has width 1 (one number
/// for the whole value) or the width of the value (elementwise).
#[inline(always)]
pub fn weighted_sum<T: Real>(coefficients: &[&[T]], values: &[&[T]], out: &mut [T]) {
    out.fill(T::ZERO);
    for (coefficient, value) in coefficients.iter().zip(values) {
        add_weighted(coefficient, value, out);
    }
}

/// One step of [`weighted_sum`]: `out = fma(coefficient, value, out)`.
#[inline(always)]
pub fn add_weighted<T: Real>(coefficient: &[T], value: &[T], out: &mut [T]) {
    if let [c] = coefficient {
        for (result, &x) in out.iter_mut().zip(value) {
            *result = c.fma(x, *result);
        }
    } else {
        for (result, (&c, &x)) in out.iter_mut().zip(coefficient.iter().zip(value)) {
            *result = c.fma(x, *result);
        }
    }
}

/// Softmax over the list, for each element of the scores: `m` = [`max`], `e[i] = exp(s[i] - m)`,
/// `total` = [`sum`] of the `e[i]`, `weights[i] = e[i] * (1 / total)`. The weights of value `i`
/// are `weights[i * width..][..width]`, where `width` is the width of the first score.
pub fn softmax<T: Real>(scores: &[&[T]], weights: &mut [T]) {
    let width = scores.first().map_or(0, |score| score.len());
    for e in 0..width {
        let column = || scores.iter().filter_map(move |score| score.get(e).copied());
        let Some(top) = column().reduce(T::max) else {
            return;
        };
        let Some(total) = column().map(|s| s.sub(top).exp()).reduce(T::add) else {
            return;
        };
        let scale = total.recip();
        for (weight, s) in weights.iter_mut().skip(e).step_by(width).zip(column()) {
            *weight = s.sub(top).exp().mul(scale);
        }
    }
}

/// The op `wsum`: [`softmax`] of the scores over the list, then [`weighted_sum`] with those weights. Scores of width 1 give
/// additive attention; scores as wide as the values give the gates of a lattice.
pub fn softmax_weighted_sum<T: Real>(scores: &[&[T]], values: &[&[T]], out: &mut [T]) {
    let width = scores.first().map_or(0, |score| score.len());
    let mut weights = vec![T::ZERO; scores.iter().map(|score| score.len()).sum()];
    softmax(scores, &mut weights);
    let rows: Vec<&[T]> = weights.chunks(width.max(1)).collect();
    weighted_sum(&rows, values, out);
}

/// Attention of one query over a list: the [`weighted_sum`] of the values by [`attention_weights`].
pub fn attend<T: Real>(query: &[T], keys: &[&[T]], values: &[&[T]], scale: T, out: &mut [T]) {
    let mut weights = Vec::new();
    attention_weights(query, keys, scale, &mut weights);
    let columns: Vec<&[T]> = weights.chunks(1).collect();
    weighted_sum(&columns, values, out);
}

/// The weights of attention: the softmax of the row of scores. A score is a product, one chain from +0 of the elements of the
/// query and the key, times the scale: `s = fma(q[k], key[k], s)`, `score = s * scale`.
///
/// The loops call nothing that is not inlined, so that kernels compile them for their instruction set.
#[inline(always)]
pub fn attention_weights<T: Real>(query: &[T], keys: &[&[T]], scale: T, weights: &mut Vec<T>) {
    weights_and_numbers(query, keys, scale, weights);
}

/// [`attention_weights`], and the maximum of the scores and the factor of their exponentials.
#[inline(always)]
fn weights_and_numbers<T: Real>(query: &[T], keys: &[&[T]], scale: T, weights: &mut Vec<T>) -> [T; 2] {
    chains(query, keys, weights);
    for score in &mut *weights {
        *score = score.mul(scale);
    }
    row::softmax_in_place(weights)
}

/// The product of a row and each of some rows: one chain from +0 over the elements.
#[inline(always)]
pub fn chains<T: Real>(x: &[T], rows: &[&[T]], products: &mut Vec<T>) {
    products.clear();
    products.resize(rows.len(), T::ZERO);
    // Chains of several rows are independent, so they are interleaved.
    for (rows, products) in rows.chunks(TOGETHER).zip(products.chunks_mut(TOGETHER)) {
        // A shorter row ends its chain early; types exclude this case.
        let is_whole = rows.iter().all(|row| row.len() >= x.len());
        if let ([a, b, c, d, e, f, g, h], true) = (rows, is_whole) {
            let mut chains = [T::ZERO; TOGETHER];
            for (k, &x) in x.iter().enumerate() {
                for (chain, row) in chains.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *chain = x.fma(row[k], *chain);
                }
            }
            products.copy_from_slice(&chains);
        } else {
            for (product, row) in products.iter_mut().zip(rows) {
                for (&x, &element) in x.iter().zip(*row) {
                    *product = x.fma(element, *product);
                }
            }
        }
    }
}

/// The number of rows whose chains are computed together.
const TOGETHER: usize = 8;

/// The numbers of a reader besides its query and the gradient of its result: the maximum of its scores, the reciprocal of the
/// sum of their exponentials, and the common slope.
pub const READER_NUMBERS: usize = 3;

/// The reverse of attention for its query. With the weights `w` of [`attention_weights`], `dw[j]` = the chain of `dy` and
/// `values[j]`, and the common slope `t` = [`row::dot`] of `w` and `dw`, the gradient of score `j` times the scale is
/// `slopes[j] = (w[j] * (dw[j] - t)) * scale`. The gradient of the query is the [`weighted_sum`] of the keys by the slopes.
///
/// Returns what [`pull_attention`] needs besides the query and `dy`; zeros for an empty list.
pub fn attention_slopes<T: Real>(
    query: &[T],
    [keys, values]: [&[&[T]]; 2],
    dy: &[T],
    scale: T,
    [weights, slopes]: [&mut Vec<T>; 2],
) -> [T; READER_NUMBERS] {
    let [top, factor] = weights_and_numbers(query, keys, scale, weights);
    chains(dy, values, slopes);
    if keys.is_empty() {
        return [T::ZERO; READER_NUMBERS];
    }
    let common = row::dot(weights, slopes);
    for (slope, weight) in slopes.iter_mut().zip(&*weights) {
        *slope = weight.mul(slope.sub(common)).mul(scale);
    }
    [top, factor, common]
}

/// The reverse of attention for one key and its value, over the readers in order. A reader is a row: a query, the gradient `dy`
/// of its result, and the numbers of [`attention_slopes`]. Its weight `w` and slope `s` for the key are computed again, with
/// the same bits. `dk = fma(s, query, dk)` and `dv = fma(w, dy, dv)`, from +0. An empty output takes no gradient.
pub fn pull_attention<T: Real>(key: &[T], value: &[T], readers: &[&[T]], scale: T, [dk, dv]: [&mut [T]; 2]) {
    dk.fill(T::ZERO);
    dv.fill(T::ZERO);
    let chain = |x: &[T], y: &[T]| x.iter().zip(y).fold(T::ZERO, |chain, (&x, &y)| x.fma(y, chain));
    for reader in readers {
        let (query, rest) = reader.split_at(key.len());
        let (dy, numbers) = rest.split_at(value.len());
        let &[top, factor, common] = numbers else { return };
        let weight = chain(query, key).mul(scale).sub(top).exp().mul(factor);
        let slope = weight.mul(chain(dy, value).sub(common)).mul(scale);
        add_weighted(&[slope], query, dk);
        add_weighted(&[weight], dy, dv);
    }
}
