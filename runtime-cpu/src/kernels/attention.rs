//! Attention of many queries over lists of rows.
//!
//! **Bits.** `ir::numeric::list` defines the results. A score is one chain over the elements of a key, the weights are the
//! softmax of the row of scores, and an element of the result is one chain over the values. Scores of different keys are
//! independent, and so are queries and elements of results, so registers hold tiles of them.
//!
//! Neighbouring lanes mostly read one list, or each the list of the lane before with one item more. A block of lanes reads
//! the longest of their lists: its keys are packed once, transposed, for all lanes that follow. Scores beyond the end of a
//! lane's own list are computed and not used. Values beyond it are never multiplied, because a product with 0 may be NaN.

use super::isa::Isa;
use super::kernel_set::KernelSet;
use super::lanes::Lanes;
use autobatch_ir::numeric::{row, scalar};
use autobatch_ir::plan::List;

/// The queries of some lanes, the rows that they attend to, and the results.
pub(crate) struct Attention<'a> {
    /// The query of lane `r` begins at `query + r * query_stride`.
    pub(crate) query: *const f32,
    pub(crate) query_stride: usize,
    /// Floats of a query and of a key.
    pub(crate) key_width: usize,
    /// Key `n` begins at `keys + n * key_stride`.
    pub(crate) keys: *const f32,
    pub(crate) key_stride: usize,
    /// Value `n` begins at `values + n * value_stride`.
    pub(crate) values: *const f32,
    pub(crate) value_stride: usize,
    /// Floats of a value and of a result.
    pub(crate) value_width: usize,
    /// The keys and the values of each lane, equally many.
    pub(crate) lists: &'a [[List<'a>; 2]],
    pub(crate) scale: f32,
    /// The result of lane `r` begins at `out + r * out_stride`.
    pub(crate) out: *mut f32,
    pub(crate) out_stride: usize,
}

/// Scratch space that grows to the keys of the longest list.
#[derive(Debug, Default)]
pub(crate) struct AttentionSpace {
    /// Blocks of keys: the elements in order, each of all keys of the block.
    packed: Vec<f32>,
    /// One row of scores for each query of a block of lanes.
    scores: Vec<f32>,
}

