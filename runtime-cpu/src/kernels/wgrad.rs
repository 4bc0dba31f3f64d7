//! Gradients of weights and biases: sums over the rows of a minibatch.
//!
//! **Bits.** `dw[k, n]` is the chain `acc = start; for r ascending: acc = fma(x[r, k], dy[r, n], acc)`. `db[n]` is the
//! chain `acc = start; for r ascending: acc = acc + dy[r, n]`. `r` visits the rows of all runs, in order. Nothing else
//! affects the result: threads split the rows and columns of `dw`, never a sum. Over several shards, each has a chain from
//! zero, and the chains are added in the tree of the shards.
//!
//! **Loops of `dw`**, from the outermost to the innermost:
//! 1. Stripes of columns. The stripe of `dw` stays in the L2 cache until its sums are complete.
//! 2. Blocks of rows of the sum. Each block packs its rows of dY into panels.
//! 3. Blocks of register tiles of rows of `dw`. Each packs its columns of X, so that the columns of a tile are contiguous.
//! 4. Panels and register tiles. A tile continues from the stored values of `dw`.
//!
//! The shards of one block of rows are added tile by tile, so their sums stay in the L1 cache. [`Blocking`] has the sizes.
//!
//! Packing prefetches rows a few steps ahead, because hardware cannot predict the rows that a table names.

use std::ops::Range;
use std::ptr;
use std::slice::Chunks;

use super::error::{KernelError, same_size};
use super::isa::Isa;
use super::kernel_set::{KernelSet, MAX_PANEL, MAX_ROWS, MAX_STEP, MIN_PANEL};
use super::memory::{GradientRows, Scratch, prefetch};
use super::product::share;
use super::rows::RowsMut;
use super::runs::{Cursor, RowsRun, check_runs};
use super::sharded_wgrad::{Shards, TileOfShards};
use super::tile::{Prefetch, RowSum, Tile};

/// The maximum number of rows of one chain that are packed at once.
pub(crate) const CHAIN_ROWS: usize = 256;
/// The maximum number of rows of several shards, which are packed at once.
pub(super) const SHARDS_ROWS: usize = 1024;
/// The maximum number of register tiles whose X is packed at once.
const TILES: usize = 32;
/// The maximum number of columns of a stripe.
const STRIPE: usize = 512;
/// The maximum number of packed floats of a stripe of dY. Half of it suffices for one chain.
const STRIPE_FLOATS: usize = 2 * STRIPE * CHAIN_ROWS;
/// The prefetch distance, in rows.
const AHEAD: usize = 6;
/// Floats in a cache line.
const LINE: usize = 16;
/// Unused floats after each packed panel of dY, so that panels map to different cache sets.
const PANEL_GAP: usize = 16;

/// The number of floats of scratch space of a call, at least what any instruction set needs.
pub(crate) const GRADIENT_SCRATCH_FLOATS: usize =
    TILES * Blocking::OF_CHAIN.tile_floats(MAX_STEP) + STRIPE_FLOATS + STRIPE / MIN_PANEL * PANEL_GAP;

/// The sizes of what is packed at once. Both operands stay in the L2 cache, or little more.
#[derive(Clone, Copy)]
struct Blocking {
    /// Rows of the sum.
    rows: usize,
    /// Register tiles of X.
    tiles: usize,
    /// Columns of dY, a multiple of every panel.
    columns: usize,
}

impl Blocking {
    const OF_CHAIN: Self = Self { rows: CHAIN_ROWS, tiles: TILES, columns: STRIPE };

    /// All rows of some shards. With more rows than those of one chain, fewer columns of both operands.
    fn of_shards(rows: usize) -> Self {
        let rows = rows.max(CHAIN_ROWS);
        let columns = (STRIPE_FLOATS / rows / MAX_PANEL * MAX_PANEL).min(STRIPE);
        Self { rows, tiles: TILES * CHAIN_ROWS / rows, columns }
    }

    /// Floats from the packed X of one tile to the next, in most cases no multiple of 1024, so that tiles map to different
    /// cache sets.
    const fn tile_floats(self, step: usize) -> usize {
        self.rows * step + step
    }

    /// Floats from a packed panel of dY to the next.
    const fn panel_floats(self, panel: usize) -> usize {
        self.rows * panel + PANEL_GAP
    }
}

