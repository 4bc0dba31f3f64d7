//! The product kernels of every instruction set: one table of functions each, all made from the same bodies.
//!
//! The table has a shape `rows x panels` if two conditions hold. Its accumulators, the weights of one `k` and one
//! broadcast fit the registers (32 with AVX-512 and NEON, 16 with AVX2). And it has enough accumulators to hide the
//! latency of the fused multiply-add: wide and low tiles for few rows, one panel and tall tiles for many.

use super::attention::{AttentionFn, GradientFn, PullFn};
use super::gathered_fold::GatheredFoldFn;
use super::isa::Isa;
use super::tile::{RowSumFn, TileFn};
use autobatch_ir::graph::ListFold;

/// The maximum number of rows of a tile on any instruction set.
pub(super) const MAX_ROWS: usize = 14;
/// Steps of `k` between two reloads of the accumulators.
pub(super) const K_BLOCK: usize = 256;
/// Floats between two gathered operand rows: no multiple of 1024, so that rows map to different cache sets.
pub(super) const GATHERED_ROW: usize = K_BLOCK + 16;
/// Columns of the widest panel of any instruction set.
pub(super) const MAX_PANEL: usize = 32;
/// Columns of the narrowest panel of any instruction set.
pub(super) const MIN_PANEL: usize = 16;
/// The maximum of [`KernelSet::step`].
pub(super) const MAX_STEP: usize = 16;

/// The kernels of one instruction set.
pub(super) struct KernelSet {
    /// Columns of a panel of packed weights.
    pub(super) panel: usize,
    /// Rows of the tallest tile.
    pub(super) rows: usize,
    /// The maximum number of panels side by side, for `rows` rows.
    pub(super) panels: fn(rows: usize) -> usize,
    /// Tiles whose operand rows are gathered `GATHERED_ROW` apart.
    pub(super) gathered: fn(rows: usize, panels: usize) -> TileFn,
    /// Tiles whose operand rows are read through pointers.
    pub(super) direct: fn(rows: usize, panels: usize) -> TileFn,
    /// Tiles with gathered operand rows and one panel; they read columns of `b` up to a limit.
    pub(super) limited: fn(rows: usize) -> TileFn,
    /// Floats between two rows of the packed first operand of a weight gradient. It is little more than the rows of a
    /// tile, because the packed block should stay in the L2 cache.
    pub(super) step: usize,
    /// Tiles of one panel whose first operand is packed with one step of `k` every `step` floats.
    pub(super) transposed: fn(rows: usize) -> TileFn,
    /// Columns of a vector. The `narrow` tiles compute panels with at most this many columns.
    pub(super) vector: usize,
    pub(super) narrow_gathered: fn(rows: usize) -> TileFn,
    pub(super) narrow_direct: fn(rows: usize) -> TileFn,
    pub(super) narrow_transposed: fn(rows: usize) -> TileFn,
    pub(super) row_sum: RowSumFn,
    pub(super) gathered_fold: fn(ListFold) -> Option<GatheredFoldFn>,
    pub(super) attention: AttentionFn,
    pub(super) attention_gradients: GradientFn,
    pub(super) attention_pull: PullFn,
    /// Runs independent chains of fused multiply-adds, for the measurement of the arithmetic peak. Returns their lanes.
    pub(super) chains: unsafe fn(steps: usize) -> usize,
}

impl KernelSet {
    /// The kernels of `isa`; the portable ones for an instruction set of another architecture.
    pub(super) fn of(isa: Isa) -> &'static KernelSet {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::SET,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::SET,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => &neon::SET,
            _ => &portable::SET,
        }
    }
}

/// A function from a shape to its tile. The constants after the type are those of [`tile::run`](super::tile::run) after
/// the shape. Callers request shapes that [`KernelSet`] offers.
macro_rules! shapes {
    ($lanes:ty, $row:expr, $k:expr, $limited:expr; $($rows:literal : $($panels:literal)+);+) => {
        |rows, panels| match (rows, panels) {
            $($(($rows, $panels) => {
                tile::<$rows, { $panels * <$lanes as Lanes>::VECTORS }, { $row }, { $k }, $limited>
            })+)+
            _ => unreachable!("no tile of {rows} rows and {panels} panels"),
        }
    };
}

/// A function from a number of rows to its tile of `$vectors` vectors.
macro_rules! heights {
    ($vectors:expr, $row:expr, $k:expr, $limited:expr; $($rows:literal)+) => {
        |rows| match rows {
            $($rows => tile::<$rows, { $vectors }, { $row }, { $k }, $limited>,)+
            _ => unreachable!("no tile of {rows} rows"),
        }
    };
}

