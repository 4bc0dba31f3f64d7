//! The reverse of graph attention: for queries, and for the keys and values that they attend to.

use super::sums::{dots, weighted_sum};
use super::{Attending, GraphAttention, GraphSpace, exp_all, leaky, row_of, weigh};
use crate::kernels::attention::{Strided, StridedMut};
use autobatch_ir::numeric::graph_attention::HEAD_NUMBERS;
use autobatch_ir::numeric::{Real, scalar};
use std::slice::from_raw_parts_mut;

/// # Safety
/// As for [`GraphAttention::compute_unchecked`].
#[inline(always)]
pub(super) unsafe fn gradient(
    a: &Attending<'_, '_>,
    heads: usize,
    dy: Strided,
    [out, readers]: [Option<StridedMut>; 2],
    space: &mut GraphSpace,
) {
    // SAFETY: as for this function.
    unsafe { weigh(a, heads, space) };
    let GraphSpace { weights, sums, numbers, slopes } = space;
    let (mut weights, mut sums) = (&weights[..], &sums[..]);
    for (lane, (&[_, values], numbers)) in
        a.lists.iter().zip(numbers.chunks_exact_mut(HEAD_NUMBERS * heads)).enumerate()
    {
        let (own, after) = weights.split_at(values.len() * heads);
        let (own_sums, sums_after) = sums.split_at(values.len() * heads);
        (weights, sums) = (after, sums_after);
        // SAFETY: the gradient of the lane and the values of the list exist.
        unsafe { dots(row_of(dy, lane), values, a.values, heads, slopes) };
        let commons = &mut numbers[2 * heads..];
        for (weights, dw) in own.chunks_exact(heads).zip(slopes.chunks_exact(heads)) {
            for (common, (&weight, &dw)) in commons.iter_mut().zip(weights.iter().zip(dw)) {
                *common = scalar::fma(weight, dw, *common);
            }
        }
        if let Some(out) = out {
            // SAFETY: the result of the lane is writable.
            let dq = unsafe { from_raw_parts_mut(out.row(lane), heads) };
            dq.fill(0.0);
            let rows =
                own.chunks_exact(heads).zip(slopes.chunks_exact(heads)).zip(own_sums.chunks_exact(heads));
            for ((weights, dw), sums) in rows {
                for head in 0..heads {
                    let ds = slope_of(weights[head], dw[head], commons[head], sums[head], a.slope);
                    dq[head] = scalar::add(dq[head], ds);
                }
            }
        }
        if let Some(readers) = readers {
            // SAFETY: the query, the gradient and the row of the lane exist.
            unsafe {
                let (query, dy, to) = (row_of(a.query, lane), row_of(dy, lane), readers.row(lane));
                std::ptr::copy_nonoverlapping(query.as_ptr(), to, heads);
                std::ptr::copy_nonoverlapping(dy.as_ptr(), to.add(heads), dy.len());
                std::ptr::copy_nonoverlapping(numbers.as_ptr(), to.add(heads + dy.len()), numbers.len());
            }
        }
    }
}

/// The gradient of the sum of a query and a key.
#[inline(always)]
fn slope_of(weight: f32, dw: f32, common: f32, sum: f32, slope: f32) -> f32 {
    scalar::mul(scalar::mul(weight, scalar::sub(dw, common)), sum.leaky_relu_slope(slope))
}

/// # Safety
/// As for [`GraphAttention::compute_unchecked`]; the attention is a pull.
#[inline(always)]
pub(super) unsafe fn pull(attention: &GraphAttention<'_, '_>, heads: usize, space: &mut GraphSpace) {
    let &GraphAttention::Pull { key, value, readers, lists, slope, out: [key_out, value_out] } = attention
    else {
        return;
    };
    let dys = readers.part(heads, value.width);
    let numbers = readers.part(heads + value.width, HEAD_NUMBERS * heads);
    let GraphSpace { weights, sums, slopes, .. } = space;
    let items: usize = lists.iter().map(|list| list.len()).sum();
    for buffer in [&mut *weights, sums] {
        buffer.clear();
        buffer.resize(items * heads, 0.0);
    }
    let mut rest = weights.chunks_exact_mut(heads).zip(sums.chunks_exact_mut(heads));
    for (lane, list) in lists.iter().enumerate() {
        // SAFETY: the key and the readers exist.
        let key = unsafe { &row_of(key, lane)[..heads] };
        for (item, (weights, sums)) in (0..list.len()).zip(rest.by_ref()) {
            // SAFETY: as above.
            let (query, tops) = unsafe {
                let reader = list.row(item) as usize;
                (&row_of(readers.part(0, heads), reader)[..heads], &row_of(numbers, reader)[..heads])
            };
            for head in 0..heads {
                sums[head] = scalar::add(query[head], key[head]);
                weights[head] = scalar::sub(leaky(sums[head], slope), tops[head]);
            }
        }
    }
    exp_all(weights);
    let (mut weights, mut sums) = (&mut weights[..], &sums[..]);
    for (lane, &list) in lists.iter().enumerate() {
        let (own, after) = weights.split_at_mut(list.len() * heads);
        let (own_sums, sums_after) = sums.split_at(list.len() * heads);
        (weights, sums) = (after, sums_after);
        for (item, weights) in own.chunks_exact_mut(heads).enumerate() {
            // SAFETY: the reader exists.
            let numbers = unsafe { row_of(numbers, list.row(item) as usize) };
            for (weight, &factor) in weights.iter_mut().zip(&numbers[heads..]) {
                *weight = scalar::mul(*weight, factor);
            }
        }
        if let Some(out) = key_out {
            // SAFETY: the value of the lane and the readers exist, and the result of the lane is writable.
            let dk = unsafe {
                dots(row_of(value, lane), list, dys, heads, slopes);
                from_raw_parts_mut(out.row(lane), heads)
            };
            dk.fill(0.0);
            for (item, (weights, dw)) in own.chunks_exact(heads).zip(slopes.chunks_exact(heads)).enumerate() {
                // SAFETY: as above.
                let numbers = unsafe { row_of(numbers, list.row(item) as usize) };
                for (head, dk) in dk.iter_mut().enumerate() {
                    let (common, sum) = (numbers[2 * heads + head], own_sums[item * heads + head]);
                    *dk = scalar::add(*dk, slope_of(weights[head], dw[head], common, sum, slope));
                }
            }
        }
        if let Some(out) = value_out {
            // SAFETY: the readers exist, and the result of the lane is writable.
            unsafe { weighted_sum(list, dys, own, heads, out.row(lane)) };
        }
    }
}
