//! The reverse of attention: for queries, and for the keys and values that they attend to.

use super::tiles::{PACKED, Strided, StridedMut, chains, softmax};
use super::{PackedRows, StageSpace, balanced, block_of, by_lanes, known_rows, rows_of};
use crate::kernels::isa::Isa;
use crate::kernels::kernel_set::KernelSet;
use crate::kernels::lanes::Lanes;
use autobatch_ir::numeric::list::READER_NUMBERS;
use autobatch_ir::numeric::{row, scalar};
use autobatch_ir::plan::List;

/// The queries of some lanes, the gradients of their results, and the rows that they attend to.
pub(crate) struct AttentionGradient<'l, 'a> {
    /// Strided per lane.
    pub(crate) query: Strided,
    pub(crate) dy: Strided,
    /// Keys and values, which lists name.
    pub(crate) keys: Strided,
    pub(crate) values: Strided,
    /// The keys and the values of each lane, equally many.
    pub(crate) lists: &'l [[List<'a>; 2]],
    pub(crate) scale: f32,
    /// Per lane the gradient of the query, if it is needed.
    pub(crate) out: Option<StridedMut>,
    /// Per lane the row that keys and values read, if they need it: the query, the gradient, three numbers.
    pub(crate) readers: Option<StridedMut>,
}

/// # Safety
/// The instruction set of the function is available. The rows exist, and the results are writable and overlap none of them.
pub(in crate::kernels) type GradientFn = for<'a> unsafe fn(&AttentionGradient<'_, 'a>, StageSpace<'_, 'a>);

/// Some keys with their values, the readers of each, and their gradients.
pub(crate) struct AttentionPull<'l, 'a> {
    /// Strided per lane.
    pub(crate) key: Strided,
    pub(crate) value: Strided,
    /// Strided that [`AttentionGradient`] made, which lists name.
    pub(crate) readers: Strided,
    /// The readers of each lane.
    pub(crate) lists: &'l [List<'a>],
    pub(crate) scale: f32,
    /// Per lane the gradients of the key and of the value, if they are needed.
    pub(crate) out: [Option<StridedMut>; 2],
}

/// # Safety
/// As for [`GradientFn`].
pub(in crate::kernels) type PullFn = for<'a> unsafe fn(&AttentionPull<'_, 'a>, StageSpace<'_, 'a>);

impl<'a> AttentionGradient<'_, 'a> {
    /// Computes the gradient of each lane.
    ///
    /// # Safety
    /// As for [`GradientFn`], and `isa` is available.
    pub(crate) unsafe fn compute_unchecked(&self, isa: Isa, space: StageSpace<'_, 'a>) {
        // SAFETY: the caller guarantees the rows and the instruction set.
        unsafe { (KernelSet::of(isa).attention_gradients)(self, space) }
    }
}

impl<'a> AttentionPull<'_, 'a> {
    /// Computes the gradients of each lane.
    ///
    /// # Safety
    /// As for [`PullFn`], and `isa` is available.
    pub(crate) unsafe fn compute_unchecked(&self, isa: Isa, space: StageSpace<'_, 'a>) {
        // SAFETY: the caller guarantees the rows and the instruction set.
        unsafe { (KernelSet::of(isa).attention_pull)(self, space) }
    }
}

/// The body of every [`GradientFn`].
///
/// # Safety
/// As for [`GradientFn`].
#[inline(always)]
pub(in crate::kernels) unsafe fn gradients<'a, L: Lanes, const BLOCK: usize>(
    a: &AttentionGradient<'_, 'a>,
    mut space: StageSpace<'_, 'a>,
) {
    let mut first = 0;
    while first < a.lists.len() {
        let (count, longest) = block_of::<BLOCK>(&a.lists[first..]);
        let [known_keys, known_values] = [0, 1].map(|side| known_rows(&mut space.lists[side], longest[side]));
        // SAFETY: as for this function; the lanes exist, and the rows of the longest list are packed.
        unsafe {
            space.stage.packed[0].pack::<L>(a.keys, longest[0], known_keys);
            space.stage.packed[1].pack::<L>(a.values, longest[1], known_values);
            by_lanes!(count, |Q| gradient_block::<L, Q>(a, first, longest[0], &mut space));
        }
        first += count;
    }
}

