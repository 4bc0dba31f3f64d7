//! The register tile: the one loop in which all products spend their time.
//!
//! A tile keeps `ROWS x VECTORS` accumulators in registers and walks `k` upwards once, so that every output element is the chain
//! `acc = fma(x, w, acc)` in the order of `k`. Blocks of `k` continue the chain by starting from what the block before wrote: a store and a
//! load keep the bits.

use super::lanes::Lanes;

/// The product over one block of `k`: `out[i][j] = start[i][j] + sum_k a[i, k] * b[k, j]`, for `i` below the tile's rows.
///
/// Where `a` keeps its elements is a constant of the tile function (row stride and `k` stride, in floats).
pub(super) struct Tile {
    pub(super) a: *const f32,
    /// One pointer for each row, used by the tile functions that read rows in place.
    pub(super) a_rows: *const *const f32,
    /// First panel of this tile; element `(k, j)` of panel `p` is at `b + p * b_panel + k * b_step + j`.
    pub(super) b: *const f32,
    pub(super) b_panel: usize,
    pub(super) b_step: usize,
    pub(super) k: usize,
    pub(super) ahead: Ahead,
    /// One pointer for each row to where its accumulators start from, column 0 of the whole product; null is zero.
    pub(super) start: *const *const f32,
    /// Column 0 of the whole product in the tile's first row.
    pub(super) out: *mut f32,
    pub(super) out_stride: usize,
    /// First column of the tile in the whole product, and how many of its columns exist.
    pub(super) column: usize,
    pub(super) columns: usize,
}

/// The weights that a tall tile asks for while it works, a panel's width at a time from `from` on, every `step` floats.
pub(super) struct Ahead {
    from: *const f32,
    step: usize,
    when: When,
}

/// When a tall tile asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// At every step of `k`, for the first-level cache.
    EveryStep,
    /// At every fourth, for the second-level cache.
    EveryFourth,
    Never,
}

impl Ahead {
    /// Steps of `k` that a lone tile asks ahead: two KiB of the widest panel.
    const STEPS: usize = 16;

    /// For tiles whose panel is in the first-level cache.
    pub(super) const NOTHING: Ahead = Ahead { from: std::ptr::null(), step: 0, when: When::Never };

    /// For a tile that is the only one to read its panel, whose rows of weights are `step` floats apart.
    pub(super) fn lone(b: *const f32, step: usize) -> Self {
        Ahead { from: b.wrapping_add(Self::STEPS * step), step, when: When::EveryStep }
    }

    /// For the `index`th of several tiles that read a panel of `len` floats, `step` a step of `k`, one after the other: four of them ask
    /// for a quarter of the next panel each.
    pub(super) fn shared(b: *const f32, step: usize, len: usize, index: usize) -> Self {
        let when = if index < STEPS { When::EveryFourth } else { When::Never };
        Ahead { from: b.wrapping_add(len + len / STEPS * index), step, when }
    }
}

/// One register tile of a fixed shape.
///
/// # Safety
/// The instruction set of the function must be available. For every row `i` of the function's shape, every `k` below `tile.k` and every
/// column `j` below `tile.columns`: `a` (or `a_rows[i] + k`) is readable, `start[i]` is null or readable at `column + j`, `out` is writable at
/// `i * out_stride + column + j` and overlaps neither operand. `b` is readable over the whole width of every panel, unless the function is of
/// the cut kind, which touches only existing columns. At least one column of the last panel exists.
pub(super) type TileFn = unsafe fn(&Tile);

/// How a tile function finds `a[i, k]`: at `a + i * ROW + k * K`, or at `a_rows[i] + k` where `ROW` is this.
pub(super) const IN_PLACE: usize = usize::MAX;

/// Floats in a cache line.
const LINE: usize = 16;

/// Steps of `k` between two counts of them.
const STEPS: usize = 4;

/// From so many accumulators of one panel on, a tile asks ahead: a lower one loads so much that asking slows it down.
const TALL: usize = 12;

/// The body of every [`TileFn`]; `CUT` reads the columns of `b` under the limit `columns`.
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
    const CUT: bool,
