//! The register tile: the inner loop of all products.
//!
//! A tile holds `ROWS x VECTORS` accumulators in registers: `ROWS` rows of the result, with `VECTORS` vectors of
//! columns each. Every output element is the chain `acc = fma(x, w, acc)` for ascending `k`. Long chains are cut into
//! blocks of `k`. A block continues from the stored result of the block before, so blocks do not change the bits. A
//! *panel* is a block of columns of the packed weights (`pack`).

use super::lanes::Lanes;
use super::rows::Rows;
use std::ops::Range;

/// The product over one block of `k`: `out[i][j] = start[i][j] + sum_k a[i, k] * b[k, j]`, for each row `i` of the
/// tile.
///
/// The layout of `a` (row stride and `k` stride, in floats) is a constant of the tile function.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) a: *const f32,
    /// One pointer per row, used by the tile functions that read operand rows directly.
    pub(super) a_rows: *const *const f32,
    /// First panel of this tile. Element `(k, j)` of panel `p` is at `b + p * b_panel + k * b_step + j`.
    pub(super) b: *const f32,
    pub(super) b_panel: usize,
    pub(super) b_step: usize,
    pub(super) k: usize,
    pub(super) prefetch: Prefetch,
    /// One pointer per row to the start of its accumulators, column 0 of the whole product; null means zero.
    pub(super) start: *const *const f32,
    /// True if the chains start from zero, and the start is added to their ends. Only transposed tiles can.
    pub(super) adds_start: bool,
    /// Column 0 of the whole product in the tile's first row.
    pub(super) out: *mut f32,
    pub(super) out_stride: usize,
    /// First column of the tile in the whole product, and the number of its columns that exist.
    pub(super) column: usize,
    pub(super) columns: usize,
}

/// The weights that a tall tile prefetches: the width of a panel at `from`, then again `step` floats further, and so
/// on.
#[derive(Clone, Copy)]
pub(super) struct Prefetch {
    from: *const f32,
    step: usize,
    when: When,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// At every step of `k`, to the L1 cache.
    EveryStep,
    /// At every fourth step, to the L2 cache.
    EveryFourth,
    Never,
}

impl Prefetch {
    /// The prefetch distance of a single tile in steps of `k`: two KiB in the widest panel.
    const STEPS: usize = 16;

    /// For tiles whose panel is in the L1 cache.
    pub(super) const NOTHING: Prefetch = Prefetch { from: std::ptr::null(), step: 0, when: When::Never };

    /// For a tile that alone reads its panel. The rows of weights in the panel are `step` floats apart.
    pub(super) fn single_tile(b: *const f32, step: usize) -> Self {
        Prefetch { from: b.wrapping_add(Self::STEPS * step), step, when: When::EveryStep }
    }

    /// For tile `index` of several tiles that read one panel of `len` floats one after the other, with `step` floats
    /// per step of `k`. Each of the first four tiles prefetches a quarter of the next panel.
    pub(super) fn shared(b: *const f32, step: usize, len: usize, index: usize) -> Self {
        let when = if index < STEPS { When::EveryFourth } else { When::Never };
        Prefetch { from: b.wrapping_add(len + len / STEPS * index), step, when }
    }
}

/// A register tile of a fixed shape.
///
/// # Safety
/// The instruction set of the function is available. For every row `i` of the function's shape, every `k` below
/// `tile.k` and every column `j` below `tile.columns`: `a` (or `a_rows[i] + k`) is readable, `start[i]` is null or
/// readable at `column + j`, and `out` is writable at `i * out_stride + column + j` and overlaps no operand. `b` is
/// readable over the whole width of every panel; a limited function reads only existing columns. The last panel has at
/// least one column.
pub(super) type TileFn = unsafe fn(&Tile);

/// The `ROW` of a tile function that finds `a[i, k]` at `a_rows[i] + k`. Other functions find it at
/// `a + i * ROW + k * K`.
pub(super) const DIRECT: usize = usize::MAX;

/// The `ROW` of the transposed tiles.
pub(super) const TRANSPOSED: usize = 1;

/// Floats in a cache line.
const LINE: usize = 16;

/// Steps of `k` per iteration of the unrolled loops.
const STEPS: usize = 4;

/// The number of accumulators from which a tile of one panel prefetches. Loads limit tiles with fewer accumulators, so
/// prefetching slows them down.
const TALL: usize = 12;

