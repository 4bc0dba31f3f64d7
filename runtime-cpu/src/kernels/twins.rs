//! The twins of every kernel: one table of functions for each instruction set, all made from the same bodies.
//!
//! A shape `rows x panels` is in the table where its accumulators, the weights of one `k` and one broadcast fit the registers (32 with
//! AVX-512 and NEON, 16 with AVX2) and where there are enough accumulators to hide the latency of the fused multiply-add: wide and low for few
//! rows, one panel and tall for many.

use super::isa::Isa;
use super::tile::{RowSumFn, TileFn};

/// The most rows a tile of any instruction set has.
pub(super) const MOST_ROWS: usize = 14;
/// Steps of `k` between two reloads of the accumulators.
pub(super) const K_BLOCK: usize = 256;
/// Floats between two rows of a gathered block of operand rows. Not a multiple of 1024 floats, so that the rows fall into different cache sets.
pub(super) const GATHERED_ROW: usize = K_BLOCK + 16;
/// Floats between two rows of a packed block of the first operand of a weight gradient, at most.
pub(super) const MOST_STEP: usize = 16;

/// The kernels of one instruction set.
pub(super) struct Twin {
    /// Columns of a panel of packed weights.
    pub(super) panel: usize,
    /// The tallest tile.
    pub(super) rows: usize,
    /// Most panels side by side, for `rows` rows.
    pub(super) panels: fn(rows: usize) -> usize,
    /// Operand rows gathered `GATHERED_ROW` apart.
    pub(super) gathered: fn(rows: usize, panels: usize) -> TileFn,
    /// Operand rows in place.
    pub(super) in_place: fn(rows: usize, panels: usize) -> TileFn,
    /// Gathered operand rows, one panel, columns of `b` read under the limit.
    pub(super) cut: fn(rows: usize) -> TileFn,
    /// Floats between two rows of a packed block of the first operand of a weight gradient: room for a tile's rows, and little more,
    /// because the block should stay in the second-level cache.
    pub(super) step: usize,
    /// The first operand packed with one step of `k` every `step` floats; one panel.
    pub(super) transposed: fn(rows: usize) -> TileFn,
    /// Columns of a vector. Where a panel has no more of them left, the functions that follow compute those alone.
    pub(super) vector: usize,
    pub(super) narrow_gathered: fn(rows: usize) -> TileFn,
    pub(super) narrow_in_place: fn(rows: usize) -> TileFn,
    pub(super) narrow_transposed: fn(rows: usize) -> TileFn,
    pub(super) row_sum: RowSumFn,
}

impl Twin {
    /// The kernels of `isa`; the portable ones for an instruction set of another architecture, which no machine of this one has.
    pub(super) fn of(isa: Isa) -> &'static Twin {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::TWIN,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::TWIN,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => &neon::TWIN,
            _ => &portable::TWIN,
        }
    }
}

/// A function from a shape to its tile. Shapes outside of the table are never asked for: callers split by `Twin::rows` and `Twin::panels`.
macro_rules! shapes {
    ($function:ident, $lanes:ty, $($rows:literal : $($panels:literal)+);+) => {
        |rows, panels| match (rows, panels) {
            $($(($rows, $panels) => $function::<$rows, { $panels * <$lanes as Lanes>::VECTORS }>,)+)+
            _ => unreachable!("no tile of {rows} rows and {panels} panels"),
        }
    };
}

/// A function from a number of rows to its tile of so many vectors.
macro_rules! heights {
    ($function:ident, $vectors:expr, $($rows:literal)+) => {
        |rows| match rows {
            $($rows => $function::<$rows, { $vectors }>,)+
            _ => unreachable!("no tile of {rows} rows"),
        }
    };
}

macro_rules! twin {
    (
        $(#[$meta:meta])* $module:ident, $lanes:ident, $($feature:literal)?,
        panels [$($most:literal)+],
        shapes { $($rows:literal : $($panels:literal)+);+ },
        heights [$($height:literal)+]
    ) => {
        $(#[$meta])*
        mod $module {
            use crate::kernels::lanes::{$lanes, Lanes};
            use crate::kernels::tile::{self, IN_PLACE, RowSum, Tile};
            use crate::kernels::twins::{GATHERED_ROW, Twin};

            const MOST_PANELS: &[usize] = &[$($most),+];
            const STEP: usize = MOST_PANELS.len().next_multiple_of(8);

            pub(super) static TWIN: Twin = Twin {
                panel: <$lanes as Lanes>::PANEL,
                rows: MOST_PANELS.len(),
                panels: |rows| MOST_PANELS[rows - 1],
                gathered: shapes!(gathered, $lanes, $($rows : $($panels)+);+),
                in_place: shapes!(in_place, $lanes, $($rows : $($panels)+);+),
                cut: heights!(cut, <$lanes as Lanes>::VECTORS, $($height)+),
                step: STEP,
                transposed: heights!(transposed, <$lanes as Lanes>::VECTORS, $($height)+),
                vector: <$lanes as Lanes>::WIDTH,
                narrow_gathered: heights!(gathered, 1, $($height)+),
                narrow_in_place: heights!(in_place, 1, $($height)+),
                narrow_transposed: heights!(transposed, 1, $($height)+),
                row_sum,
            };

            /// # Safety
            /// As for `TileFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn gathered<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { tile::run::<$lanes, ROWS, VECTORS, GATHERED_ROW, 1, false>(t) }
            }

            /// # Safety
            /// As for `TileFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn in_place<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { tile::run::<$lanes, ROWS, VECTORS, IN_PLACE, 1, false>(t) }
            }

            /// # Safety
            /// As for `TileFn`, of the cut kind.
            $(#[target_feature(enable = $feature)])?
            unsafe fn cut<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { tile::run::<$lanes, ROWS, VECTORS, GATHERED_ROW, 1, true>(t) }
            }

            /// # Safety
            /// As for `TileFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn transposed<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { tile::run::<$lanes, ROWS, VECTORS, 1, STEP, false>(t) }
            }

            /// # Safety
            /// As for `RowSumFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn row_sum(s: &RowSum) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { tile::row_sum::<$lanes>(s) }
            }
        }
    };
}

twin! {
    #[cfg(target_arch = "x86_64")]
    avx512, Avx512, "avx512f",
    panels [8 6 4 3 2 2 1 1 1 1 1 1 1 1],
    shapes {
        1: 1 2 3 4 5 6 7 8; 2: 1 2 3 4 5 6; 3: 1 2 3 4; 4: 1 2 3; 5: 1 2; 6: 1 2;
        7: 1; 8: 1; 9: 1; 10: 1; 11: 1; 12: 1; 13: 1; 14: 1
    },
    heights [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
}

twin! {
    #[cfg(target_arch = "x86_64")]
    avx2, Avx2, "avx2,fma",
    panels [5 3 2 1 1 1],
    shapes { 1: 1 2 3 4 5; 2: 1 2 3; 3: 1 2; 4: 1; 5: 1; 6: 1 },
    heights [1 2 3 4 5 6]
}

twin! {
    #[cfg(target_arch = "aarch64")]
    neon, Neon, "neon",
    panels [4 3 2 1 1 1],
    shapes { 1: 1 2 3 4; 2: 1 2 3; 3: 1 2; 4: 1; 5: 1; 6: 1 },
    heights [1 2 3 4 5 6]
}

twin! {
    portable, Portable, ,
    panels [2 1 1 1],
    shapes { 1: 1 2; 2: 1; 3: 1; 4: 1 },
    heights [1 2 3 4]
}