/// The gradient of a weight `w[k, n]`, summed over all rows that were multiplied by it: `dw = X^T . dY`.
#[derive(Clone, Copy, Debug)]
pub struct WeightGrad<'a> {
    /// The instruction set; it does not change the bits.
    pub isa: Isa,
    /// Rows of the weight, the width of a row of X.
    pub k: usize,
    /// Columns of the weight, the width of a row of dY.
    pub n: usize,
    /// The rows of X, in the order of the sum.
    pub x: &'a [RowsRun<'a>],
    /// The rows of dY, as many as of X. Their runs may end elsewhere.
    pub dy: &'a [RowsRun<'a>],
    /// True if the sum starts from the contents of the result, else from zero.
    pub accumulate: bool,
}

impl WeightGrad<'_> {
    /// Computes `dw` into `out`.
    ///
    /// # Errors
    /// If rows or result are too short, or the instruction set is not available.
    pub fn run(&self, out: RowsMut<'_>, scratch: &mut Scratch) -> Result<(), KernelError> {
        self.run_again(out, scratch, None)
    }

    /// [`run`](Self::run) for one of several sums with the same rows of dY, which the caller numbers: the first packs them.
    pub(crate) fn run_again(
        &self,
        out: RowsMut<'_>,
        scratch: &mut Scratch,
        dy: Option<GradientRows>,
    ) -> Result<(), KernelError> {
        self.isa.required()?;
        let count = check_runs("rows of x", self.x, self.k)?;
        same_size("rows of dy", count, check_runs("rows of dy", self.dy, self.n)?)?;
        if self.k == 0 || self.n == 0 {
            return Ok(());
        }
        out.check("result rows", self.k, self.n)?;
        // SAFETY: the checks above proved all rows and widths against the lengths of `Rows` and `RowsMut`, and the
        // instruction set.
        unsafe { self.run_stripes(None, &out, scratch, dy) };
        Ok(())
    }

    /// Computes all stripes of columns. The numbers of dY tell whether its panels are packed.
    ///
    /// # Safety
    /// [`run`](Self::run) would accept the arguments, and the contracts of `Rows` and `RowsMut` hold.
    pub(super) unsafe fn run_stripes(
        &self,
        shards: Option<&Shards<'_>>,
        out: &RowsMut<'_>,
        scratch: &mut Scratch,
        dy: Option<GradientRows>,
    ) {
        let kernels = KernelSet::of(self.isa);
        let count = self.x.iter().map(|run| run.count).sum();
        let blocking = shards.map_or(Blocking::OF_CHAIN, |_| Blocking::of_shards(count));
        let panels = self.n.div_ceil(kernels.panel);
        let stripes = panels.div_ceil(blocking.columns / kernels.panel);
        // Only the panels of one block stay.
        let dy = dy.filter(|_| shards.is_none() && stripes == 1 && count <= blocking.rows);
        let is_packed = dy.is_some() && scratch.gradient_rows == dy;
        let mut first = 0;
        for stripe in 0..stripes {
            let end = self.n.min(first + share(panels, stripes, stripe) * kernels.panel);
            // SAFETY: as for this function.
            unsafe {
                self.run_stripe(
                    kernels,
                    blocking,
                    Stripe { columns: first..end, is_packed },
                    shards,
                    out,
                    scratch,
                )
            };
            first = end;
        }
        scratch.gradient_rows = dy;
    }

    /// Computes a stripe of columns.
    ///
    /// # Safety
    /// [`run`](Self::run) would accept the arguments, and the contracts of `Rows` and `RowsMut` hold.
    unsafe fn run_stripe(
        &self,
        kernels: &KernelSet,
        blocking: Blocking,
        Stripe { columns, is_packed }: Stripe,
        shards: Option<&Shards<'_>>,
        out: &RowsMut<'_>,
        scratch: &mut Scratch,
    ) {
        let count: usize = self.x.iter().map(|run| run.count).sum();
        let blocks = self.k.div_ceil(kernels.rows * blocking.tiles);
        let (mut x, mut dy) = (Cursor::new(self.x), Cursor::new(self.dy));
        let tile_floats = blocking.tile_floats(kernels.step);
        let panel_floats = blocking.panel_floats(kernels.panel);
        let x_floats = blocking.tiles * tile_floats;
        let buffer = scratch.floats(GRADIENT_SCRATCH_FLOATS);
        let (packed_x, packed_dy) = buffer.split_at_mut(x_floats);
        let narrow_step = kernels.step < MAX_STEP;
        let pack = if narrow_step { pack_columns::<{ MAX_STEP / 2 }> } else { pack_columns::<MAX_STEP> };
        let mut first_r = 0;
        // An empty sum still writes its start, in one iteration of length 0.
        loop {
            let len = blocking.rows.min(count - first_r);
            if !is_packed {
                // SAFETY: `len` rows of dY are left and at least `columns.end` wide; the scratch holds the panels of a stripe.
                unsafe { pack_panels(&mut dy, len, &columns, kernels.panel, panel_floats, packed_dy) };
            }
            let continues = first_r > 0 || self.accumulate;
            let mut after = Cursor::new(&[]);
            let mut first = 0;
            for block in 0..blocks {
                let rows = first..first + share(self.k, blocks, block);
                first = rows.end;
                let tiles = rows.len().div_ceil(kernels.rows);
                after = x.clone();
                // SAFETY: `len` rows of X are left and at least `rows.end` wide; the scratch holds `tiles` tiles.
                unsafe { pack(&mut after, len, &rows, self.k, tiles, tile_floats, packed_x) };
                let x = packed_x.chunks(tile_floats);
                let packed = PackedBlock { kernels, x, rows, tiles, len, continues, shards };
                for (column, panel) in
                    columns.clone().step_by(kernels.panel).zip(packed_dy.chunks(panel_floats))
                {
                    let width = kernels.panel.min(columns.end - column);
                    // SAFETY: both operands were packed for this shape; the caller guarantees the result.
                    unsafe { packed.run_panel(panel, column, width, out) };
                }
            }
            x = after;
            first_r += len;
            if first_r == count {
                return;
            }
        }
    }
}