/// The body of every [`TileFn`]. A `LIMITED` tile reads columns of `b` up to `columns`.
///
/// # Safety
/// As for [`TileFn`].
#[inline(always)]
pub(super) unsafe fn run<
    L: Lanes,
    const ROWS: usize,
    const VECTORS: usize,
    const ROW: usize,
    const K: usize,
    const LIMITED: bool,
>(
    t: &Tile,
) {
    // SAFETY: every pointer below is inside what the caller guarantees: rows below ROWS, vectors below VECTORS whose
    // columns are limited by `columns` where they are loaded or stored, and `k` below `t.k`.
    unsafe {
        let adds_start = ROW == TRANSPOSED && t.adds_start;
        let mut acc = [[L::splat(0.0); VECTORS]; ROWS];
        if !adds_start {
            load_start::<L, ROWS, VECTORS, false>(t, &mut acc);
        }
        let mut rows = [std::ptr::null::<f32>(); ROWS];
        if ROW == DIRECT {
            for (i, row) in rows.iter_mut().enumerate() {
                *row = *t.a_rows.add(i);
            }
        }
        let mut b = t.b;
        let mut k = 0;
        macro_rules! x {
            ($row:expr) => {
                L::splat(if ROW == DIRECT { *rows[$row].add(k) } else { *t.a.add($row * ROW + k * K) })
            };
        }
        macro_rules! w {
            ($vector:expr) => {{
                let (v, panel) = ($vector, $vector / L::VECTORS);
                let from = b.wrapping_add(panel * t.b_panel + v % L::VECTORS * L::WIDTH);
                if LIMITED { load_limited::<L>(from, t.columns, v * L::WIDTH) } else { L::load(from) }
            }};
        }
        // One step of the chains. The smaller of the two operands of a step (rows or vectors) stays in registers, and
        // the larger one is loaded piece by piece. Otherwise the accumulators would spill. A single row needs no
        // register for weights. These are macros, because a closure would keep the variables that it borrows in memory.
        macro_rules! step {
            () => {
                if ROWS < VECTORS && ROWS > 1 {
                    let x: [_; ROWS] = std::array::from_fn(|i| x!(i));
                    for v in 0..VECTORS {
                        let w = w!(v);
                        for (row, &x) in acc.iter_mut().zip(&x) {
                            row[v] = L::fma(x, w, row[v]);
                        }
                    }
                } else {
                    let w: [_; VECTORS] = std::array::from_fn(|v| w!(v));
                    for (i, row) in acc.iter_mut().enumerate() {
                        let x = x!(i);
                        for (slot, &w) in row.iter_mut().zip(&w) {
                            *slot = L::fma(x, w, *slot);
                        }
                    }
                }
                b = b.wrapping_add(t.b_step);
                k += 1;
            };
        }
        let mut ahead = t.prefetch.from;
        macro_rules! prefetch {
            ($level:ident) => {
                for line in (0..L::PANEL).step_by(LINE) {
                    L::$level(ahead.wrapping_add(line));
                }
                ahead = ahead.wrapping_add(t.prefetch.step);
            };
        }
        // Steps in groups of four amortise counting and prefetching. Several panels leave no registers for that.
        let tall = !LIMITED && VECTORS == L::VECTORS && ROWS * VECTORS >= TALL;
        if tall && t.prefetch.when == When::EveryFourth {
            while k + STEPS <= t.k {
                prefetch!(prefetch_second);
                step!();
                step!();
                step!();
                step!();
            }
        } else if tall && t.prefetch.when == When::EveryStep {
            while k + STEPS <= t.k {
                prefetch!(prefetch_first);
                step!();
                prefetch!(prefetch_first);
                step!();
                prefetch!(prefetch_first);
                step!();
                prefetch!(prefetch_first);
                step!();
            }
        } else if !LIMITED && VECTORS <= L::VECTORS {
            while k + STEPS <= t.k {
                step!();
                step!();
                step!();
                step!();
            }
        }
        while k < t.k {
            step!();
        }
        if adds_start {
            load_start::<L, ROWS, VECTORS, true>(t, &mut acc);
        }
        store_accumulators::<L, ROWS, VECTORS>(t, acc);
    }
}

