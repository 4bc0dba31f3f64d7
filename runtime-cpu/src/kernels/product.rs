//! Multiplies rows by packed weights: `out[r] = start[r] + sum over parts p of x_p[r] . W_p`.
//!
//! An operand row may consist of several parts, such as the input and the state of a recurrent cell. The parts multiply
//! consecutive rows of the weights.
//!
//! **Bits.** Each output element is one chain of fused multiply-adds: `acc = start`, then `acc = fma(x, w, acc)` for
//! ascending `k` over all parts. Blocking stores an accumulator and loads it again; it never adds partial sums. So the
//! bits do not depend on the instruction set, the number of rows, the position of a row, or the addresses of operand
//! rows. (NaN payloads may differ.)
//!
//! **Loops**, from the outermost to the innermost:
//! 1. Blocks of up to [`BLOCK_ROWS`] result rows. The weights pass through the L2 cache once per block.
//! 2. Blocks of up to [`K_BLOCK`] steps of `k`.
//! 3. Groups of neighbouring panels, as many as one register tile computes.
//! 4. Register tiles; see [`tile`](super::tile).
//!
//! **Operand rows.** A register tile reads operand rows *directly*, through one pointer per row, or *gathered*: the
//! product first copies one block of `k` of all rows into a buffer with a constant row distance. Every group of panels
//! reads the copy again, and its tiles need no row pointers. So gathering pays if there are many rows and many panels.

use std::ops::Range;
use std::ptr;

use super::error::{KernelError, reaches, same_size};
use super::kernel_set::{GATHERED_ROW, K_BLOCK, KernelSet, MAX_ROWS};
use super::memory::Scratch;
use super::pack::PackedWeights;
use super::rows::{Rows, RowsMut};
use super::tile::{Prefetch, Tile};

/// The maximum number of rows in a block: four of the tallest register tiles of any instruction set.
pub(super) const BLOCK_ROWS: usize = 4 * MAX_ROWS;
/// Up to this many rows are read directly.
const FEW_ROWS: usize = 6;
/// Rows for up to this many panels are read directly, unless they conflict in the L1 cache.
const FEW_PANELS: usize = 8;
/// Addresses at a distance of this many floats (4 KiB) map to the same set of an L1 cache.
const SET_PERIOD: usize = 1024;

/// A part of the operand: rows of `k` columns, which multiply the next `k` rows of the weights.
#[derive(Clone, Copy, Debug)]
pub struct RowsPart<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// The columns of a row.
    pub k: usize,
}

/// The initial values of the accumulators.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Zero.
    Zero,
    /// A bias of `n` columns, the same for all rows.
    Bias(&'a [f32]),
    /// One row of `n` columns per lane, for example an earlier part of the same product.
    Rows(Rows<'a>),
    /// The current contents of the result rows.
    Output,
}

/// A product with packed weights.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    /// The weights of all parts, stacked.
    pub weights: &'a PackedWeights,
    /// The row of `weights` where the first part begins.
    pub first_k: usize,
    /// The parts of the operand, in the order of the chain.
    pub parts: &'a [RowsPart<'a>],
    /// The start of each chain.
    pub start: Start<'a>,
}

impl<'a> Product<'a> {
    /// The product of `parts` with all rows of `weights`.
    pub fn new(weights: &'a PackedWeights, parts: &'a [RowsPart<'a>], start: Start<'a>) -> Self {
        Product { weights, first_k: 0, parts, start }
    }

    /// Computes `lanes` of the batch into rows `0..lanes.len()` of `out`.
    pub fn run(
        &self,
        lanes: Range<usize>,
        out: RowsMut<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), KernelError> {
        self.check(&lanes, &out)?;
        // SAFETY: `check` proved the lanes and widths against the lengths of `Rows` and `RowsMut`. Packed weights exist
        // only for an available instruction set.
        unsafe { self.run_unchecked(lanes, out, scratch) };
        Ok(())
    }

    /// Checks that all operand rows of `lanes`, the weights and the result rows exist and are wide enough.
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
    /// [`Product::check`] returns `Ok` for `lanes` and `out`, and the contracts of `Rows` and `RowsMut` hold. The
    /// result rows overlap no operand, start row or bias, except that `Start::Rows` may name exactly the result rows.
    pub unsafe fn run_unchecked(&self, lanes: Range<usize>, out: RowsMut<'_>, scratch: &mut Scratch) {
        if lanes.is_empty() || self.weights.n() == 0 {
            return;
        }
        let kernels = KernelSet::of(self.weights.isa());
        let blocks = lanes.len().div_ceil(BLOCK_ROWS / kernels.rows * kernels.rows);
        let mut done = 0;
        for block in 0..blocks {
            let count = share(lanes.len(), blocks, block);
            // SAFETY: the caller guarantees all lanes and result rows, which include those of the block.
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

    /// Returns whether a block of `count` rows reads its operand rows directly. Many rows that conflict in the L1 cache
    /// are always gathered, because reading one row would evict the others.
    fn reads_directly(&self, kernels: &KernelSet, count: usize) -> bool {
        let conflicts = |part: &RowsPart<'_>| {
            let distance = part.rows.pitch().unwrap_or(part.rows.stride());
            // Lanes that share one row have distance 0 and read the same cache lines.
            distance > 0 && distance.is_multiple_of(SET_PERIOD)
        };
        count <= FEW_ROWS
            || self.weights.n() <= FEW_PANELS * kernels.panel && !self.parts.iter().any(conflicts)
    }

    /// Multiplies rows that are read directly, one part after the other.
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

    /// Gathers `K_BLOCK` columns of all rows at a time, across parts, and multiplies them.
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
                let RowsPart { rows, k: width } = self.parts[part];
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
    /// One pointer per row.
    Direct(&'a [*const f32; BLOCK_ROWS]),
    /// The buffer of gathered rows.
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
    /// Continues all chains of the block over rows `first_k..first_k + k` of the weights.
    ///
    /// # Safety
    /// `k` elements of each operand row are readable, and those rows of the weights lie in one block of `k`. The other
    /// conditions are those of `Product::run_unchecked`.
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
                    adds_start: false,
                    out: self.out.wrapping_add(row * self.out_stride),
                    out_stride: self.out_stride,
                    column: at * panel,
                    columns,
                };
                // SAFETY: the block has the rows of the tile and the weights its panels; the caller guarantees the memory.
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

/// The size of share `index` if `total` is split into `shares` nearly equal shares. Larger shares come first.
pub(super) fn share(total: usize, shares: usize, index: usize) -> usize {
    total / shares + usize::from(index < total % shares)
}