/// Columns of `dw`.
struct Stripe {
    columns: Range<usize>,
    /// Whether the scratch holds their panels of dY.
    is_packed: bool,
}

/// The packed X of some rows of `dw`, for one block of the sum.
struct PackedBlock<'a> {
    kernels: &'a KernelSet,
    /// Of each register tile.
    x: Chunks<'a, f32>,
    rows: Range<usize>,
    /// The number of register tiles that they are cut into.
    tiles: usize,
    /// The number of rows of the sum.
    len: usize,
    /// True if the sum continues from the stored result.
    continues: bool,
    /// The shards of the rows; `None` if all are one chain.
    shards: Option<&'a Shards<'a>>,
}

impl PackedBlock<'_> {
    /// Adds the products with one panel of dY to columns `column..column + width` of `out`.
    ///
    /// # Safety
    /// X and `panel` were packed for this shape, and `out` satisfies the contract of `run_stripe`.
    unsafe fn run_panel(&self, panel: &[f32], column: usize, width: usize, out: &RowsMut<'_>) {
        let kernels = self.kernels;
        let function = if width <= kernels.vector { kernels.narrow_transposed } else { kernels.transposed };
        let mut row = self.rows.start;
        for (tile, x) in (0..self.tiles).zip(self.x.clone()) {
            let height = share(self.rows.len(), self.tiles, tile);
            let mut start = [ptr::null::<f32>(); MAX_ROWS];
            if self.continues {
                for (i, slot) in start.iter_mut().enumerate().take(height) {
                    *slot = out.row(row + i);
                }
            }
            let tile = Tile {
                a: x.as_ptr(),
                a_rows: ptr::null(),
                b: panel.as_ptr(),
                b_panel: 0,
                b_step: kernels.panel,
                prefetch: Prefetch::NOTHING,
                k: self.len,
                start: start.as_ptr(),
                adds_start: false,
                out: out.row(row),
                out_stride: out.stride(),
                column,
                columns: width,
            };
            let function = function(height);
            // SAFETY: as for this function.
            unsafe {
                match self.shards {
                    None => function(&tile),
                    Some(shards) => TileOfShards { kernels, shards, tile, function, height }.run(),
                }
            }
            row += height;
        }
    }
}