/// Loads the accumulators of each row that has a start, or adds the start to them if `ADDS`.
///
/// # Safety
/// As for [`TileFn`].
#[inline(always)]
unsafe fn load_start<L: Lanes, const ROWS: usize, const VECTORS: usize, const ADDS: bool>(
    t: &Tile,
    acc: &mut [[L::Vector; VECTORS]; ROWS],
) {
    for (i, row) in acc.iter_mut().enumerate() {
        // SAFETY: loads are limited to the columns of the tile, which the caller guarantees for each start row.
        unsafe {
            let start = *t.start.add(i);
            if start.is_null() {
                continue;
            }
            for (v, slot) in row.iter_mut().enumerate() {
                let first = v * L::WIDTH;
                let value = load_limited::<L>(start.wrapping_add(t.column + first), t.columns, first);
                *slot = if ADDS { L::add(value, *slot) } else { value };
            }
        }
    }
}

/// Stores the accumulators to the result rows.
///
/// # Safety
/// As for [`TileFn`].
#[inline(always)]
unsafe fn store_accumulators<L: Lanes, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    acc: [[L::Vector; VECTORS]; ROWS],
) {
    for (i, row) in acc.iter().enumerate() {
        for (v, &value) in row.iter().enumerate() {
            // SAFETY: the caller guarantees the result row; stores are limited to the columns of the tile.
            unsafe {
                let out = t.out.add(i * t.out_stride + t.column);
                store_limited::<L>(out.wrapping_add(v * L::WIDTH), value, t.columns, v * L::WIDTH);
            }
        }
    }
}

/// Loads the vector at `from`, which holds columns `first..` of a tile with `columns` columns. Lanes beyond the last
/// column are zero; their memory is not read.
///
/// # Safety
/// The instruction set of `L` is available, and `from` is readable for the columns that exist.
#[inline(always)]
unsafe fn load_limited<L: Lanes>(from: *const f32, columns: usize, first: usize) -> L::Vector {
    // SAFETY: only lanes of existing columns are read.
    unsafe {
        if first + L::WIDTH <= columns {
            L::load(from)
        } else if first < columns {
            L::load_first(from, columns - first)
        } else {
            L::splat(0.0)
        }
    }
}

/// Stores a vector at `to`, which holds columns `first..` of a tile with `columns` columns. Lanes beyond the last
/// column are not stored.
///
/// # Safety
/// The instruction set of `L` is available, and `to` is writable for the columns that exist.
#[inline(always)]
unsafe fn store_limited<L: Lanes>(to: *mut f32, value: L::Vector, columns: usize, first: usize) {
    // SAFETY: only lanes of existing columns are written.
    unsafe {
        if first + L::WIDTH <= columns {
            L::store(to, value);
        } else if first < columns {
            L::store_first(to, value, columns - first);
        }
    }
}

/// Adds `columns` columns of rows to `sums`, lanes ascending: `sums[j] = sums[j] + row[first + j]`.
pub(super) struct RowSum<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) lanes: Range<usize>,
    pub(super) first: usize,
    pub(super) columns: usize,
    pub(super) sums: *mut f32,
}

/// # Safety
/// The instruction set of the function is available. The rows are readable and `sums` writable as [`RowSum`] says, without
/// overlap.
pub(super) type RowSumFn = unsafe fn(&RowSum<'_>);

/// The body of every [`RowSumFn`].
///
/// # Safety
/// As for [`RowSumFn`].
#[inline(always)]
pub(super) unsafe fn row_sum<L: Lanes>(s: &RowSum<'_>) {
    const VECTORS: usize = 8;
    // SAFETY: only columns below `s.columns` of rows of `s.lanes` are accessed, which the caller guarantees.
    unsafe {
        let mut first = 0;
        while first < s.columns {
            let left = s.columns - first;
            let mut acc = [L::splat(0.0); VECTORS];
            for (v, slot) in acc.iter_mut().enumerate() {
                let at = v * L::WIDTH;
                *slot = load_limited::<L>(s.sums.wrapping_add(first + at), left, at);
            }
            for lane in s.lanes.clone() {
                let from = s.rows.row(lane).wrapping_add(s.first + first);
                for (v, slot) in acc.iter_mut().enumerate() {
                    let at = v * L::WIDTH;
                    *slot = L::add(*slot, load_limited::<L>(from.wrapping_add(at), left, at));
                }
            }
            for (v, &value) in acc.iter().enumerate() {
                let at = v * L::WIDTH;
                store_limited::<L>(s.sums.wrapping_add(first + at), value, left, at);
            }
            first += VECTORS * L::WIDTH;
        }
    }
}
