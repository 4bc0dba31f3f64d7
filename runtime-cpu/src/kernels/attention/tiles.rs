//! Tiles: products and chains of several rows with the rows of one list.

use crate::kernels::lanes::{Lanes, SQUARE, transpose};
use autobatch_ir::numeric::{row, scalar};
use autobatch_ir::plan::List;
use std::ops::Range;

/// Strided of floats at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided {
    pub(crate) base: *const f32,
    pub(crate) stride: usize,
    /// Floats of a row.
    pub(crate) width: usize,
}

impl Strided {
    #[inline(always)]
    pub(in crate::kernels) fn row(self, number: usize) -> *const f32 {
        self.base.wrapping_add(number * self.stride)
    }

    /// Some elements of each row.
    #[inline(always)]
    pub(in crate::kernels) fn part(self, first: usize, width: usize) -> Self {
        Self { base: self.base.wrapping_add(first), width, ..self }
    }

    /// The rows from a number on.
    #[inline(always)]
    pub(super) fn after(self, number: usize) -> Self {
        Self { base: self.row(number), ..self }
    }
}

/// Strided that take results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StridedMut {
    pub(crate) base: *mut f32,
    pub(crate) stride: usize,
}

impl StridedMut {
    #[inline(always)]
    pub(in crate::kernels) fn row(self, number: usize) -> *mut f32 {
        self.base.wrapping_add(number * self.stride)
    }
}

/// The maximum number of rows of a block on any instruction set.
pub(super) const MAX_BLOCK: usize = 14;
/// Rows of the list in a packed block, and the virtual lanes of a row of scores.
pub(super) const PACKED: usize = row::LANES;
const _: () = assert!(PACKED == SQUARE, "a block is a square of rows");

/// The first rows of a list, transposed: blocks of rows, the elements in order, each of all rows of the block.
#[derive(Debug, Default)]
pub(super) struct Packed(Vec<f32>);

impl Packed {
    /// Packs the rows of a list from the number `known` on.
    ///
    /// # Safety
    /// The instruction set of `L` is available. The rows exist.
    #[inline(always)]
    pub(super) unsafe fn pack<L: Lanes>(&mut self, rows: Strided, list: List<'_>, known: usize) {
        let Self(packed) = self;
        let floats = list.len().next_multiple_of(PACKED) * rows.width;
        if packed.len() < floats {
            packed.resize(floats, 0.0);
        }
        // No block if all rows are known: the packed list may have more rows in the last one.
        let blocks = if known < list.len() { known / PACKED..list.len().div_ceil(PACKED) } else { 0..0 };
        for block in blocks {
            let numbers = block * PACKED..list.len().min((block + 1) * PACKED);
            // Rows beyond the end of the list are any row, and not used.
            let mut from = [std::ptr::null::<f32>(); PACKED];
            for (number, from) in from.iter_mut().enumerate() {
                *from = rows.row(list.row((numbers.start + number).min(numbers.end - 1)) as usize);
            }
            let to = packed[block * PACKED * rows.width..][..PACKED * rows.width].as_mut_ptr();
            // SAFETY: as for this function; the block has an element of each row.
            unsafe { transpose::<L>(&from, rows.width, to) };
        }
    }

    /// The products of `Q` rows with some packed rows, times a factor. Row `q` of the products is
    /// row `q` of `to`. Products are made in whole blocks.
    ///
    /// # Safety
    /// The rows `x` exist and are as wide as the packed rows, of which all up to the last are packed. There is space for the products.
    #[inline(always)]
    pub(super) unsafe fn products<L: Lanes, const Q: usize>(
        &self,
        x: Strided,
        packed: Range<usize>,
        factor: f32,
        to: StridedMut,
    ) {
        let is_pair = 2 * L::WIDTH <= PACKED;
        // SAFETY: the caller guarantees rows and space.
        unsafe {
            for at in (packed.start / PACKED * PACKED..packed.end).step_by(PACKED) {
                let rows = self.0.as_ptr().add(at * x.width);
                for part in (0..PACKED).step_by(2 * L::WIDTH) {
                    let mut acc = [[L::splat(0.0); 2]; Q];
                    for element in 0..x.width {
                        let from = rows.add(element * PACKED + part);
                        let low = L::load(from);
                        let high = if is_pair { L::load(from.add(L::WIDTH)) } else { low };
                        for (number, acc) in acc.iter_mut().enumerate() {
                            let x = L::splat(*x.base.add(number * x.stride + element));
                            acc[0] = L::fma(x, low, acc[0]);
                            if is_pair {
                                acc[1] = L::fma(x, high, acc[1]);
                            }
                        }
                    }
                    // A product is a sum with -0, which keeps every bit.
                    let (factor, zero) = (L::splat(factor), L::splat(-0.0));
                    for (number, acc) in acc.iter().enumerate() {
                        let to = to.row(number).add(at + part);
                        L::store(to, L::fma(acc[0], factor, zero));
                        if is_pair {
                            L::store(to.add(L::WIDTH), L::fma(acc[1], factor, zero));
                        }
                    }
                }
            }
        }
    }
}

