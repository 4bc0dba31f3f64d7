//! The product of rows with packed weights: `out[r] = start[r] + sum over parts p of x_p[r] . W_p`.
//!
//! **Bits.** Every output element is the chain `acc = start; for k ascending over the parts: acc = fma(x, w, acc)`.
//! The chain does not depend on the instruction set, the number of rows, the position of a row, the columns of the
//! call, or whether a range or a table names the rows. Blocking continues from the stored accumulator; no chain is
//! ever split and added up. (NaN payloads may differ.)
//!
//! **Speed.** Rows are cut into blocks of a few register tiles. Few rows, or rows for few weights, are read directly
//! through one pointer each. Other rows are first gathered into a small buffer with a fixed row distance, one block of
//! `k` at a time; the copy is then read `n / 32` times. Ranges, tables and shared rows are equally fast either way.
//! The panels of weights pass through the cache once per block of rows.

use std::ops::Range;
use std::ptr;

use super::error::{KernelError, reaches, same_size};
use super::kernel_set::{GATHERED_ROW, K_BLOCK, KernelSet, MAX_ROWS};
use super::memory::Scratch;
use super::pack::PackedWeights;
use super::rows::{Rows, RowsMut};
use super::tile::{Prefetch, Tile};

/// The maximum number of rows in a block: four of the tallest register tiles, or more lower ones. All weights pass
/// through the L2 cache once per block.
pub(super) const BLOCK_ROWS: usize = 4 * MAX_ROWS;
/// Up to this many rows are read directly, for any width of the product.
const FEW_ROWS: usize = 6;
/// Up to this many panels of weights, gathering rows costs more than it gains.
const FEW_PANELS: usize = 8;
/// Rows whose distance is a multiple of this many floats share one set of an L1 cache.
const PAGE_FLOATS: usize = 1024;

/// One operand of a product: rows of width `k`, multiplied by the next `k` rows of the weights.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Where the rows are.
    pub rows: Rows<'a>,
    /// The number of columns used of a row.
    pub k: usize,
}

/// The start value of the accumulators of a product.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Zero.
    Zero,
    /// A bias: one row, `n` wide, for all rows of the result.
    Bias(&'a [f32]),
    /// One row, `n` wide, per row of the result, for example a part of the product that was computed before.
    Rows(Rows<'a>),
    /// The contents of the result rows.
    Output,
}

/// A product with packed weights.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    /// The weights of all parts, stacked.
    pub weights: &'a PackedWeights,
    /// The row of `weights` where the first part begins.
    pub first_k: usize,
    /// The operands, in the order of the chain.
    pub parts: &'a [Part<'a>],
    /// The start of the chain.
    pub start: Start<'a>,
}

