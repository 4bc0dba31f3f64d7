//! Gradients of weights and biases: sums over the rows of a minibatch.
//!
//! **Bits.** `dw[k, n]` is the chain `acc = start; for r ascending: acc = fma(x[r, k], dy[r, n], acc)` and `db[n]` the chain
//! `acc = start; for r ascending: acc = acc + dy[r, n]`, where `r` runs through the runs of rows in the order given. Nothing else has a part in
//! them: threads split `dw` by rows and columns, never the sum.
//!
//! **Speed.** `dw` is computed stripe by stripe of columns, so that a stripe stays in the second-level cache until its sum is complete. The sum
//! is walked in blocks of `R_BLOCK` rows. Of a block, the stripe's columns of dY are packed as panels, the rows of X so that a register tile
//! finds its few columns side by side, and every tile of `dw` goes on from its stored accumulators. Rows behind a table are packed
//! like rows in order, and asked for some rows ahead.

use std::ops::Range;
use std::ptr;

use super::error::{KernelError, reaches, same_size};
use super::isa::Isa;
use super::memory::{Scratch, prefetch};
use super::product::share;
use super::rows::{Rows, RowsMut};
use super::tile::{Ahead, RowSum, Tile};
use super::twins::{MOST_ROWS, MOST_STEP, Twin};

/// Rows of the sum that are packed at once.
const R_BLOCK: usize = 256;
/// Register tiles of `dw` below one panel of dY: X packed for so many stays in the second-level cache.
const TILES: usize = 32;
/// Columns of a stripe.
const STRIPE: usize = 512;
/// The widest panel of any instruction set.
const WIDEST_PANEL: usize = 32;
/// So many rows before its turn a row is asked for.
const AHEAD: usize = 6;
/// Floats of a cache line.
const LINE: usize = 16;
/// Floats between two packed panels of dY besides their own: as for tiles.
const PANEL_GAP: usize = 16;

/// Floats from the packed columns of a tile to those of the next; not a multiple of 1024, so that they fall into different cache sets.
const fn tile_floats(step: usize) -> usize {
    R_BLOCK * step + step
}

/// Lanes `0..count` of some rows: a piece of a sum over rows.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Where the rows are.
    pub rows: Rows<'a>,
    /// How many lanes.
    pub count: usize,
}

/// The gradient of a weight `w[k, n]` from all rows that were multiplied with it: `dw = X^T . dY`.
#[derive(Clone, Copy, Debug)]
pub struct WeightGrad<'a> {
    /// Which twin computes; it changes no bit.
    pub isa: Isa,
    /// Rows of the weight: the width of a row of X.
    pub k: usize,
    /// Columns of the weight: the width of a row of dY.
    pub n: usize,
    /// The rows of X, in the order of the sum.
    pub x: &'a [Run<'a>],
    /// The rows of dY, as many as of X; the runs may be cut elsewhere.
    pub dy: &'a [Run<'a>],
    /// Whether the sum starts from what the result holds, and not from zero.
    pub accumulate: bool,
}

