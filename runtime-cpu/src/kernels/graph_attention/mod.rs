//! Graph attention over lists of rows, and its reverse: many lanes with short lists and several heads.
//!
//! **Bits.** `ir::numeric::graph_attention` defines the results. The scores of all lanes of a call lie in one buffer, a row of heads
//! for each item, so their exponentials are computed in whole vectors. Maxima, sums and chains go over the list of a lane in
//! order; those of different heads and elements are independent.

mod reverse;
mod sums;

use super::attention::{Strided, StridedMut};
use super::isa::{Isa, compiled_per_isa};
use autobatch_ir::numeric::graph_attention::HEAD_NUMBERS;
use autobatch_ir::numeric::{row, scalar};
use autobatch_ir::plan::List;
use reverse::{gradient, pull};
use std::slice::from_raw_parts;
use sums::weighted_sum;

/// Lanes that attend, or items that pull from the lanes that attend to them.
pub(crate) enum GraphAttention<'l, 'a> {
    /// The results of lanes.
    Forward {
        lanes: Attending<'l, 'a>,
        /// A row per lane.
        out: StridedMut,
    },
    /// The reverse for queries.
    Gradient {
        lanes: Attending<'l, 'a>,
        /// The gradient of the result of each lane.
        dy: Strided,
        /// The gradient of the query of each lane, if it is needed.
        out: Option<StridedMut>,
        /// The row of each lane that keys and values read, if they need it.
        readers: Option<StridedMut>,
    },
    /// The reverse for keys and values.
    Pull {
        /// A row per lane.
        key: Strided,
        value: Strided,
        /// Rows that `Gradient` made, which lists name.
        readers: Strided,
        /// The readers of each lane.
        lists: &'l [List<'a>],
        slope: f32,
        /// The gradients of the key and of the value of each lane, if they are needed.
        out: [Option<StridedMut>; 2],
    },
}

/// The queries of some lanes, and the rows that they attend to.
pub(crate) struct Attending<'l, 'a> {
    /// A row of heads per lane.
    pub(crate) query: Strided,
    /// Keys and values, which lists name.
    pub(crate) keys: Strided,
    pub(crate) values: Strided,
    /// The keys and the values of each lane, equally many.
    pub(crate) lists: &'l [[List<'a>; 2]],
    pub(crate) slope: f32,
}

/// Scratch space, which grows to the items of the lanes of a call.
#[derive(Debug, Default)]
pub(crate) struct GraphSpace {
    /// A row of heads for each item of each lane.
    weights: Vec<f32>,
    sums: Vec<f32>,
    /// For each lane, rows of heads: the maxima, the factors and the common slopes.
    numbers: Vec<f32>,
    slopes: Vec<f32>,
}

impl GraphSpace {
    /// The bytes of the space, given the items of the lanes of a call and its heads.
    pub(crate) fn bytes(items: u64, lanes: u64, heads: u64) -> u64 {
        let rows = items.saturating_mul(3).saturating_add(lanes.saturating_mul(HEAD_NUMBERS as u64));
        let floats = rows.saturating_mul(heads).saturating_add(row::LANES as u64);
        floats.saturating_mul(size_of::<f32>() as u64)
    }
}

impl GraphAttention<'_, '_> {
    /// Computes all lanes.
    ///
    /// # Safety
    /// `isa` is available. The rows exist, and the results are writable and overlap none of them.
    pub(crate) unsafe fn compute_unchecked(&self, isa: Isa, space: &mut GraphSpace) {
        // SAFETY: the caller guarantees the rows and the instruction set.
        unsafe { kernel(isa)(self, space) }
    }
}

compiled_per_isa! {
    /// # Safety
    /// As for [`GraphAttention::compute_unchecked`].
    fn kernel -> unsafe fn(attention: &GraphAttention<'_, '_>, space: &mut GraphSpace) = run
}

/// # Safety
/// As for [`GraphAttention::compute_unchecked`].
#[inline(always)]
unsafe fn run(attention: &GraphAttention<'_, '_>, space: &mut GraphSpace) {
    let heads = match attention {
        GraphAttention::Forward { lanes, .. } | GraphAttention::Gradient { lanes, .. } => lanes.query.width,
        GraphAttention::Pull { key, .. } => key.width,
    };
    // A constant number of heads is a loop without a counter.
    // SAFETY: as for this function.
    unsafe {
        match heads {
            1 => of_heads(attention, 1, space),
            2 => of_heads(attention, 2, space),
            4 => of_heads(attention, 4, space),
            8 => of_heads(attention, 8, space),
            _ => of_heads(attention, heads, space),
        }
    }
}