/// # Safety
/// The instruction set of the function is available. The queries and the rows of the lists exist, and the results are
/// writable and overlap none of them.
pub(super) type AttentionFn = unsafe fn(&Attention<'_>, &mut AttentionSpace);

/// Computes the attention of each lane.
///
/// # Safety
/// As for [`AttentionFn`], and `isa` is available.
pub(crate) unsafe fn attend_unchecked(isa: Isa, attention: &Attention<'_>, space: &mut AttentionSpace) {
    // SAFETY: the caller guarantees the rows and the instruction set.
    unsafe { (KernelSet::of(isa).attention)(attention, space) }
}

/// The maximum number of queries of a block: with two vectors each, twelve accumulators.
const QUERIES: usize = 6;
/// Keys of a packed block, and the virtual lanes of a row of scores.
const KEYS: usize = row::LANES;

/// The body of every [`AttentionFn`].
///
/// # Safety
/// As for [`AttentionFn`].
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(a: &Attention<'_>, space: &mut AttentionSpace) {
    let mut packed: Option<List<'_>> = None;
    let mut first = 0;
    while first < a.lists.len() {
        let (count, longest) = block_of(&a.lists[first..]);
        let keys = longest[0];
        let known = match packed {
            Some(packed) if packed.begins(keys) => packed.len(),
            Some(packed) if keys.begins(packed) => keys.len(),
            _ => 0,
        };
        macro_rules! by_queries {
            ($($queries:literal)+) => {
                match count {
                    // SAFETY: the lanes exist, and the keys of the longest list are packed.
                    $($queries => unsafe { block::<L, $queries>(a, first, longest, space) },)+
                    _ => {}
                }
            };
        }
        // SAFETY: as for this function.
        unsafe { pack(a, keys, known, &mut space.packed) };
        by_queries!(1 2 3 4 5 6);
        if known < keys.len() {
            packed = Some(keys);
        }
        first += count;
    }
}

/// How many of the first lanes form a block, and the longest of their lists, with which all others begin.
#[inline(always)]
fn block_of<'a>(lists: &[[List<'a>; 2]]) -> (usize, [List<'a>; 2]) {
    let begins =
        |[keys, values]: [List<'a>; 2], of: [List<'a>; 2]| keys.begins(of[0]) && values.begins(of[1]);
    let mut longest = lists[0];
    let mut count = 1;
    while let Some(&next) = lists.get(count).filter(|_| count < QUERIES) {
        if begins(longest, next) {
            longest = next;
        } else if !begins(next, longest) {
            break;
        }
        count += 1;
    }
    (count, longest)
}

/// Packs the keys of a list from the number `known` on.
///
/// # Safety
/// The keys exist.
#[inline(always)]
unsafe fn pack(a: &Attention<'_>, keys: List<'_>, known: usize, packed: &mut Vec<f32>) {
    let floats = keys.len().div_ceil(KEYS) * KEYS * a.key_width;
    if packed.len() < floats {
        packed.resize(floats, 0.0);
    }
    for number in known..keys.len() {
        let to = &mut packed[number / KEYS * KEYS * a.key_width + number % KEYS..];
        let key = a.keys.wrapping_add(keys.row(number) as usize * a.key_stride);
        for (element, slot) in to.iter_mut().step_by(KEYS).take(a.key_width).enumerate() {
            // SAFETY: the key exists.
            *slot = unsafe { *key.add(element) };
        }
    }
}

/// The attention of some lanes, from `first` on, which begin the longest list.
///
/// # Safety
/// As for [`AttentionFn`]; the lanes exist, and the keys of the longest list are packed.
#[inline(always)]
unsafe fn block<L: Lanes, const Q: usize>(
    a: &Attention<'_>,
    first: usize,
    [keys, values]: [List<'_>; 2],
    space: &mut AttentionSpace,
) {
    let AttentionSpace { packed, scores } = space;
    let stride = keys.len().next_multiple_of(KEYS);
    if scores.len() < Q * stride {
        scores.resize(Q * stride, 0.0);
    }
    let mut lengths = [0; Q];
    for (lane, length) in (first..).zip(&mut lengths) {
        *length = a.lists[lane][0].len();
    }
    // SAFETY: the packed keys and the rows of scores are as long as the stride; lanes and values exist.
    unsafe {
        for at in (0..stride).step_by(KEYS) {
            let to = scores.as_mut_ptr().add(at);
            scores_of_keys::<L, Q>(a, first, packed.as_ptr().add(at * a.key_width), to, stride);
        }
        for (weights, &length) in scores.chunks_exact_mut(stride.max(1)).zip(&lengths) {
            softmax(weights, length);
        }
        let step = 2 * L::WIDTH;
        for column in (0..a.value_width).step_by(step) {
            if column + step <= a.value_width {
                columns::<L, Q, true>(a, (first, column), values, (scores.as_ptr(), stride), &lengths);
            } else {
                columns::<L, Q, false>(a, (first, column), values, (scores.as_ptr(), stride), &lengths);
            }
        }
    }
}

/// The scores of a packed block of keys for each query, in rows `stride` apart.
///
/// # Safety
/// As for [`block`]; the rows have a place for each key of the block.
#[inline(always)]
unsafe fn scores_of_keys<L: Lanes, const Q: usize>(
    a: &Attention<'_>,
    first: usize,
    keys: *const f32,
    to: *mut f32,
    stride: usize,
) {
    let is_pair = 2 * L::WIDTH <= KEYS;
    let query = a.query.wrapping_add(first * a.query_stride);
    // SAFETY: the caller guarantees queries, keys and rows.
    unsafe {
        for part in (0..KEYS).step_by(2 * L::WIDTH) {
            let mut acc = [[L::splat(0.0); 2]; Q];
            for element in 0..a.key_width {
                let from = keys.add(element * KEYS + part);
                let low = L::load(from);
                let high = if is_pair { L::load(from.add(L::WIDTH)) } else { low };
                for (number, acc) in acc.iter_mut().enumerate() {
                    let x = L::splat(*query.add(number * a.query_stride + element));
                    acc[0] = L::fma(x, low, acc[0]);
                    if is_pair {
                        acc[1] = L::fma(x, high, acc[1]);
                    }
                }
            }
            // A product is a sum with -0, which keeps every bit.
            let (scale, zero) = (L::splat(a.scale), L::splat(-0.0));
            for (number, acc) in acc.iter().enumerate() {
                let to = to.add(number * stride + part);
                L::store(to, L::fma(acc[0], scale, zero));
                if is_pair {
                    L::store(to.add(L::WIDTH), L::fma(acc[1], scale, zero));
                }
            }
        }
    }
}

/// Computes `row::softmax` of the first scores, in place. Exponentials are computed in whole groups of lanes.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32], count: usize) {
    let top = row::max(&scores[..count]);
    let whole = count.next_multiple_of(KEYS).min(scores.len());
    scores[count..whole].fill(top);
    for score in &mut scores[..whole] {
        *score = scalar::exp(scalar::sub(*score, top));
    }
    let scale = scalar::recip(row::sum(&scores[..count]));
    for score in &mut scores[..count] {
        *score = scalar::mul(*score, scale);
    }
}

/// Two vectors of columns of the results of a block, from `column` on; `WHOLE` if the values have all of them.
///
/// # Safety
/// As for [`block`]; the weights of query `q` begin at `weights.0 + q * weights.1`.
#[inline(always)]
unsafe fn columns<L: Lanes, const Q: usize, const WHOLE: bool>(
    a: &Attention<'_>,
    (first, column): (usize, usize),
    values: List<'_>,
    (weights, stride): (*const f32, usize),
    lengths: &[usize; Q],
) {
    let left = a.value_width - column;
    let counts = [left.min(L::WIDTH), left.saturating_sub(L::WIDTH).min(L::WIDTH)];
    // SAFETY: the caller guarantees values, weights and results; partial vectors end at the width.
    unsafe {
        let load = |at: *const f32, part: usize| match counts[part] {
            count if WHOLE || count == L::WIDTH => L::load(at.wrapping_add(part * L::WIDTH)),
            0 => L::splat(0.0),
            count => L::load_first(at.wrapping_add(part * L::WIDTH), count),
        };
        let value = |number: usize| {
            let row = a.values.wrapping_add(values.row(number) as usize * a.value_stride + column);
            [load(row, 0), load(row, 1)]
        };
        let mut acc = [[L::splat(0.0); 2]; Q];
        let shared = lengths.iter().fold(values.len(), |least, &length| least.min(length));
        for number in 0..shared {
            let [low, high] = value(number);
            for (query, acc) in acc.iter_mut().enumerate() {
                let weight = L::splat(*weights.add(query * stride + number));
                *acc = [L::fma(weight, low, acc[0]), L::fma(weight, high, acc[1])];
            }
        }
        for (query, acc) in acc.iter_mut().enumerate() {
            for number in shared..lengths[query] {
                let [low, high] = value(number);
                let weight = L::splat(*weights.add(query * stride + number));
                *acc = [L::fma(weight, low, acc[0]), L::fma(weight, high, acc[1])];
            }
        }
        for (query, acc) in acc.iter().enumerate() {
            let to = a.out.wrapping_add((first + query) * a.out_stride + column);
            for (part, &vector) in acc.iter().enumerate() {
                let to = to.wrapping_add(part * L::WIDTH);
                match counts[part] {
                    count if WHOLE || count == L::WIDTH => L::store(to, vector),
                    0 => {}
                    count => L::store_first(to, vector, count),
                }
            }
        }
    }
}
