//! Folds over lists of rows: sums, means and maxima, one list per lane.
//!
//! **Bits.** `ir::numeric::list` defines the results: each element is folded left to right in list order. The elements of a
//! row are independent, so a block of columns is folded in registers over the whole list, and its result is written once.
//!
//! The rows of a list lie anywhere. Each row is prefetched some items ahead, also beyond the end of the lane's list, because
//! most lists are short.

use super::isa::Isa;
use super::kernel_set::KernelSet;
use super::lanes::Lanes;
use autobatch_ir::graph::ListFold;

/// The lists of some lanes, and the results.
pub(crate) struct GatheredFold<'a> {
    /// Row 0. Rows are `width` floats long and neighbours.
    pub(crate) base: *const f32,
    pub(crate) width: usize,
    /// The numbers of the rows of all lists.
    pub(crate) items: &'a [u32],
    /// The list of lane `r` is `items[offsets[r]..offsets[r + 1]]`.
    pub(crate) offsets: &'a [u32],
    /// The result of lane `r` begins at `out + r * stride`.
    pub(crate) out: *mut f32,
    pub(crate) stride: usize,
}

/// # Safety
/// The instruction set of the function is available. All items exist as rows, the offsets ascend and end within the items,
/// and the results are writable and overlap no row of a list.
pub(crate) type GatheredFoldFn = unsafe fn(&GatheredFold<'_>);

/// The function that folds the list of each lane: `out[r] = fold over rows items[offsets[r]..offsets[r + 1]]`. Folds that need more
/// than one pass over a list have none.
pub(crate) fn gathered_fold(isa: Isa, fold: ListFold) -> Option<GatheredFoldFn> {
    (KernelSet::of(isa).gathered_fold)(fold)
}

/// The values of the constant `FOLD`.
pub(super) const SUM: u8 = 0;
pub(super) const MEAN: u8 = 1;
pub(super) const MAX: u8 = 2;

/// The maximum number of vectors that a list is folded into at a time: half of the smallest register file.
const VECTORS: usize = 8;
/// Items between a row and the row that is prefetched.
const AHEAD: usize = 6;
/// Floats in a cache line.
const LINE: usize = 16;

/// The body of every [`GatheredFoldFn`].
///
/// # Safety
/// As for [`GatheredFoldFn`].
#[inline(always)]
pub(super) unsafe fn run<L: Lanes, const FOLD: u8>(f: &GatheredFold<'_>) {
    let lanes = f.offsets.len().saturating_sub(1);
    let block = VECTORS * L::WIDTH;
    // SAFETY: only columns below the width and lanes with an end are passed on.
    unsafe {
        if f.width <= block {
            return some_columns::<L, FOLD>(f, 0, lanes, 0, f.width);
        }
        // A lane at a time, so that the rows of its list are read once from memory.
        for lane in 0..lanes {
            for column in (0..f.width).step_by(block) {
                some_columns::<L, FOLD>(f, lane, lane + 1, column, block.min(f.width - column));
            }
        }
    }
}

/// Folds `columns` columns, at most a block, from `column` on, of the lanes `first..end`.
///
/// # Safety
/// As for [`GatheredFoldFn`]; the lanes and columns exist.
#[inline(always)]
unsafe fn some_columns<L: Lanes, const FOLD: u8>(
    f: &GatheredFold<'_>,
    first: usize,
    end: usize,
    column: usize,
    columns: usize,
) {
    macro_rules! by_vectors {
        ($($vectors:literal)+) => {
            match columns.div_ceil(L::WIDTH) {
                // SAFETY: as for this function; the vectors cover the columns, the last one perhaps in part.
                $($vectors => unsafe { fold_vectors::<L, $vectors, FOLD>(f, first, end, column, columns) },)+
                _ => {}
            }
        };
    }
    by_vectors!(1 2 3 4 5 6 7 8);
}

/// [`some_columns`] with a fixed number of vectors.
///
/// # Safety
/// As for [`some_columns`]; `columns` fills all vectors but the last, and a part of that or all.
#[inline(always)]
unsafe fn fold_vectors<L: Lanes, const V: usize, const FOLD: u8>(
    f: &GatheredFold<'_>,
    first: usize,
    end: usize,
    column: usize,
    columns: usize,
) {
    let (base, last) = (f.base.wrapping_add(column), columns - (V - 1) * L::WIDTH);
    // SAFETY: the caller guarantees offsets, items, rows and results; the last vector is limited to columns that exist. A
    // prefetch never faults.
    unsafe {
        let row = |item: usize| base.wrapping_add(*f.items.get_unchecked(item) as usize * f.width);
        let load = |from: *const f32, v: usize| {
            let at = from.wrapping_add(v * L::WIDTH);
            if v + 1 < V || last == L::WIDTH { L::load(at) } else { L::load_first(at, last) }
        };
        let mut begin = *f.offsets.get_unchecked(first) as usize;
        for lane in first..end {
            let end = *f.offsets.get_unchecked(lane + 1) as usize;
            let mut acc = [L::splat(0.0); V];
            for item in begin..end {
                let ahead = row((item + AHEAD).min(f.items.len() - 1));
                for line in (0..columns).step_by(LINE) {
                    L::prefetch_first(ahead.wrapping_add(line));
                }
                let from = row(item);
                for (v, slot) in acc.iter_mut().enumerate() {
                    let x = load(from, v);
                    *slot = match FOLD {
                        _ if item == begin => x,
                        MAX => L::max(*slot, x),
                        _ => L::add(*slot, x),
                    };
                }
            }
            if FOLD == MEAN {
                let count = L::splat((end - begin).max(1) as f32);
                acc.iter_mut().for_each(|slot| *slot = L::div(*slot, count));
            }
            let to = f.out.wrapping_add(lane * f.stride + column);
            for (v, &value) in acc.iter().enumerate() {
                let at = to.wrapping_add(v * L::WIDTH);
                if v + 1 < V || last == L::WIDTH {
                    L::store(at, value);
                } else {
                    L::store_first(at, value, last);
                }
            }
            begin = end;
        }
    }
}
