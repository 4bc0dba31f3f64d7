//! The product of rows with packed weights: `out[r] = start[r] + sum over parts p of x_p[r] . W_p`.
//!
//! **Bits.** Every output element is the chain `acc = start; for k ascending over the parts: acc = fma(x, w, acc)`: whatever the instruction
//! set, the number of rows, the position of a row among them, the columns computed by the same call, and whether rows are named by a range or
//! a table. Blocking goes on from the stored accumulator, and no chain is ever split and added up. (Of a NaN, only that it is one.)
//!
//! **Speed.** Rows are cut into blocks of a few register tiles. Few rows, or rows that meet few weights, are read where they are, through one
//! pointer each. Other rows are first gathered, block of `k` by block of `k`, into a small buffer with a fixed distance between rows: a copy of
//! what is then read `n / 32` times over. Either way ranges, tables and shared rows are the same to the inner loop and equally fast. The
//! panels of weights go through the cache once for each block of rows.

use std::ops::Range;
use std::ptr;

use super::error::{KernelError, reaches, same_size};
use super::memory::Scratch;
use super::pack::PackedWeights;
use super::rows::{Rows, RowsMut};
use super::tile::{Ahead, Tile};
use super::twins::{GATHERED_ROW, K_BLOCK, MOST_ROWS, Twin};

/// The most rows in a block: four of the tallest register tiles, and more of lower ones. All weights go through the second-level cache once
/// for each block.
const BLOCK_ROWS: usize = 4 * MOST_ROWS;
/// Register tiles of rows with a tail, at most.
const TILES_WITH_TAIL: usize = 16;
/// So many rows are read in place whatever the width of the product.
const FEW_ROWS: usize = 6;
/// For so many panels of weights, gathering rows costs more than it gains.
const FEW_PANELS: usize = 8;
/// Rows a multiple of so many floats apart fall into one set of a first-level cache.
const PAGE_FLOATS: usize = 1024;
/// Bytes of rows (operands and results) that a tile of rows with a tail may fill: a part of every second-level cache.
const TILE_BYTES: usize = 256 << 10;

/// One operand of a product: its rows are `k` wide and meet the next `k` rows of the weights.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Where the rows are.
    pub rows: Rows<'a>,
    /// How many columns of a row take part.
    pub k: usize,
}

/// What the accumulators of a product start from.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Zero.
    Zero,
    /// One row, `n` wide, for all rows of the result: a bias.
    Bias(&'a [f32]),
    /// A row, `n` wide, for each row of the result: a part of the product that was computed before, say.
    Rows(Rows<'a>),
    /// What the result rows hold.
    Output,
}

/// A product with packed weights.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    /// The weights of all parts, one part below the other.
    pub weights: &'a PackedWeights,
    /// The row of `weights` that the first part begins with.
    pub first_k: usize,
    /// The columns to compute, cut between panels. Result rows, bias and start rows are still indexed from column 0 of the weights.
    pub columns: Range<usize>,
    /// The operands, in the order of the chain.
    pub parts: &'a [Part<'a>],
    /// What the chain starts from.
    pub start: Start<'a>,
}