impl WeightGrad<'_> {
    /// Computes all of `dw`, whose row `k` is row `k` of `out`.
    pub fn run(&self, out: RowsMut<'_>, scratch: &mut Scratch) -> Result<(), KernelError> {
        self.run_block(0..self.k, 0..self.n, out, scratch)
    }

    /// Computes rows `rows` and columns `columns` of `dw`; row `k` of the weight is row `k` of `out`, whatever the block. Blocks may be cut
    /// anywhere without changing a bit; heights that are multiples of [`WeightGrad::block_rows`] and widths that are multiples of 32 are
    /// fastest.
    pub fn run_block(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        out: RowsMut<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), KernelError> {
        self.check(&rows, &columns, &out)?;
        // SAFETY: `check` has proved all rows and widths against the lengths that `Rows` and `RowsMut` vouch for, and that the machine has
        // the instruction set.
        unsafe { self.run_block_unchecked(rows, columns, out, scratch) };
        Ok(())
    }

    /// Rows of `dw` that are computed from one packing of X.
    pub fn block_rows(&self) -> usize {
        Twin::of(self.isa).rows * TILES
    }

    /// Whether everything exists that computing this block of `dw` touches.
    pub fn check(
        &self,
        rows: &Range<usize>,
        columns: &Range<usize>,
        out: &RowsMut<'_>,
    ) -> Result<(), KernelError> {
        self.isa.required()?;
        for (what, range, size) in
            [("rows of the weight", rows, self.k), ("columns of the weight", columns, self.n)]
        {
            reaches(what, Some(range.end), size)?;
            reaches(what, Some(range.start), range.end)?;
        }
        let count = check_runs("rows of x", self.x, self.k)?;
        same_size("rows of dy", count, check_runs("rows of dy", self.dy, self.n)?)?;
        if columns.is_empty() || rows.is_empty() {
            return Ok(());
        }
        out.check("result rows", rows.end, columns.end)
    }

    /// As [`WeightGrad::run_block`], without the checks.
    ///
    /// # Safety
    /// [`WeightGrad::check`] would accept the block, and the promises made when `Rows` and `RowsMut` were created hold.
    pub unsafe fn run_block_unchecked(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        out: RowsMut<'_>,
        scratch: &mut Scratch,
    ) {
        if rows.is_empty() {
            return;
        }
        let twin = Twin::of(self.isa);
        let panels = columns.len().div_ceil(twin.panel);
        let stripes = panels.div_ceil(STRIPE / twin.panel);
        let mut first = columns.start;
        for stripe in 0..stripes {
            let end = columns.end.min(first + share(panels, stripes, stripe) * twin.panel);
            // SAFETY: a part of the block that the caller vouches for, at most `STRIPE` wide.
            unsafe { self.run_stripe(twin, &rows, first..end, &out, scratch) };
            first = end;
        }
    }

    /// At most `STRIPE` columns, of at least one row.
    ///
    /// # Safety
    /// As for `run_block_unchecked`.
    unsafe fn run_stripe(
        &self,
        twin: &Twin,
        rows: &Range<usize>,
        columns: Range<usize>,
        out: &RowsMut<'_>,
        scratch: &mut Scratch,
    ) {
        let count: usize = self.x.iter().map(|run| run.count).sum();
        let blocks = rows.len().div_ceil(self.block_rows());
        let (mut x, mut dy) = (Cursor::new(self.x), Cursor::new(self.dy));
        let panel_floats = R_BLOCK * twin.panel + PANEL_GAP;
        let tile_floats = tile_floats(twin.step);
        let buffer = scratch.floats(TILES * tile_floats + STRIPE / twin.panel * panel_floats);
        let (packed_x, packed_dy) = buffer.split_at_mut(TILES * tile_floats);
        let pack = if twin.step == MOST_STEP {
            pack_columns::<MOST_STEP>
        } else {
            pack_columns::<{ MOST_STEP / 2 }>
        };
        let mut first_r = 0;
        // A sum of no rows still writes its start, in one turn of no length.
        loop {
            let len = R_BLOCK.min(count - first_r);
            // SAFETY: `len` rows of dY are left and at least `columns.end` wide; the scratch holds the panels of a stripe.
            unsafe { pack_panels(&mut dy, len, &columns, twin.panel, panel_floats, packed_dy) };
            let goes_on = first_r > 0 || self.accumulate;
            let mut after = Cursor::new(&[]);
            let mut first = rows.start;
            for block in 0..blocks {
                let rows = first..first + share(rows.len(), blocks, block);
                first = rows.end;
                let tiles = rows.len().div_ceil(twin.rows);
                after = x.clone();
                // SAFETY: `len` rows of X are left and at least `rows.end` wide; the scratch holds `tiles` tiles.
                unsafe { pack(&mut after, len, &rows, self.k, tiles, packed_x) };
                for (column, b) in columns.clone().step_by(twin.panel).zip(packed_dy.chunks(panel_floats)) {
                    let width = twin.panel.min(columns.end - column);
                    let function =
                        if width <= twin.vector { twin.narrow_transposed } else { twin.transposed };
                    let mut row = rows.start;
                    for tile in 0..tiles {
                        let height = share(rows.len(), tiles, tile);
                        let mut start = [ptr::null::<f32>(); MOST_ROWS];
                        if goes_on {
                            for (i, slot) in start.iter_mut().enumerate().take(height) {
                                *slot = out.row(row + i);
                            }
                        }
                        let tile = Tile {
                            a: packed_x[tile * tile_floats..].as_ptr(),
                            a_rows: ptr::null(),
                            b: b.as_ptr(),
                            b_panel: 0,
                            b_step: twin.panel,
                            ahead: Ahead::NOTHING,
                            k: len,
                            start: start.as_ptr(),
                            out: out.row(row),
                            out_stride: out.stride(),
                            column,
                            columns: width,
                        };
                        // SAFETY: both operands were packed for this shape; the caller vouches for the result.
                        unsafe { function(height)(&tile) };
                        row += height;
                    }
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

/// Packs columns `columns` of the next `len` rows of X, cut into `tiles` tiles: column `i` of a tile in row `r` is at `r * STEP + i`.
///
/// # Safety
/// The rows are left and `width` wide, which is at least `columns.end`; a tile has at most `STEP` columns.
unsafe fn pack_columns<const STEP: usize>(
    x: &mut Cursor<'_>,
    len: usize,
    columns: &Range<usize>,
    width: usize,
    tiles: usize,
    to: &mut [f32],
) {
    let to = &mut to[..tiles * tile_floats(STEP)];
    let heights: [usize; TILES] = std::array::from_fn(|tile| share(columns.len(), tiles, tile));
    let mut coming = x.clone();
    coming.skip(AHEAD);
    for r in 0..len {
        ask_for(&mut coming, columns);
        // SAFETY: the row is left.
        let row = unsafe { x.next() };
        let mut first = columns.start;
        for (&height, to) in heights.iter().zip(to.chunks_exact_mut(tile_floats(STEP))) {
            let to = to[r * STEP..][..STEP].as_mut_ptr();
            // SAFETY: the columns lie in the row; a copy of fixed length is a few moves, and its surplus is never read.
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

/// Packs columns `columns` of the next `len` rows of dY as panels, each `panel_floats` behind the one before; the columns that the last panel
/// has too many are zero.
///
/// # Safety
/// The rows are left and at least `columns.end` wide; `to` has room for the panels.
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
    let mut coming = dy.clone();
    coming.skip(AHEAD);
    for r in 0..len {
        ask_for(&mut coming, columns);
        // SAFETY: the row is left.
        let row = unsafe { dy.next() };
        for (first, to) in columns.clone().step_by(panel).zip(to.chunks_mut(panel_floats)) {
            let to = to[r * panel..][..panel].as_mut_ptr();
            // SAFETY: the columns lie in the row; a panel has at most WIDEST_PANEL columns.
            unsafe { copy_short(row.wrapping_add(first), to, panel.min(columns.end - first)) };
        }
    }
}

/// Copies up to `WIDEST_PANEL` floats in copies of fixed length, each a few moves: a call for so little would cost more than the copy.
///
/// # Safety
/// `from` is readable and `to` writable for `len` floats, apart from each other; `len` is at most `WIDEST_PANEL`.
#[inline(always)]
unsafe fn copy_short(from: *const f32, to: *mut f32, len: usize) {
    if len == WIDEST_PANEL {
        // SAFETY: as for this function.
        return unsafe { ptr::copy_nonoverlapping(from, to, WIDEST_PANEL) };
    }
    let mut at = 0;
    macro_rules! copy {
        ($($size:literal)+) => {
            $(if len & $size != 0 {
                // SAFETY: the sizes that `len` is made of add up to it.
                unsafe { ptr::copy_nonoverlapping(from.add(at), to.add(at), $size) };
                at += $size;
            })+
        };
    }
    copy!(16 8 4 2 1);
    debug_assert_eq!(at, len);
}

/// Asks for the columns of the next row, if there is one: rows behind a table are not side by side, so nobody else guesses them.
#[inline(always)]
fn ask_for(rows: &mut Cursor<'_>, columns: &Range<usize>) {
    if rows.is_at_end() {
        return;
    }
    // SAFETY: a row is left.
    let row = unsafe { rows.next() };
    for column in columns.clone().step_by(LINE) {
        prefetch(row.wrapping_add(column));
    }
}

/// A place in a sequence of runs.
#[derive(Clone)]
struct Cursor<'a> {
    runs: &'a [Run<'a>],
    lane: usize,
}

impl<'a> Cursor<'a> {
    fn new(runs: &'a [Run<'a>]) -> Self {
        Cursor { runs, lane: 0 }
    }

    /// Goes so many rows on, or to the end.
    fn skip(&mut self, mut rows: usize) {
        while let Some(run) = self.runs.first() {
            let left = run.count - self.lane;
            if rows < left {
                self.lane += rows;
                return;
            }
            rows -= left;
            self.runs = &self.runs[1..];
            self.lane = 0;
        }
    }

    /// Whether no row is left; goes to the run of the next row.
    #[inline(always)]
    fn is_at_end(&mut self) -> bool {
        self.skip(0);
        self.runs.is_empty()
    }

    /// The next row.
    ///
    /// # Safety
    /// A row is left, and tables have entries for all lanes of their runs.
    #[inline(always)]
    unsafe fn next(&mut self) -> *const f32 {
        // SAFETY: a row is left, so a run with one more lane is found before the runs end.
        unsafe {
            while self.lane == self.runs.get_unchecked(0).count {
                self.runs = self.runs.get_unchecked(1..);
                self.lane = 0;
            }
            let row = self.runs.get_unchecked(0).rows.row(self.lane);
            self.lane += 1;
            row
        }
    }
}

/// How many rows the runs have, if all exist `width` wide.
pub(super) fn check_runs(what: &'static str, runs: &[Run<'_>], width: usize) -> Result<usize, KernelError> {
    let mut count = Some(0usize);
    for run in runs {
        run.rows.check(what, &(0..run.count), width)?;
        count = count.and_then(|count| count.checked_add(run.count));
    }
    reaches(what, count, usize::MAX)?;
    Ok(count.unwrap_or(usize::MAX))
}

/// The gradient of a bias: adds all rows of `dy` to `sums`, or to zero unless `accumulate`, row after row, each as wide as `sums`.
pub fn column_sums(isa: Isa, dy: &[Run<'_>], sums: &mut [f32], accumulate: bool) -> Result<(), KernelError> {
    isa.required()?;
    check_runs("rows of dy", dy, sums.len())?;
    // SAFETY: the rows exist as wide as `sums`, which no other reference reaches; the machine has the instruction set.
    unsafe { column_sums_unchecked(isa, dy, sums.as_mut_ptr(), sums.len(), accumulate) };
    Ok(())
}

/// As [`column_sums`], without the checks, for sums at a pointer.
///
/// # Safety
/// The machine has `isa`; every row of `dy` is readable `columns` wide, as promised when its `Rows` were created; `sums` is writable for
/// `columns` floats, initialised if `accumulate`, and overlaps no row.
pub unsafe fn column_sums_unchecked(
    isa: Isa,
    dy: &[Run<'_>],
    sums: *mut f32,
    columns: usize,
    accumulate: bool,
) {
    if !accumulate {
        // SAFETY: the caller vouches for `sums`.
        unsafe { ptr::write_bytes(sums, 0, columns) };
    }
    let row_sum = Twin::of(isa).row_sum;
    for run in dy {
        let pitch = run.rows.pitch();
        let (calls, rows) = match pitch {
            Some(_) => (run.count.min(1), run.count),
            None => (run.count, 1),
        };
        for lane in 0..calls {
            // SAFETY: the lane is one of the run's, and the caller vouches for rows and sums.
            unsafe {
                row_sum(&RowSum {
                    from: run.rows.row(lane),
                    stride: pitch.unwrap_or(0),
                    rows,
                    columns,
                    sums,
                });
            }
        }
    }
}