/// Computes `row::softmax` of the first scores, in place, and gives the maximum and the factor of the exponentials. Exponentials are
/// computed in whole groups of lanes.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32], count: usize) -> [f32; 2] {
    let top = row::max(&scores[..count]);
    let whole = count.next_multiple_of(PACKED).min(scores.len());
    scores[count..whole].fill(top);
    for score in &mut scores[..whole] {
        *score = scalar::exp(scalar::sub(*score, top));
    }
    let factor = scalar::recip(row::sum(&scores[..count]));
    for score in &mut scores[..count] {
        *score = scalar::mul(*score, factor);
    }
    [top, factor]
}

/// For each of `Q` rows of factors, the chain over the rows of a list within its range: `out = fma(factor, row, out)` from +0.
/// The factors of chain `q` begin at `factors + q * stride`.
///
/// # Safety
/// The rows of the list exist, there is a factor for each in the ranges, and `out` is writable and overlaps none of them.
#[inline(always)]
pub(super) unsafe fn chains<L: Lanes, const Q: usize>(
    list: List<'_>,
    rows: Strided,
    factors: *const f32,
    stride: usize,
    ranges: &[(usize, usize); Q],
    out: StridedMut,
) {
    let step = 2 * L::WIDTH;
    for column in (0..rows.width).step_by(step) {
        let rows = rows.part(column, (rows.width - column).min(step));
        let out = StridedMut { base: out.base.wrapping_add(column), ..out };
        // SAFETY: as for this function.
        unsafe {
            if rows.width == step {
                columns::<L, Q, true>(list, rows, factors, stride, ranges, out);
            } else {
                columns::<L, Q, false>(list, rows, factors, stride, ranges, out);
            }
        }
    }
}

/// Two vectors of columns of [`chains`]; `WHOLE` if the rows have all of them.
///
/// # Safety
/// As for [`chains`].
#[inline(always)]
unsafe fn columns<L: Lanes, const Q: usize, const WHOLE: bool>(
    list: List<'_>,
    rows: Strided,
    factors: *const f32,
    stride: usize,
    ranges: &[(usize, usize); Q],
    out: StridedMut,
) {
    let counts = [rows.width.min(L::WIDTH), rows.width.saturating_sub(L::WIDTH).min(L::WIDTH)];
    // SAFETY: the caller guarantees rows, factors and results; partial vectors end at the width.
    unsafe {
        let load = |at: *const f32, part: usize| match counts[part] {
            count if WHOLE || count == L::WIDTH => L::load(at.wrapping_add(part * L::WIDTH)),
            0 => L::splat(0.0),
            count => L::load_first(at.wrapping_add(part * L::WIDTH), count),
        };
        let vectors = |number: usize| {
            let row = rows.row(list.row(number) as usize);
            [load(row, 0), load(row, 1)]
        };
        let mut acc = [[L::splat(0.0); 2]; Q];
        // All chains go over these rows. Before and behind them lie rows that only some chains go over.
        let first = ranges.iter().fold(0, |first, range| range.0.max(first));
        let end = ranges.iter().fold(list.len(), |end, range| range.1.min(end)).max(first);
        // The ends of the ranges before and after.
        let outer =
            ranges.iter().fold((first, end), |(from, to), range| (range.0.min(from), range.1.max(to)));
        // A macro, because a closure that is called twice is not inlined into the code with fused multiply-adds.
        macro_rules! some {
            ($places:expr) => {
                for place in $places {
                    let [low, high] = vectors(place);
                    for (number, (acc, range)) in acc.iter_mut().zip(ranges).enumerate() {
                        if range.0 <= place && place < range.1 {
                            let factor = L::splat(*factors.add(number * stride + place));
                            *acc = [L::fma(factor, low, acc[0]), L::fma(factor, high, acc[1])];
                        }
                    }
                }
            };
        }
        some!(outer.0..first);
        for place in first..end {
            let [low, high] = vectors(place);
            for (number, acc) in acc.iter_mut().enumerate() {
                let factor = L::splat(*factors.add(number * stride + place));
                *acc = [L::fma(factor, low, acc[0]), L::fma(factor, high, acc[1])];
            }
        }
        some!(end..outer.1);
        for (number, acc) in acc.iter().enumerate() {
            let to = out.row(number);
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