/// The gradients of some lanes, from `first` on, which begin the longest list.
///
/// # Safety
/// As for [`GradientFn`]; the lanes exist, and the keys and values of the longest list are packed.
#[inline(always)]
unsafe fn gradient_block<L: Lanes, const Q: usize>(
    a: &AttentionGradient<'_, '_>,
    first: usize,
    keys: List<'_>,
    space: &mut StageSpace<'_, '_>,
) {
    let [keys_packed, values_packed] = &space.stage.packed;
    let [scores, slopes] = &mut *space.rows;
    let [to_scores, to_slopes] = [rows_of(scores, Q, keys.len()), rows_of(slopes, Q, keys.len())];
    let mut ranges = [(0, 0); Q];
    for (lane, range) in (first..).zip(&mut ranges) {
        range.1 = a.lists[lane][0].len();
    }
    // SAFETY: the rows are packed, those of scores are as long as the longest list; lanes, keys and results exist.
    unsafe {
        let [query, dy] = [a.query.after(first), a.dy.after(first)];
        keys_packed.products::<L, Q>(query, 0..keys.len(), a.scale, to_scores);
        values_packed.products::<L, Q>(dy, 0..keys.len(), 1.0, to_slopes);
        let stride = to_scores.stride.max(1);
        let rows = scores.chunks_exact_mut(stride).zip(slopes.chunks_exact_mut(stride));
        let mut numbers = [[0.0; READER_NUMBERS]; Q];
        for ((numbers, &(_, length)), (weights, slopes)) in numbers.iter_mut().zip(&ranges).zip(rows) {
            if length > 0 {
                let [top, factor] = softmax(weights, length);
                let (weights, slopes) = (&weights[..length], &mut slopes[..length]);
                let common = row::dot(weights, slopes);
                for (slope, &weight) in slopes.iter_mut().zip(weights) {
                    *slope = scalar::mul(scalar::mul(weight, scalar::sub(*slope, common)), a.scale);
                }
                *numbers = [top, factor, common];
            }
        }
        if let Some(out) = a.out {
            let out = StridedMut { base: out.row(first), ..out };
            chains::<L, Q>(keys, a.keys, to_slopes.base.cast_const(), to_slopes.stride, &ranges, out);
        }
        if let Some(readers) = a.readers {
            for (lane, numbers) in numbers.iter().enumerate() {
                let to = readers.row(first + lane);
                std::ptr::copy_nonoverlapping(query.row(lane), to, query.width);
                std::ptr::copy_nonoverlapping(dy.row(lane), to.add(query.width), dy.width);
                let to = to.add(query.width + dy.width);
                std::ptr::copy_nonoverlapping(numbers.as_ptr(), to, READER_NUMBERS);
            }
        }
    }
}

/// The body of every [`PullFn`].
///
/// # Safety
/// As for [`PullFn`].
#[inline(always)]
pub(in crate::kernels) unsafe fn pull<'a, L: Lanes, const BLOCK: usize>(
    a: &AttentionPull<'_, 'a>,
    mut space: StageSpace<'_, 'a>,
) {
    let [queries, dys] = [a.readers.part(0, a.key.width), a.readers.part(a.key.width, a.value.width)];
    let numbers = a.readers.part(a.key.width + a.value.width, READER_NUMBERS);
    let mut first = 0;
    while first < a.lists.len() {
        // Lists that the packed one ends with.
        let own = a.lists[first];
        let list = match space.lists[0] {
            Some(packed) if own.ends(packed) => packed,
            _ => {
                // SAFETY: the readers exist.
                unsafe {
                    space.stage.packed[0].pack::<L>(queries, own, 0);
                    space.stage.packed[1].pack::<L>(dys, own, 0);
                    take_numbers(numbers, own, &mut space.stage.numbers);
                }
                space.lists[0] = Some(own);
                own
            }
        };
        let left = &a.lists[first..];
        let count = balanced::<BLOCK>(left.iter().take(2 * BLOCK).take_while(|own| own.ends(list)).count());
        // SAFETY: as for this function; the lanes exist, and the readers are packed.
        unsafe { by_lanes!(count, |Q| pull_block::<L, Q>(a, first, (list, [queries, dys]), &mut space)) };
        first += count;
    }
}

