//! The product of two small matrices that both belong to an instance: nothing is packed ahead.
//!
//! **Bits.** As for [`super::Product`]: `acc = start; for k ascending: acc = fma(a[i, k], b[k, j], acc)`.
//!
//! **Speed.** Few rows meet `b` where it is: its rows serve as panels, with the columns of the last panel read under a limit, and a matrix
//! that is read by columns (a transposed operand) is copied into scratch, block of `k` by block of `k`. From a few register tiles of rows on
//! it pays to pack `b` first, which costs as much as one more tile, and to run the product of packed weights.

use std::ptr;

use super::error::{KernelError, same_size};
use super::isa::Isa;
use super::memory::Scratch;
use super::pack::{Matrix, PackedWeights};
use super::product::{Part, Product, Start, share};
use super::rows::RowsMut;
use super::tile::{Ahead, Tile};
use super::twins::{GATHERED_ROW, K_BLOCK, MOST_ROWS, Twin};

/// Columns of a transposed `b` that are laid out at once, and their rows' distance.
const LAID_OUT: usize = 64;

/// `out[i, j] = start + sum over k of a[i, k] * b[k, j]`, where `start` is what `out` holds if `accumulate`, and zero otherwise.
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
    // SAFETY: the checks above have proved both matrices and the result, and that the machine has the instruction set.
    unsafe { multiply_unchecked(isa, a, b, out, accumulate, scratch) };
    Ok(())
}

/// As [`multiply`], without the checks.
///
/// # Safety
/// [`multiply`] would accept the arguments, and the promises made when `out` was created hold.
pub unsafe fn multiply_unchecked(
    isa: Isa,
    a: Matrix<'_>,
    b: Matrix<'_>,
    out: RowsMut<'_>,
    accumulate: bool,
    scratch: &mut Scratch,
) {
    // SAFETY: as for this function.
    if pays_to_pack(&a, &b) && unsafe { multiply_packed(isa, &a, b, &out, accumulate, scratch) } {
        return;
    }
    let twin = Twin::of(isa);
    let tiles = a.rows().div_ceil(twin.rows);
    let buffer = scratch.floats(MOST_ROWS * GATHERED_ROW + K_BLOCK * LAID_OUT);
    let (gathered, laid_out) = buffer.split_at_mut(MOST_ROWS * GATHERED_ROW);
    let mut first_k = 0;
    // A chain of no steps still writes its start, in one turn of no length.
    loop {
        let k = K_BLOCK.min(a.columns() - first_k);
        let mut row = 0;
        for tile in 0..tiles {
            let height = share(a.rows(), tiles, tile);
            for i in 0..height {
                a.copy_row(row + i, first_k, &mut gathered[i * GATHERED_ROW..][..k]);
            }
            let mut start = [ptr::null::<f32>(); MOST_ROWS];
            if first_k > 0 || accumulate {
                for (i, slot) in start.iter_mut().enumerate().take(height) {
                    *slot = out.row(row + i);
                }
            }
            let shape = Tile {
                a: gathered.as_ptr(),
                a_rows: ptr::null(),
                b: ptr::null(),
                b_panel: twin.panel,
                b_step: 0,
                ahead: Ahead::lone(ptr::null(), 0),
                k,
                start: start.as_ptr(),
                out: out.row(row),
                out_stride: out.stride(),
                column: 0,
                columns: 0,
            };
            // SAFETY: rows of `a` were gathered; `b` has rows first_k..first_k + k; the caller vouches for the result.
            unsafe { run_row_tile(twin, height, shape, &b, first_k, laid_out) };
            row += height;
        }
        first_k += k;
        if first_k == a.columns() {
            return;
        }
    }
}

/// Whether packing `b` costs less than it gains.
fn pays_to_pack(_a: &Matrix<'_>, b: &Matrix<'_>) -> bool {
    b.row_slice(0, 0).is_none()
}

/// Packs `b` and says whether it could: a transposed `a`, a chain of no steps and a lack of memory are left to the other way.
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
        let parts = [Part { rows, k }];
        let start = if accumulate { Start::Output } else { Start::Zero };
        // SAFETY: the caller vouches for the operands and the result; the packed matrix is the right one.
        unsafe {
            let out = RowsMut::from_raw(out.row(0), usize::MAX, out.stride());
            Product::new(&weights, &parts, start).run_unchecked(0..a.rows(), out, scratch);
        }
    }
    scratch.packed = Some(weights);
    packed
}

/// All columns of one tile of rows, over the rows of `b` from `first_k` on.
///
/// # Safety
/// `tile` is complete but for `b` and the columns, and as a tile function of `height` rows asks for.
unsafe fn run_row_tile(
    twin: &Twin,
    height: usize,
    mut tile: Tile,
    b: &Matrix<'_>,
    first_k: usize,
    laid_out: &mut [f32],
) {
    let widest = (twin.panels)(height);
    let mut column = 0;
    while column < b.columns() {
        let left = b.columns() - column;
        let mut width = 1;
        tile.column = column;
        match b.row_slice(first_k, column) {
            Some((from, stride)) => {
                (tile.b, tile.b_step) = (from.as_ptr(), stride);
                width = (left / twin.panel).clamp(1, widest);
            }
            None => {
                tile.columns = twin.panel.min(left);
                for k in 0..tile.k {
                    b.copy_row(first_k + k, column, &mut laid_out[k * LAID_OUT..][..tile.columns]);
                }
                (tile.b, tile.b_step) = (laid_out.as_ptr(), LAID_OUT);
            }
        }
        tile.columns = left.min(width * twin.panel);
        tile.ahead = Ahead::lone(tile.b, tile.b_step);
        let whole = tile.columns == width * twin.panel;
        let function = if whole { (twin.gathered)(height, width) } else { (twin.cut)(height) };
        // SAFETY: the panels are whole, or one is cut and the function keeps to the limit.
        unsafe { function(&tile) };
        column += tile.columns;
    }
}
