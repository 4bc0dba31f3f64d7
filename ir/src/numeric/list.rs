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
    for (e, result) in out.iter_mut().enumerate() {
        let mut best = 0;
        for (i, value) in values.iter().enumerate() {
            if let (Some(&x), Some(&y)) = (value.get(e), values[best].get(e))
                && (x > y || (x.is_nan() && !y.is_nan()))
            {
                best = i;
            }
        }
        *result = best as u32;
    }
}

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
    weights.clear();
    weights.resize(keys.len(), T::ZERO);
    // Chains of several keys are independent, so they are interleaved.
    for (keys, scores) in keys.chunks(KEYS).zip(weights.chunks_mut(KEYS)) {
        // A shorter key ends its chain early; types exclude this case.
        let is_whole = keys.iter().all(|key| key.len() >= query.len());
        if let ([a, b, c, d, e, f, g, h], true) = (keys, is_whole) {
            let mut chains = [T::ZERO; KEYS];
            for (k, &q) in query.iter().enumerate() {
                for (chain, key) in chains.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *chain = q.fma(key[k], *chain);
                }
            }
            scores.copy_from_slice(&chains);
        } else {
            for (score, key) in scores.iter_mut().zip(keys) {
                for (&q, &key) in query.iter().zip(*key) {
                    *score = q.fma(key, *score);
                }
            }
        }
    }
    for score in &mut *weights {
        *score = score.mul(scale);
    }
    row::softmax_in_place(weights);
}

/// The number of keys whose chains are computed together.
const KEYS: usize = 8;
