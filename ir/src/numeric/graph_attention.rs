//! Graph attention: a node attends to its neighbours by sums of numbers, in several heads at once.
//!
//! A query and a key have one number for each head. A value has as many groups of elements as there are heads. Head `h` has the
//! scores `s[i] = leaky_relu(query[h] + keys[i][h])` and the weights of [`list::softmax`]. Group `h` of the result is the chain from
//! +0 over the list of `fma(weights[i], group h of values[i], sum)`. An empty list gives +0.

use super::{Real, list, row};

/// The numbers of each head that a reader hands to [`pull`]: the maximum of its scores, the reciprocal of the sum of their
/// exponentials, and the common slope.
pub const HEAD_NUMBERS: usize = 3;

/// The elements of the row of a reader: the query, the gradient of its result, and the numbers of all heads, kind by kind.
#[must_use]
pub const fn reader_width(heads: u64, value: u64) -> u64 {
    heads * (1 + HEAD_NUMBERS as u64) + value
}

/// The weights of all items, a row of heads for each; the maxima and the factors of all heads.
fn weights_of<T: Real>(query: &[T], keys: &[&[T]], slope: T, weights: &mut Vec<T>) -> [Vec<T>; 2] {
    let heads = query.len();
    weights.clear();
    for key in keys {
        weights.extend(query.iter().zip(*key).map(|(&q, &k)| q.add(k).leaky_relu(slope)));
    }
    let (mut tops, mut factors) = (vec![T::ZERO; heads], vec![T::ZERO; heads]);
    for head in 0..heads {
        let column = || weights.iter().skip(head).step_by(heads).copied();
        let Some(top) = column().reduce(T::max) else { break };
        let total = column().map(|s| s.sub(top).exp()).reduce(T::add).unwrap_or(T::ZERO);
        (tops[head], factors[head]) = (top, total.recip());
        for weight in weights.iter_mut().skip(head).step_by(heads) {
            *weight = weight.sub(top).exp().mul(factors[head]);
        }
    }
    [tops, factors]
}

/// The groups of a value, one per head.
fn groups<T>(value: &[T], heads: usize) -> std::slice::ChunksExact<'_, T> {
    value.chunks_exact((value.len() / heads.max(1)).max(1))
}

/// One step of the sum of values: `out = fma(weight of the head, value, out)`.
pub fn add_weighted<T: Real>(weights: &[T], value: &[T], out: &mut [T]) {
    let width = (value.len() / weights.len().max(1)).max(1);
    for ((weight, value), out) in
        weights.iter().zip(groups(value, weights.len())).zip(out.chunks_exact_mut(width))
    {
        list::add_weighted(&[*weight], value, out);
    }
}

/// The attention of one query over a list.
pub fn attend<T: Real>(query: &[T], keys: &[&[T]], values: &[&[T]], slope: T, out: &mut [T]) {
    let mut weights = Vec::new();
    weights_of(query, keys, slope, &mut weights);
    out.fill(T::ZERO);
    for (weights, value) in weights.chunks_exact(query.len().max(1)).zip(values) {
        add_weighted(weights, value, out);
    }
}

/// The reverse of [`attend`] for its query. With the weights `w`, `dw[i]` = [`row::dot`] of the group of `dy` and that of `values[i]`,
/// and the common slope `t` = the chain from +0 over the list of `fma(w[i], dw[i], t)`, the gradient of the sum of query and key is
/// `slopes[i] = (w[i] * (dw[i] - t)) * leaky_relu_slope`. The gradient of the query is the sum of the slopes from +0 on.
///
/// `weights` and `slopes` receive a row of heads for each item. Returns the numbers that [`pull`] needs, kind by kind.
pub fn slopes<T: Real>(
    query: &[T],
    [keys, values]: [&[&[T]]; 2],
    dy: &[T],
    slope: T,
    [weights, slopes]: [&mut Vec<T>; 2],
) -> Vec<T> {
    let heads = query.len();
    let [tops, factors] = weights_of(query, keys, slope, weights);
    slopes.clear();
    for value in values {
        slopes.extend(groups(dy, heads).zip(groups(value, heads)).map(|(dy, value)| row::dot(dy, value)));
    }
    let mut commons = vec![T::ZERO; heads];
    for (weights, dw) in weights.chunks_exact(heads.max(1)).zip(slopes.chunks_exact(heads.max(1))) {
        for (common, (&weight, &dw)) in commons.iter_mut().zip(weights.iter().zip(dw)) {
            *common = weight.fma(dw, *common);
        }
    }
    let rows = weights.chunks_exact(heads.max(1)).zip(slopes.chunks_exact_mut(heads.max(1))).zip(keys);
    for ((weights, slopes), key) in rows {
        for (head, ds) in slopes.iter_mut().enumerate() {
            *ds = slope_of(weights[head], *ds, commons[head], query[head].add(key[head]), slope);
        }
    }
    [tops, factors, commons].concat()
}

/// The gradient of the sum `x` of a query and a key.
#[inline(always)]
fn slope_of<T: Real>(weight: T, dw: T, common: T, x: T, slope: T) -> T {
    weight.mul(dw.sub(common)).mul(x.leaky_relu_slope(slope))
}

/// The gradient of a query: the sum of the slopes of all items.
pub fn query_gradient<T: Real>(slopes: &[T], dq: &mut [T]) {
    dq.fill(T::ZERO);
    for slopes in slopes.chunks_exact(dq.len().max(1)) {
        dq.iter_mut().zip(slopes).for_each(|(dq, &ds)| *dq = dq.add(ds));
    }
}

/// The reverse of [`attend`] for one key and its value, over the readers in order. A reader is a row of [`reader_width`]
/// elements. Its weights and slopes are computed again, with the same bits. `dk = dk + slope` and
/// `dv = fma(weight, dy, dv)`, from +0. An empty output takes no gradient.
pub fn pull<T: Real>(key: &[T], value: &[T], readers: &[&[T]], slope: T, [dk, dv]: [&mut [T]; 2]) {
    dk.fill(T::ZERO);
    dv.fill(T::ZERO);
    let heads = key.len();
    let mut weights = vec![T::ZERO; heads];
    for reader in readers {
        let (query, rest) = reader.split_at(heads);
        let (dy, numbers) = rest.split_at(value.len());
        for (head, (dy, value)) in groups(dy, heads).zip(groups(value, heads)).enumerate() {
            let [top, factor, common] = [0, 1, 2].map(|kind| numbers[kind * heads + head]);
            let x = query[head].add(key[head]);
            weights[head] = x.leaky_relu(slope).sub(top).exp().mul(factor);
            if let Some(dk) = dk.get_mut(head) {
                *dk = dk.add(slope_of(weights[head], row::dot(dy, value), common, x, slope));
            }
        }
        if !dv.is_empty() {
            add_weighted(&weights, dy, dv);
        }
    }
}