/// # Safety
/// As for [`GraphAttention::compute_unchecked`]; queries and keys have this number of heads.
#[inline(always)]
unsafe fn of_heads(attention: &GraphAttention<'_, '_>, heads: usize, space: &mut GraphSpace) {
    // SAFETY: as for this function.
    unsafe {
        match attention {
            GraphAttention::Forward { lanes, out } => forward(lanes, heads, *out, space),
            GraphAttention::Gradient { lanes, dy, out, readers } => {
                gradient(lanes, heads, *dy, [*out, *readers], space);
            }
            GraphAttention::Pull { .. } => pull(attention, heads, space),
        }
    }
}

/// A row as a slice.
///
/// # Safety
/// The row exists.
#[inline(always)]
unsafe fn row_of<'r>(rows: Strided, number: usize) -> &'r [f32] {
    // SAFETY: as for this function.
    unsafe { from_raw_parts(rows.row(number), rows.width) }
}

/// `leaky_relu`
#[inline(always)]
fn leaky(x: f32, slope: f32) -> f32 {
    scalar::leaky_relu(x, slope)
}

/// Computes the exponentials of all numbers in whole vectors.
#[inline(always)]
fn exp_all(numbers: &mut Vec<f32>) {
    let count = numbers.len();
    numbers.resize(count.next_multiple_of(row::LANES), 0.0);
    for x in &mut **numbers {
        *x = scalar::exp(*x);
    }
    numbers.truncate(count);
}

/// The weights of all items of all lanes, the sums of queries and keys, and the maxima and factors of all lanes.
///
/// # Safety
/// As for [`GraphAttention::compute_unchecked`].
#[inline(always)]
unsafe fn weigh(a: &Attending<'_, '_>, heads: usize, space: &mut GraphSpace) {
    let GraphSpace { weights, sums, numbers, .. } = space;
    let items: usize = a.lists.iter().map(|[keys, _]| keys.len()).sum();
    for buffer in [&mut *weights, sums] {
        buffer.clear();
        buffer.resize(items * heads, 0.0);
    }
    numbers.clear();
    numbers.resize(a.lists.len() * HEAD_NUMBERS * heads, 0.0);
    let mut rest = (&mut weights[..], &mut sums[..]);
    for (lane, ([keys, _], numbers)) in
        a.lists.iter().zip(numbers.chunks_exact_mut(HEAD_NUMBERS * heads)).enumerate()
    {
        let (scores, scores_after) = rest.0.split_at_mut(keys.len() * heads);
        let (sums, sums_after) = rest.1.split_at_mut(keys.len() * heads);
        rest = (scores_after, sums_after);
        // SAFETY: the query and the keys exist.
        let query = unsafe { &row_of(a.query, lane)[..heads] };
        let tops = &mut numbers[..heads];
        for (item, (scores, sums)) in
            scores.chunks_exact_mut(heads).zip(sums.chunks_exact_mut(heads)).enumerate()
        {
            // SAFETY: as above.
            let key = unsafe { &row_of(a.keys, keys.row(item) as usize)[..heads] };
            for ((score, sum), (&q, &k)) in scores.iter_mut().zip(sums).zip(query.iter().zip(key)) {
                *sum = scalar::add(q, k);
                *score = leaky(*sum, a.slope);
            }
            match item {
                0 => tops.copy_from_slice(scores),
                _ => tops.iter_mut().zip(&*scores).for_each(|(top, &score)| *top = scalar::max(*top, score)),
            }
        }
        for scores in scores.chunks_exact_mut(heads) {
            for (score, &top) in scores.iter_mut().zip(&*tops) {
                *score = scalar::sub(*score, top);
            }
        }
    }
    exp_all(weights);
    let mut rest = &mut weights[..];
    for ([keys, _], numbers) in a.lists.iter().zip(numbers.chunks_exact_mut(HEAD_NUMBERS * heads)) {
        let (own, after) = rest.split_at_mut(keys.len() * heads);
        rest = after;
        if own.is_empty() {
            continue;
        }
        let factors = &mut numbers[heads..2 * heads];
        factors.copy_from_slice(&own[..heads]);
        for exps in own[heads..].chunks_exact(heads) {
            factors.iter_mut().zip(exps).for_each(|(total, &e)| *total = scalar::add(*total, e));
        }
        for factor in &mut *factors {
            *factor = scalar::recip(*factor);
        }
        for weights in own.chunks_exact_mut(heads) {
            for (weight, &factor) in weights.iter_mut().zip(&*factors) {
                *weight = scalar::mul(*weight, factor);
            }
        }
    }
}

/// # Safety
/// As for [`GraphAttention::compute_unchecked`].
#[inline(always)]
unsafe fn forward(a: &Attending<'_, '_>, heads: usize, out: StridedMut, space: &mut GraphSpace) {
    // SAFETY: as for this function.
    unsafe { weigh(a, heads, space) };
    let mut rest = &space.weights[..];
    for (lane, &[_, values]) in a.lists.iter().enumerate() {
        let (own, after) = rest.split_at(values.len() * heads);
        rest = after;
        // SAFETY: the values of the list exist, and the result of the lane is writable.
        unsafe { weighted_sum(values, a.values, own, heads, out.row(lane)) };
    }
}