/// Collects the numbers of the readers of a list.
///
/// # Safety
/// The readers exist.
#[inline(always)]
unsafe fn take_numbers(rows: Strided, list: List<'_>, numbers: &mut [Vec<f32>; READER_NUMBERS]) {
    let whole = list.len().next_multiple_of(PACKED);
    for (number, to) in numbers.iter_mut().enumerate() {
        if to.len() < whole {
            to.resize(whole, 0.0);
        }
        for (reader, to) in to[..list.len()].iter_mut().enumerate() {
            // SAFETY: the reader exists.
            *to = unsafe { *rows.row(list.row(reader) as usize).add(number) };
        }
    }
}

/// The gradients of some lanes, from `first` on, with whose readers the list ends.
///
/// # Safety
/// As for [`PullFn`]; the lanes exist, and the readers of the list are packed.
#[inline(always)]
unsafe fn pull_block<L: Lanes, const Q: usize>(
    a: &AttentionPull<'_, '_>,
    first: usize,
    (list, [queries, dys]): (List<'_>, [Strided; 2]),
    space: &mut StageSpace<'_, '_>,
) {
    let PackedRows { packed: [queries_packed, dys_packed], numbers } = &mut *space.stage;
    let [weights, slopes] = &mut *space.rows;
    let [to_weights, to_slopes] = [rows_of(weights, Q, list.len()), rows_of(slopes, Q, list.len())];
    let mut ranges = [(0, list.len()); Q];
    for (lane, range) in (first..).zip(&mut ranges) {
        range.0 = list.len() - a.lists[lane].len();
    }
    let start = ranges.iter().fold(list.len(), |start, range| range.0.min(start));
    let [tops, factors, commons] = numbers;
    // SAFETY: the readers are packed, rows of weights are as long as the list; lanes and results exist.
    unsafe {
        let all = start..list.len();
        queries_packed.products::<L, Q>(a.key.after(first), all.clone(), a.scale, to_weights);
        dys_packed.products::<L, Q>(a.value.after(first), all, 1.0, to_slopes);
        let stride = to_weights.stride.max(1);
        let own = start / PACKED * PACKED..to_weights.stride;
        for (weights, slopes) in weights.chunks_exact_mut(stride).zip(slopes.chunks_exact_mut(stride)).take(Q)
        {
            let numbers = tops[own.clone()].iter().zip(&factors[own.clone()]).zip(&commons[own.clone()]);
            let rows = weights[own.clone()].iter_mut().zip(&mut slopes[own.clone()]);
            for ((weight, slope), ((&top, &factor), &common)) in rows.zip(numbers) {
                *weight = scalar::mul(scalar::exp(scalar::sub(*weight, top)), factor);
                *slope = scalar::mul(scalar::mul(*weight, scalar::sub(*slope, common)), a.scale);
            }
        }
        let rows = [(to_slopes, queries), (to_weights, dys)];
        for (out, (factors, rows)) in a.out.iter().zip(rows) {
            if let Some(out) = *out {
                let out = StridedMut { base: out.row(first), ..out };
                chains::<L, Q>(list, rows, factors.base.cast_const(), factors.stride, &ranges, out);
            }
        }
    }
}
