//! The product of two small matrices of one instance; no weights are packed ahead.
//!
//! **Bits.** As for [`super::Product`]: `acc = start; for k ascending: acc = fma(a[i, k], b[k, j], acc)`.
//!
//! **Speed.** The rows of `b` serve as panels directly; loads in the last panel are limited to existing columns. A
//! transposed `b` is packed first, which costs as much as one register tile, and multiplied as packed weights. If
//! packing is impossible, blocks of its columns are copied into scratch. A transposed `a` is packed tile by tile, as in a weight
//! gradient: neighbouring rows of the product are neighbours in memory.

use std::ptr;

use super::error::{KernelError, same_size};
use super::isa::Isa;
use super::kernel_set::{GATHERED_ROW, K_BLOCK, KernelSet, MAX_ROWS, MAX_STEP};
use super::memory::Scratch;
use super::pack::{Matrix, PackedWeights};
use super::product::{BLOCK_ROWS, Product, RowsPart, Start, share};
use super::rows::RowsMut;
use super::tile::{Prefetch, Tile};

/// The number of columns of a transposed `b` that are copied at once, and the row distance of the copy.
const COPIED_COLUMNS: usize = 64;

/// The floats of the rows of `a` of one tile, gathered or packed.
const TILE_FLOATS: usize = K_BLOCK * MAX_STEP;
const _: () = assert!(MAX_ROWS * GATHERED_ROW <= TILE_FLOATS);

/// The most floats of scratch space that a product needs, beside the packed form of a transposed `b`.
pub(crate) const PRODUCT_SCRATCH_FLOATS: usize = TILE_FLOATS + K_BLOCK * COPIED_COLUMNS;
// Products with gathered rows need less.
const _: () = assert!(BLOCK_ROWS * GATHERED_ROW <= PRODUCT_SCRATCH_FLOATS);

/// Computes `out[i, j] = start + sum over k of a[i, k] * b[k, j]`. `start` is `out[i, j]` if `accumulate`, else zero.
///
/// # Errors
/// If sizes differ or the instruction set is not available.
pub fn multiply(
    isa: Isa,
    a: Matrix<'_>,
    b: Matrix<'_>,
    out: RowsMut<'_>,
    accumulate: bool,
    scratch: &mut Scratch,
) -> Result<(), KernelError> {
    isa.required()?;
    a.check()?;
    b.check()?;
    same_size("rows of the right matrix", a.columns(), b.rows())?;
    if a.rows() == 0 || b.columns() == 0 {
        return Ok(());
    }
    out.check("result rows", a.rows(), b.columns())?;
    // SAFETY: the checks above proved both matrices, the result and the instruction set.
    unsafe { multiply_unchecked(isa, a, b, out, accumulate, scratch) };
    Ok(())
}

/// [`multiply`] without the checks.
///
/// # Safety
/// [`multiply`] would accept the arguments, and the contract of `out` holds.
pub unsafe fn multiply_unchecked(
    isa: Isa,
    a: Matrix<'_>,
    b: Matrix<'_>,
    out: RowsMut<'_>,
    accumulate: bool,
    scratch: &mut Scratch,
) {
    // SAFETY: as for this function.
    if b.is_transposed() && unsafe { multiply_packed(isa, &a, b, &out, accumulate, scratch) } {
        return;
    }
    let kernels = KernelSet::of(isa);
    let tiles = a.rows().div_ceil(kernels.rows);
    let buffer = scratch.floats(PRODUCT_SCRATCH_FLOATS);
    let (gathered, copied) = buffer.split_at_mut(TILE_FLOATS);
    let mut first_k = 0;
    // An empty chain still writes its start, in one iteration with `k == 0`.
    loop {
        let k = K_BLOCK.min(a.columns() - first_k);
        let mut row = 0;
        for tile in 0..tiles {
            let height = share(a.rows(), tiles, tile);
            if a.is_transposed() {
                let pack = if kernels.step < MAX_STEP {
                    Matrix::pack_rows::<{ MAX_STEP / 2 }>
                } else {
                    Matrix::pack_rows::<MAX_STEP>
                };
                pack(&a, row..row + height, first_k, &mut gathered[..k * kernels.step]);
            } else {
                for i in 0..height {
                    a.copy_row(row + i, first_k, &mut gathered[i * GATHERED_ROW..][..k]);
                }
            }
            let mut start = [ptr::null::<f32>(); MAX_ROWS];
            if first_k > 0 || accumulate {
                for (i, slot) in start.iter_mut().enumerate().take(height) {
                    *slot = out.row(row + i);
                }
            }
            let shape = Tile {
                a: gathered.as_ptr(),
                a_rows: ptr::null(),
                b: ptr::null(),
                b_panel: kernels.panel,
                b_step: 0,
                prefetch: Prefetch::NOTHING,
                k,
                start: start.as_ptr(),
                adds_start: false,
                out: out.row(row),
                out_stride: out.stride(),
                column: 0,
                columns: 0,
            };
            let run = if a.is_transposed() { run_packed_tile } else { run_row_tile };
            // SAFETY: rows of `a` were gathered; `b` has rows first_k..first_k + k; the caller guarantees the result.
            unsafe { run(kernels, height, shape, &b, first_k, copied) };
            row += height;
        }
        first_k += k;
        if first_k == a.columns() {
            return;
        }
    }
}