/// Packs `columns` of the next `len` rows of X, cut into `tiles` tiles, which are `tile_floats` apart. Column `i` of a tile
/// in row `r` moves to `r * STEP + i`.
///
/// # Safety
/// `len` rows are left, `width` wide, which is at least `columns.end`. A tile has at most `STEP` columns.
unsafe fn pack_columns<const STEP: usize>(
    x: &mut Cursor<'_>,
    len: usize,
    columns: &Range<usize>,
    width: usize,
    tiles: usize,
    tile_floats: usize,
    to: &mut [f32],
) {
    let to = &mut to[..tiles * tile_floats];
    let heights: [usize; TILES] = std::array::from_fn(|tile| share(columns.len(), tiles, tile));
    let mut ahead = x.clone();
    ahead.skip(AHEAD);
    for r in 0..len {
        prefetch_row(&mut ahead, columns);
        // SAFETY: the row is left.
        let row = unsafe { x.next() };
        let mut first = columns.start;
        for (&height, to) in heights.iter().zip(to.chunks_exact_mut(tile_floats)) {
            let to = to[r * STEP..][..STEP].as_mut_ptr();
            // A copy of constant length compiles to a few moves. Tiles ignore its surplus columns. SAFETY: the copied
            // columns lie in the row, and `to` has `STEP` floats.
            unsafe {
                if first + STEP <= width {
                    ptr::copy_nonoverlapping(row.add(first), to, STEP);
                } else {
                    copy_short(row.add(first), to, height);
                }
            }
            first += height;
        }
    }
}

/// Packs `columns` of the next `len` rows of dY into panels, `panel_floats` apart. Surplus columns of the last panel
/// are zero.
///
/// # Safety
/// `len` rows are left, at least `columns.end` wide, and `to` holds the panels.
unsafe fn pack_panels(
    dy: &mut Cursor<'_>,
    len: usize,
    columns: &Range<usize>,
    panel: usize,
    panel_floats: usize,
    to: &mut [f32],
) {
    let cut = columns.len() % panel;
    if cut > 0 {
        to[columns.len() / panel * panel_floats..][..len * panel].fill(0.0);
    }
    let mut ahead = dy.clone();
    ahead.skip(AHEAD);
    for r in 0..len {
        prefetch_row(&mut ahead, columns);
        // SAFETY: the row is left.
        let row = unsafe { dy.next() };
        for (first, to) in columns.clone().step_by(panel).zip(to.chunks_mut(panel_floats)) {
            let to = to[r * panel..][..panel].as_mut_ptr();
            // SAFETY: the columns lie in the row; a panel has at most MAX_PANEL columns.
            unsafe { copy_short(row.wrapping_add(first), to, panel.min(columns.end - first)) };
        }
    }
}

/// Copies up to `MAX_PANEL` floats in pieces of constant length, which compile to moves instead of a slower call.
///
/// # Safety
/// `from` is readable and `to` writable for `len` floats, without overlap; `len` is at most `MAX_PANEL`.
#[inline(always)]
unsafe fn copy_short(from: *const f32, to: *mut f32, len: usize) {
    if len == MAX_PANEL {
        // SAFETY: as for this function.
        return unsafe { ptr::copy_nonoverlapping(from, to, MAX_PANEL) };
    }
    let mut at = 0;
    macro_rules! copy {
        ($($size:literal)+) => {
            $(if len & $size != 0 {
                // SAFETY: the sizes of the set bits of `len` add up to `len`.
                unsafe { ptr::copy_nonoverlapping(from.add(at), to.add(at), $size) };
                at += $size;
            })+
        };
    }
    copy!(16 8 4 2 1);
    debug_assert_eq!(at, len);
}

/// Prefetches the columns of the next row, if one is left.
#[inline(always)]
fn prefetch_row(rows: &mut Cursor<'_>, columns: &Range<usize>) {
    if rows.is_at_end() {
        return;
    }
    // SAFETY: a row is left.
    let row = unsafe { rows.next() };
    for column in columns.clone().step_by(LINE) {
        prefetch(row.wrapping_add(column));
    }
}

/// Computes the gradient of a bias: adds all rows of `dy` to `sums`, or to zero unless `accumulate`.
///
/// # Errors
/// If rows are too short or the instruction set is not available.
pub fn column_sums(
    isa: Isa,
    dy: &[RowsRun<'_>],
    sums: &mut [f32],
    accumulate: bool,
) -> Result<(), KernelError> {
    isa.required()?;
    check_runs("rows of dy", dy, sums.len())?;
    if !accumulate {
        sums.fill(0.0);
    }
    let row_sum = KernelSet::of(isa).row_sum;
    for RowsRun { rows, count } in dy {
        let (lanes, columns, sums) = (0..*count, sums.len(), sums.as_mut_ptr());
        // SAFETY: the rows exist as wide as `sums`, which is borrowed exclusively, and the instruction set is available.
        unsafe { row_sum(&RowSum { rows: *rows, lanes, first: 0, columns, sums }) };
    }
    Ok(())
}