impl<'a> Product<'a> {
    /// The product of `parts` with all rows of `weights`.
    pub fn new(weights: &'a PackedWeights, parts: &'a [Part<'a>], start: Start<'a>) -> Self {
        Product { weights, first_k: 0, parts, start }
    }

    /// Computes lanes `lanes` of the batch into rows `0..lanes.len()` of `out`.
    pub fn run(
        &self,
        lanes: Range<usize>,
        out: RowsMut<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), KernelError> {
        self.check(&lanes, &out)?;
        // SAFETY: `check` proved the lanes and widths against the lengths of `Rows` and `RowsMut`. Packed
        // weights exist only for an available instruction set.
        unsafe { self.run_unchecked(lanes, out, scratch) };
        Ok(())
    }

    /// Checks that the lanes of every operand and the rows of `out` exist and are as wide as the product needs.
    pub fn check(&self, lanes: &Range<usize>, out: &RowsMut<'_>) -> Result<(), KernelError> {
        let n = self.weights.n();
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
        out.check("result rows", lanes.len(), n)
    }

    /// [`Product::run`] without the checks.
    ///
    /// # Safety
    /// [`Product::check`] returns `Ok` for `lanes` and `out`, and the contracts of `Rows` and `RowsMut` hold. The result
    /// rows overlap no operand, start row or bias, except that `Start::Rows` may name exactly the result rows.
    pub unsafe fn run_unchecked(&self, lanes: Range<usize>, out: RowsMut<'_>, scratch: &mut Scratch) {
        if lanes.is_empty() || self.weights.n() == 0 {
            return;
        }
        let kernels = KernelSet::of(self.weights.isa());
        let blocks = lanes.len().div_ceil(BLOCK_ROWS / kernels.rows * kernels.rows);
        let mut done = 0;
        for block in 0..blocks {
            let count = share(lanes.len(), blocks, block);
            // SAFETY: the lanes of a block are among those that the caller guarantees, and so are its result rows.
            unsafe { self.run_block(kernels, lanes.start + done, count, &out, done, scratch) };
            done += count;
        }
    }

    /// Computes `count` lanes (1 to `BLOCK_ROWS`) from `lane` on, into the rows of `out` from `row` on.
    ///
    /// # Safety
    /// As for `run_unchecked`.
    unsafe fn run_block(
        &self,
        kernels: &KernelSet,
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
                // SAFETY: the caller guarantees the lane.
                Start::Rows(rows) => unsafe { rows.row(lane + i) },
                Start::Output => out.row(row + i),
            };
        }
        let tiles = count.div_ceil(kernels.rows);
        let mut block = Block {
            kernels,
            weights: self.weights,
            count,
            tiles,
            start,
            out: out.row(row),
            out_stride: out.stride(),
        };
        if self.reads_directly(kernels, count) {
            // SAFETY: as for this function.
            unsafe { self.run_direct(&mut block, lane) };
        } else {
            // SAFETY: as for this function.
            unsafe { self.run_gathered(&mut block, lane, scratch) };
        }
    }

    /// Whether gathering rows would cost more than it gains: there are few rows, or few panels use them. Many rows whose
    /// elements share one set of the L1 cache are always gathered, because they would evict each other.
    fn reads_directly(&self, kernels: &KernelSet, count: usize) -> bool {
        let crowded = |part: &Part<'_>| part.rows.stride().is_multiple_of(PAGE_FLOATS);
        count <= FEW_ROWS || self.weights.n() <= FEW_PANELS * kernels.panel && !self.parts.iter().any(crowded)
    }

    /// Reads rows directly, one part after the other.
    ///
    /// # Safety
    /// As for `run_unchecked`.
    unsafe fn run_direct(&self, block: &mut Block<'_>, lane: usize) {
        let mut rows = [ptr::null::<f32>(); BLOCK_ROWS];
        let mut k = self.first_k;
        for part in self.parts {
            for (i, row) in rows.iter_mut().enumerate().take(block.count) {
                // SAFETY: the caller guarantees the lane.
                *row = unsafe { part.rows.row(lane + i) };
            }
            let end = k + part.k;
            while k < end {
                let len = (end - k).min(K_BLOCK - k % K_BLOCK);
                // SAFETY: `len` elements of each row are readable, and `len` rows follow in the block of the weights.
                unsafe { block.run(Operand::Direct(&rows), k, len) };
                for row in rows.iter_mut().take(block.count) {
                    *row = row.wrapping_add(len);
                }
                k += len;
            }
        }
        if k == self.first_k {
            // SAFETY: an empty chain reads no operand.
            unsafe { block.run(Operand::Direct(&rows), k, 0) };
        }
    }

    /// Gathers rows into scratch, `K_BLOCK` columns at a time, across the bounds of parts.
    ///
    /// # Safety
    /// As for `run_unchecked`.
    unsafe fn run_gathered(&self, block: &mut Block<'_>, lane: usize, scratch: &mut Scratch) {
        let gathered = scratch.floats(BLOCK_ROWS * GATHERED_ROW).as_mut_ptr();
        let (mut part, mut offset) = (0, 0);
        let mut k = self.first_k;
        loop {
            let mut filled = 0;
            let limit = K_BLOCK - k % K_BLOCK;
            while filled < limit && part < self.parts.len() {
                let Part { rows, k: width } = self.parts[part];
                let len = (width - offset).min(limit - filled);
                for i in 0..block.count {
                    // SAFETY: columns offset..offset + len of the lane's row are readable. `filled + len` is at most
                    // K_BLOCK, so the copy stays within row `i` of the scratch.
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
            // SAFETY: `filled` elements of each gathered row were written, and the block of the weights has as many rows.
            unsafe { block.run(Operand::Gathered(gathered), k, filled) };
            k += filled;
            if part == self.parts.len() {
                return;
            }
        }
    }
}

/// The operand rows of a block.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Direct(&'a [*const f32; BLOCK_ROWS]),
    Gathered(*const f32),
}

/// A block of rows, cut into register tiles.
struct Block<'a> {
    kernels: &'a KernelSet,
    weights: &'a PackedWeights,
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
    /// `k` elements of each operand row are readable, and the rows of the weights lie in one block. Otherwise as for
    /// `Product::run_unchecked`.
    unsafe fn run(&mut self, operand: Operand<'_>, first_k: usize, k: usize) {
        let panel = self.weights.panel();
        let panels = self.weights.n().div_ceil(panel);
        let tallest = self.count.div_ceil(self.tiles);
        let groups = panels.div_ceil((self.kernels.panels)(tallest));
        let mut at = 0;
        for group in 0..groups {
            let width = share(panels, groups, group);
            let mut row = 0;
            let columns = (width * panel).min(self.weights.n() - at * panel);
            let narrow = width == 1 && columns <= self.kernels.vector;
            for tile in 0..self.tiles {
                let height = share(self.count, self.tiles, tile);
                let function = match (operand, narrow) {
                    (Operand::Direct(_), false) => (self.kernels.direct)(height, width),
                    (Operand::Direct(_), true) => (self.kernels.narrow_direct)(height),
                    (Operand::Gathered(_), false) => (self.kernels.gathered)(height, width),
                    (Operand::Gathered(_), true) => (self.kernels.narrow_gathered)(height),
                };
                let (a, a_rows) = match operand {
                    Operand::Direct(rows) => (ptr::null(), rows[row..].as_ptr()),
                    Operand::Gathered(a) => (a.wrapping_add(row * GATHERED_ROW), ptr::null()),
                };
                let b = self.weights.row(at, first_k);
                let prefetch = match self.tiles {
                    1 => Prefetch::single_tile(b, panel),
                    _ => Prefetch::shared(b, panel, k * panel, tile),
                };
                let tile = Tile {
                    a,
                    a_rows,
                    b,
                    b_panel: self.weights.panel_len(first_k),
                    b_step: panel,
                    prefetch,
                    k,
                    start: self.start[row..].as_ptr(),
                    out: self.out.wrapping_add(row * self.out_stride),
                    out_stride: self.out_stride,
                    column: at * panel,
                    columns,
                };
                // SAFETY: the rows and panels of the shape exist in block and weights; the caller guarantees the pointers.
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

/// The size of share `index` when `total` is split into `shares` nearly equal shares, larger ones first.
pub(super) fn share(total: usize, shares: usize, index: usize) -> usize {
    total / shares + usize::from(index < total % shares)
}