/// Packs `b` and multiplies. Does nothing and returns `false` if `a` is transposed, the chain is empty or memory is
/// missing.
///
/// # Safety
/// As for [`multiply_unchecked`].
unsafe fn multiply_packed(
    isa: Isa,
    a: &Matrix<'_>,
    b: Matrix<'_>,
    out: &RowsMut<'_>,
    accumulate: bool,
    scratch: &mut Scratch,
) -> bool {
    let (k, n) = (b.rows(), b.columns());
    let Some(rows) = a.as_rows().filter(|_| k > 0) else { return false };
    let weights = match scratch.packed.take() {
        Some(mut packed) => packed.refit(isa, k, n).map(|()| packed),
        None => PackedWeights::zeroed(isa, k, n),
    };
    let Ok(mut weights) = weights else { return false };
    let packed = weights.fill(0, 0, b).is_ok();
    if packed {
        let parts = [RowsPart { rows, k }];
        let start = if accumulate { Start::Output } else { Start::Zero };
        // SAFETY: the caller guarantees the operands and the result; the packed matrix equals `b`.
        unsafe {
            let out = RowsMut::from_raw(out.row(0), usize::MAX, out.stride());
            Product::new(&weights, &parts, start).run_unchecked(0..a.rows(), out, scratch);
        }
    }
    scratch.packed = Some(weights);
    packed
}

/// Computes all columns of one tile of rows, over the rows of `b` from `first_k` on.
///
/// # Safety
/// Apart from `b` and the columns, `tile` satisfies the contract of a tile function of `height` rows.
unsafe fn run_row_tile(
    kernels: &KernelSet,
    height: usize,
    mut tile: Tile,
    b: &Matrix<'_>,
    first_k: usize,
    copied: &mut [f32],
) {
    let widest = (kernels.panels)(height);
    let mut column = 0;
    while column < b.columns() {
        let left = b.columns() - column;
        let mut width = 1;
        tile.column = column;
        match b.row_slice(first_k, column) {
            Some((from, stride)) => {
                (tile.b, tile.b_step) = (from.as_ptr(), stride);
                width = (left / kernels.panel).clamp(1, widest);
            }
            None => {
                tile.columns = kernels.panel.min(left);
                for k in 0..tile.k {
                    b.copy_row(first_k + k, column, &mut copied[k * COPIED_COLUMNS..][..tile.columns]);
                }
                (tile.b, tile.b_step) = (copied.as_ptr(), COPIED_COLUMNS);
            }
        }
        tile.columns = left.min(width * kernels.panel);
        tile.prefetch = Prefetch::single_tile(tile.b, tile.b_step);
        let whole = tile.columns == width * kernels.panel;
        let function = if whole { (kernels.gathered)(height, width) } else { (kernels.limited)(height) };
        // SAFETY: the panels are whole, or the function reads existing columns only.
        unsafe { function(&tile) };
        column += tile.columns;
    }
}

/// Computes all columns of one tile of packed rows, over the rows of `b` from `first_k` on.
///
/// # Safety
/// Apart from `b` and the columns, `tile` satisfies the contract of a transposed tile function of `height` rows.
unsafe fn run_packed_tile(
    kernels: &KernelSet,
    height: usize,
    mut tile: Tile,
    b: &Matrix<'_>,
    first_k: usize,
    copied: &mut [f32],
) {
    for column in (0..b.columns()).step_by(kernels.panel) {
        (tile.column, tile.columns) = (column, kernels.panel.min(b.columns() - column));
        let whole = tile.columns == kernels.panel;
        (tile.b, tile.b_step) = match b.row_slice(first_k, column).filter(|_| whole) {
            Some((from, stride)) => (from.as_ptr(), stride),
            // The tile reads a whole panel, whose surplus columns it ignores.
            None => {
                for k in 0..tile.k {
                    b.copy_row(first_k + k, column, &mut copied[k * COPIED_COLUMNS..][..tile.columns]);
                }
                (copied.as_ptr(), COPIED_COLUMNS)
            }
        };
        let narrow = tile.columns <= kernels.vector;
        let function =
            if narrow { (kernels.narrow_transposed)(height) } else { (kernels.transposed)(height) };
        // SAFETY: the panel is whole, in `b` or in the copy.
        unsafe { function(&tile) };
    }
}