macro_rules! kernel_set {
    (
        $(#[$meta:meta])* $module:ident, $lanes:ident, $($feature:literal)?,
        panels [$($max:literal)+],
        shapes { $($rows:literal : $($panels:literal)+);+ },
        heights [$($height:literal)+],
        chains $chains:literal
    ) => {
        $(#[$meta])*
        mod $module {
            use crate::kernels::attention::{self, Attention, AttentionGradient, AttentionPull, StageSpace};
            use crate::kernels::gathered_fold::{self, GatheredFold};
            use crate::kernels::kernel_set::{GATHERED_ROW, KernelSet};
            use crate::kernels::lanes::{$lanes, Lanes};
            use crate::kernels::peak::run_chains;
            use crate::kernels::tile::{DIRECT, RowSum, TRANSPOSED, Tile, row_sum as add_rows, run};
            use autobatch_ir::graph::ListFold;

            const MAX_PANELS: &[usize] = &[$($max),+];
            const STEP: usize = MAX_PANELS.len().next_multiple_of(8);
            /// Lanes of a block of attention: two vectors each are the accumulators of the tallest tile of two.
            const BLOCK: usize = MAX_PANELS.len();

            pub(super) static SET: KernelSet = KernelSet {
                panel: <$lanes as Lanes>::PANEL,
                rows: MAX_PANELS.len(),
                panels: |rows| MAX_PANELS[rows - 1],
                gathered: shapes!($lanes, GATHERED_ROW, 1, false; $($rows : $($panels)+);+),
                direct: shapes!($lanes, DIRECT, 1, false; $($rows : $($panels)+);+),
                limited: heights!(<$lanes as Lanes>::VECTORS, GATHERED_ROW, 1, true; $($height)+),
                step: STEP,
                transposed: heights!(<$lanes as Lanes>::VECTORS, TRANSPOSED, STEP, false; $($height)+),
                vector: <$lanes as Lanes>::WIDTH,
                narrow_gathered: heights!(1, GATHERED_ROW, 1, false; $($height)+),
                narrow_direct: heights!(1, DIRECT, 1, false; $($height)+),
                narrow_transposed: heights!(1, TRANSPOSED, STEP, false; $($height)+),
                row_sum,
                gathered_fold: |fold| match fold {
                    ListFold::Sum => Some(gathered_fold::<{ gathered_fold::SUM }>),
                    ListFold::Mean => Some(gathered_fold::<{ gathered_fold::MEAN }>),
                    ListFold::Max => Some(gathered_fold::<{ gathered_fold::MAX }>),
                    ListFold::LogSumExp | ListFold::ArgMax => None,
                },
                attention,
                attention_gradients,
                attention_pull,
                chains,
            };

            /// # Safety
            /// As for `TileFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn tile<
                const ROWS: usize,
                const VECTORS: usize,
                const ROW: usize,
                const K: usize,
                const LIMITED: bool,
            >(
                t: &Tile,
            ) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { run::<$lanes, ROWS, VECTORS, ROW, K, LIMITED>(t) }
            }

            /// # Safety
            /// As for `RowSumFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn row_sum(s: &RowSum<'_>) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { add_rows::<$lanes>(s) }
            }

            /// # Safety
            /// As for `GatheredFoldFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn gathered_fold<const FOLD: u8>(f: &GatheredFold<'_>) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { gathered_fold::run::<$lanes, FOLD>(f) }
            }

            /// # Safety
            /// As for `AttentionFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn attention<'a>(a: &Attention<'_, 'a>, space: StageSpace<'_, 'a>) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { attention::run::<$lanes, BLOCK>(a, space) }
            }

            /// # Safety
            /// As for `GradientFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn attention_gradients<'a>(a: &AttentionGradient<'_, 'a>, space: StageSpace<'_, 'a>) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { attention::gradients::<$lanes, BLOCK>(a, space) }
            }

            /// # Safety
            /// As for `PullFn`.
            $(#[target_feature(enable = $feature)])?
            unsafe fn attention_pull<'a>(a: &AttentionPull<'_, 'a>, space: StageSpace<'_, 'a>) {
                // SAFETY: the caller's contract is that of the body.
                unsafe { attention::pull::<$lanes, BLOCK>(a, space) }
            }

            /// # Safety
            /// The instruction set is available.
            $(#[target_feature(enable = $feature)])?
            unsafe fn chains(steps: usize) -> usize {
                // SAFETY: as for this function.
                unsafe { run_chains::<$lanes, $chains>(steps) }
            }
        }
    };
}

kernel_set! {
    #[cfg(target_arch = "x86_64")]
    avx512, Avx512, "avx512f",
    panels [8 6 4 3 2 2 1 1 1 1 1 1 1 1],
    shapes {
        1: 1 2 3 4 5 6 7 8; 2: 1 2 3 4 5 6; 3: 1 2 3 4; 4: 1 2 3; 5: 1 2; 6: 1 2;
        7: 1; 8: 1; 9: 1; 10: 1; 11: 1; 12: 1; 13: 1; 14: 1
    },
    heights [1 2 3 4 5 6 7 8 9 10 11 12 13 14],
    chains 20
}

kernel_set! {
    #[cfg(target_arch = "x86_64")]
    avx2, Avx2, "avx2,fma",
    panels [5 3 2 1 1 1],
    shapes { 1: 1 2 3 4 5; 2: 1 2 3; 3: 1 2; 4: 1; 5: 1; 6: 1 },
    heights [1 2 3 4 5 6],
    chains 12
}

kernel_set! {
    #[cfg(target_arch = "aarch64")]
    neon, Neon, "neon",
    panels [4 3 2 1 1 1],
    shapes { 1: 1 2 3 4; 2: 1 2 3; 3: 1 2; 4: 1; 5: 1; 6: 1 },
    heights [1 2 3 4 5 6],
    chains 16
}

kernel_set! {
    portable, Portable, ,
    panels [2 1 1 1],
    shapes { 1: 1 2; 2: 1; 3: 1; 4: 1 },
    heights [1 2 3 4],
    chains 16
}