>(
    t: &Tile,
) {
    // SAFETY: every pointer formed below is inside what the caller vouches for: rows i < ROWS, vectors v < VECTORS whose columns are limited
    // by `columns` where they are loaded from `start` or stored to `out`, and k < t.k.
    unsafe {
        let mut acc = [[L::splat(0.0); VECTORS]; ROWS];
        for (i, row) in acc.iter_mut().enumerate() {
            let start = *t.start.add(i);
            if !start.is_null() {
                for (v, slot) in row.iter_mut().enumerate() {
                    *slot = load_limited::<L>(
                        start.wrapping_add(t.column + v * L::WIDTH),
                        t.columns,
                        v * L::WIDTH,
                    );
                }
            }
        }
        let mut rows = [std::ptr::null::<f32>(); ROWS];
        if ROW == IN_PLACE {
            for (i, row) in rows.iter_mut().enumerate() {
                *row = *t.a_rows.add(i);
            }
        }
        let mut b = t.b;
        let mut k = 0;
        macro_rules! x {
            ($row:expr) => {
                L::splat(if ROW == IN_PLACE { *rows[$row].add(k) } else { *t.a.add($row * ROW + k * K) })
            };
        }
        macro_rules! w {
            ($vector:expr) => {{
                let (v, panel) = ($vector, $vector / L::VECTORS);
                let from = b.wrapping_add(panel * t.b_panel + v % L::VECTORS * L::WIDTH);
                if CUT { load_limited::<L>(from, t.columns, v * L::WIDTH) } else { L::load(from) }
            }};
        }
        // One step of the chains. What a step has less of, rows or vectors, stands in registers while the other passes by, or accumulators would
        // have to leave them; a lone row needs no register for weights. (Macros, because what a closure borrows stays in memory.)
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
        let mut ahead = t.ahead.from;
        macro_rules! ask {
            ($prefetch:ident) => {
                for line in (0..L::PANEL).step_by(LINE) {
                    L::$prefetch(ahead.wrapping_add(line));
                }
                ahead = ahead.wrapping_add(t.ahead.step);
            };
        }
        // Steps by fours, so that counting and asking cost little beside them; several panels leave no registers for that.
        let tall = !CUT && VECTORS == L::VECTORS && ROWS * VECTORS >= TALL;
        if tall && t.ahead.when == When::EveryFourth {
            while k + STEPS <= t.k {
                ask!(prefetch_second);
                step!();
                step!();
                step!();
                step!();
            }
        } else if tall && t.ahead.when == When::EveryStep {
            while k + STEPS <= t.k {
                ask!(prefetch_first);
                step!();
                ask!(prefetch_first);
                step!();
                ask!(prefetch_first);
                step!();
                ask!(prefetch_first);
                step!();
            }
        } else if !CUT && VECTORS <= L::VECTORS {
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
        for (i, row) in acc.iter().enumerate() {
            let out = t.out.add(i * t.out_stride + t.column);
            for (v, &value) in row.iter().enumerate() {
                let first = v * L::WIDTH;
                if first + L::WIDTH <= t.columns {
                    L::store(out.add(first), value);
                } else if first < t.columns {
                    L::store_first(out.add(first), value, t.columns - first);
                }
            }
        }
    }
}

/// The vector at `from`, which holds columns `first..` of a tile that has `columns`; lanes beyond are zero and not read.
///
/// # Safety
/// The instruction set of `L` must be available, and `from` readable for the columns that exist.
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

/// Adds `rows` rows to `sums`, rows ascending, `columns` columns wide: `sums[j] = sums[j] + from[r * stride + j]`.
pub(super) struct RowSum {
    pub(super) from: *const f32,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) sums: *mut f32,
}

/// # Safety
/// The instruction set of the function must be available; `from` must be readable and `sums` writable as [`RowSum`] says, apart from each other.
pub(super) type RowSumFn = unsafe fn(&RowSum);

/// The body of every [`RowSumFn`].
///
/// # Safety
/// As for [`RowSumFn`].
#[inline(always)]
pub(super) unsafe fn row_sum<L: Lanes>(s: &RowSum) {
    const VECTORS: usize = 8;
    // SAFETY: columns below `s.columns` and rows below `s.rows` only, which the caller vouches for.
    unsafe {
        let mut first = 0;
        while first < s.columns {
            let left = s.columns - first;
            let mut acc = [L::splat(0.0); VECTORS];
            for (v, slot) in acc.iter_mut().enumerate() {
                let at = v * L::WIDTH;
                *slot = load_limited::<L>(s.sums.wrapping_add(first + at), left, at);
            }
            let mut from = s.from.wrapping_add(first);
            for _ in 0..s.rows {
                for (v, slot) in acc.iter_mut().enumerate() {
                    let at = v * L::WIDTH;
                    *slot = L::add(*slot, load_limited::<L>(from.wrapping_add(at), left, at));
                }
                from = from.wrapping_add(s.stride);
            }
            for (v, &value) in acc.iter().enumerate() {
                let at = v * L::WIDTH;
                if at + L::WIDTH <= left {
                    L::store(s.sums.add(first + at), value);
                } else if at < left {
                    L::store_first(s.sums.add(first + at), value, left - at);
                }
            }
            first += VECTORS * L::WIDTH;
        }
    }
}