impl<'a> Product<'a> {
    /// The product of `parts` with all rows and columns of `weights`.
    pub fn new(weights: &'a PackedWeights, parts: &'a [Part<'a>], start: Start<'a>) -> Self {
        Product { weights, first_k: 0, columns: 0..weights.n(), parts, start }
    }

    /// Computes lanes `lanes` of the batch into rows `0..lanes.len()` of `out`.
    pub fn run(
        &self,
        lanes: Range<usize>,
        out: RowsMut<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), KernelError> {
        self.check(&lanes, &out)?;
        // SAFETY: `check` has proved the lanes, widths and columns against the lengths that `Rows` and `RowsMut` vouch for; packed weights
        // exist only for an instruction set that is available.
        unsafe { self.run_unchecked(lanes, out, scratch) };
        Ok(())
    }

    /// Computes lanes `lanes` in tiles of `tile` rows (at least 1) and calls `tail` after each with its lanes and its rows of `out`, while
    /// they are in cache. [`Product::tile_rows`] recommends a height.
    pub fn run_tiled(
        &self,
        lanes: Range<usize>,
        tile: usize,
        mut out: RowsMut<'_>,
        scratch: &mut Scratch,
        mut tail: impl FnMut(Range<usize>, RowsMut<'_>),
    ) -> Result<(), KernelError> {
        self.check(&lanes, &out)?;
        for first in lanes.clone().step_by(tile.max(1)) {
            let part = first..lanes.end.min(first.saturating_add(tile.max(1)));
            let row = first - lanes.start;
            // SAFETY: as in `run`; the lanes of a tile are some of those checked, and go to the same rows.
            unsafe { self.run_unchecked(part.clone(), out.rows_from(row), scratch) };
            tail(part, out.rows_from(row));
        }
        Ok(())
    }

    /// How many rows to compute before a tail works on them: whole register tiles, at least two so that a panel of weights is used twice, and
    /// otherwise no more than leaves operands and results in the second-level cache.
    pub fn tile_rows(&self) -> usize {
        let height = Twin::of(self.weights.isa()).rows;
        let row_bytes = (self.weights.k() + self.weights.n()).saturating_mul(4).max(1);
        (TILE_BYTES / row_bytes / height).clamp(2, TILES_WITH_TAIL) * height
    }

    /// Whether the lanes of every operand and the rows of `out` exist, as wide as the product needs them.
    pub fn check(&self, lanes: &Range<usize>, out: &RowsMut<'_>) -> Result<(), KernelError> {
        let Range { start, end } = self.columns;
        let (n, panel) = (self.weights.n(), self.weights.panel());
        reaches("columns of the packed weights", Some(end), n)?;
        if start > end || start % panel != 0 || (end != n && end % panel != 0) {
            return Err(KernelError::Columns { start, end, panel });
        }
        if lanes.start > lanes.end {
            return Err(KernelError::Size {
                what: "end of the lanes",
                expected: lanes.start,
                found: lanes.end,
            });
        }
        let mut k = Some(self.first_k);
        for part in self.parts {
            part.rows.check("operand rows", lanes, part.k)?;
            k = k.and_then(|k| k.checked_add(part.k));
        }
        reaches("rows of the packed weights", k, self.weights.k())?;
        match self.start {
            Start::Zero | Start::Output => {}
            Start::Bias(bias) => same_size("bias", n, bias.len())?,
            Start::Rows(rows) => rows.check("start rows", lanes, n)?,
        }
        out.check("result rows", lanes.len(), end)
    }

    /// As [`Product::run`], without the checks.
    ///
    /// # Safety
    /// [`Product::check`] would accept `lanes` and `out`, and the promises made when `Rows` and `RowsMut` were created hold: in
    /// particular the result rows overlap no operand, start row or bias, except that `Start::Rows` may name exactly the result rows.
    pub unsafe fn run_unchecked(&self, lanes: Range<usize>, out: RowsMut<'_>, scratch: &mut Scratch) {
        if lanes.is_empty() || self.columns.is_empty() {
            return;
        }
        let twin = Twin::of(self.weights.isa());
        let blocks = lanes.len().div_ceil(BLOCK_ROWS / twin.rows * twin.rows);
        let mut done = 0;
        for block in 0..blocks {
            let count = share(lanes.len(), blocks, block);
            // SAFETY: the lanes of a block are some of those that the caller vouches for, and go to the same rows.
            unsafe { self.run_block(twin, lanes.start + done, count, &out, done, scratch) };
            done += count;
        }
    }

    /// Computes `count` lanes (1 to `BLOCK_ROWS`) from `lane` on into the rows of `out` from `row` on.
    ///
    /// # Safety
    /// As for `run_unchecked`.
    unsafe fn run_block(
        &self,
        twin: &Twin,
        lane: usize,
        count: usize,
        out: &RowsMut<'_>,
        row: usize,
        scratch: &mut Scratch,
    ) {
        let mut start = [ptr::null::<f32>(); BLOCK_ROWS];
        for (i, slot) in start.iter_mut().enumerate().take(count) {
            *slot = match self.start {
                Start::Zero => ptr::null(),
                Start::Bias(bias) => bias.as_ptr(),
                // SAFETY: the lane is one of those that the caller vouches for.
                Start::Rows(rows) => unsafe { rows.row(lane + i) },
                Start::Output => out.row(row + i),
            };
        }
        let tiles = count.div_ceil(twin.rows);
        let mut block = Block {
            twin,
            weights: self.weights,
            columns: self.columns.clone(),
            count,
            tiles,
            start,
            out: out.row(row),
            out_stride: out.stride(),
        };
        if self.reads_in_place(twin, count) {
            // SAFETY: as for this function.
            unsafe { self.run_in_place(&mut block, lane) };
        } else {
            // SAFETY: as for this function.
            unsafe { self.run_gathered(&mut block, lane, scratch) };
        }
    }

    /// Whether gathering rows would not pay: few rows, or few panels to use them. Many rows whose elements all fall into one set of the
    /// first-level cache are gathered all the same, because they would push each other out.
    fn reads_in_place(&self, twin: &Twin, count: usize) -> bool {
        let crowded = |part: &Part<'_>| part.rows.stride().is_multiple_of(PAGE_FLOATS);
        count <= FEW_ROWS || self.columns.len() <= FEW_PANELS * twin.panel && !self.parts.iter().any(crowded)
    }

    /// Rows are read where they are, one part after the other.
    ///
    /// # Safety
    /// As for `run_unchecked`.
    unsafe fn run_in_place(&self, block: &mut Block<'_>, lane: usize) {
        let mut rows = [ptr::null::<f32>(); BLOCK_ROWS];
        let mut k = self.first_k;
        for part in self.parts {
            for (i, row) in rows.iter_mut().enumerate().take(block.count) {
                // SAFETY: the lane is one of those that the caller vouches for.
                *row = unsafe { part.rows.row(lane + i) };
            }
            let end = k + part.k;
            while k < end {
                let len = (end - k).min(K_BLOCK - k % K_BLOCK);
                // SAFETY: `len` elements of each row are readable and meet as many rows of one block of the weights.
                unsafe { block.run(Operand::InPlace(&rows), k, len) };
                for row in rows.iter_mut().take(block.count) {
                    *row = row.wrapping_add(len);
                }
                k += len;
            }
        }
        if k == self.first_k {
            // SAFETY: a chain of no steps reads no operand.
            unsafe { block.run(Operand::InPlace(&rows), k, 0) };
        }
    }

    /// Many rows: gathered into scratch, `K_BLOCK` columns at a time across the borders of parts.
    ///
    /// # Safety
    /// As for `run_unchecked`.
    unsafe fn run_gathered(&self, block: &mut Block<'_>, lane: usize, scratch: &mut Scratch) {
        let gathered = scratch.floats(BLOCK_ROWS * GATHERED_ROW).as_mut_ptr();
        let (mut part, mut offset) = (0, 0);
        let mut k = self.first_k;
        loop {
            let mut filled = 0;
            let room = K_BLOCK - k % K_BLOCK;
            while filled < room && part < self.parts.len() {
                let Part { rows, k: width } = self.parts[part];
                let len = (width - offset).min(room - filled);
                for i in 0..block.count {
                    // SAFETY: columns offset..offset + len of the lane's row are readable; `filled + len` is at most K_BLOCK, so they
                    // stay within row `i` of the scratch.
                    unsafe {
                        let from = rows.row(lane + i).wrapping_add(offset);
                        ptr::copy_nonoverlapping(from, gathered.add(i * GATHERED_ROW + filled), len);
                    }
                }
                filled += len;
                offset += len;
                if offset == width {
                    (part, offset) = (part + 1, 0);
                }
            }
            // SAFETY: `filled` elements of each gathered row were written and meet as many rows of the weights.
            unsafe { block.run(Operand::Gathered(gathered), k, filled) };
            k += filled;
            if part == self.parts.len() {
                return;
            }
        }
    }
}

/// Where the operand rows of a block are.
#[derive(Clone, Copy)]
enum Operand<'a> {
    InPlace(&'a [*const f32; BLOCK_ROWS]),
    Gathered(*const f32),
}

/// A block of rows, cut into register tiles.
struct Block<'a> {
    twin: &'a Twin,
    weights: &'a PackedWeights,
    columns: Range<usize>,
    count: usize,
    tiles: usize,
    start: [*const f32; BLOCK_ROWS],
    out: *mut f32,
    out_stride: usize,
}

impl Block<'_> {
    /// Continues the chains of all elements of the block over `k` rows of the weights from `first_k` on.
    ///
    /// # Safety
    /// `k` elements of each operand row are readable, and the rows of the weights lie in one block; otherwise as for `Product::run_unchecked`.
    unsafe fn run(&mut self, operand: Operand<'_>, first_k: usize, k: usize) {
        let panel = self.weights.panel();
        let first_panel = self.columns.start / panel;
        let panels = self.columns.end.div_ceil(panel) - first_panel;
        let tallest = self.count.div_ceil(self.tiles);
        let groups = panels.div_ceil((self.twin.panels)(tallest));
        let mut at = first_panel;
        for group in 0..groups {
            let width = share(panels, groups, group);
            let mut row = 0;
            let columns = (width * panel).min(self.columns.end - at * panel);
            let narrow = width == 1 && columns <= self.twin.vector;
            for tile in 0..self.tiles {
                let height = share(self.count, self.tiles, tile);
                let (a, a_rows, function) = match (operand, narrow) {
                    (Operand::InPlace(rows), false) => {
                        (ptr::null(), rows[row..].as_ptr(), (self.twin.in_place)(height, width))
                    }
                    (Operand::InPlace(rows), true) => {
                        (ptr::null(), rows[row..].as_ptr(), (self.twin.narrow_in_place)(height))
                    }
                    (Operand::Gathered(a), false) => {
                        (a.wrapping_add(row * GATHERED_ROW), ptr::null(), (self.twin.gathered)(height, width))
                    }
                    (Operand::Gathered(a), true) => {
                        (a.wrapping_add(row * GATHERED_ROW), ptr::null(), (self.twin.narrow_gathered)(height))
                    }
                };
                let b = self.weights.row(at, first_k);
                let ahead = if self.tiles == 1 {
                    Ahead::lone(b, panel)
                } else {
                    Ahead::shared(b, panel, k * panel, tile)
                };
                let tile = Tile {
                    a,
                    a_rows,
                    b,
                    b_panel: self.weights.panel_len(first_k),
                    b_step: panel,
                    ahead,
                    k,
                    start: self.start[row..].as_ptr(),
                    out: self.out.wrapping_add(row * self.out_stride),
                    out_stride: self.out_stride,
                    column: at * panel,
                    columns,
                };
                // SAFETY: the shape's rows and panels exist in block and weights; the pointers are those the caller vouches for.
                unsafe { function(&tile) };
                row += height;
            }
            at += width;
        }
        for (i, start) in self.start.iter_mut().enumerate().take(self.count) {
            *start = self.out.wrapping_add(i * self.out_stride);
        }
    }
}

/// How many of `total` things the `index`th of `shares` nearly equal shares has; earlier shares are the larger ones.
pub(super) fn share(total: usize, shares: usize, index: usize) -> usize {
    total / shares + usize::from(index < total % shares)
}
