//! Dot products and chains over the rows of one list, head by head.

use super::row_of;
use crate::kernels::attention::Strided;
use autobatch_ir::numeric::{row, scalar};
use autobatch_ir::plan::List;
use std::slice::from_raw_parts_mut;

/// For each row of a list and each head, the dot product of the groups of a vector and of the row.
///
/// # Safety
/// The rows exist and are as wide as the vector.
#[inline(always)]
pub(super) unsafe fn dots(x: &[f32], list: List<'_>, rows: Strided, heads: usize, dots: &mut Vec<f32>) {
    let width = x.len() / heads;
    dots.clear();
    for item in 0..list.len() {
        // SAFETY: the row exists.
        let row = unsafe { row_of(rows, list.row(item) as usize) };
        for (x, y) in x.chunks_exact(width).zip(row.chunks_exact(width)) {
            dots.push(row::dot(x, y));
        }
    }
}

/// The elements of a block of columns.
const BLOCK: usize = row::LANES;

/// The chains over the rows of a list: group `h` of a row is weighted by number `h` of its weights.
///
/// # Safety
/// The rows exist, there are weights for each, and `out` is writable and overlaps no row.
#[inline(always)]
pub(super) unsafe fn weighted_sum(
    list: List<'_>,
    rows: Strided,
    weights: &[f32],
    heads: usize,
    out: *mut f32,
) {
    let group = rows.width / heads;
    // SAFETY: as for this function; blocks lie in one group each.
    unsafe {
        if !group.is_multiple_of(BLOCK) {
            return any_groups(list, rows, weights, heads, out);
        }
        let mut column = 0;
        while column < rows.width {
            let count = match (rows.width - column) / BLOCK {
                left @ 0..=1 => left,
                2..=3 => 2,
                _ => 4,
            };
            match count {
                1 => blocks::<1>(list, rows, weights, heads, column, out),
                2 => blocks::<2>(list, rows, weights, heads, column, out),
                4 => blocks::<4>(list, rows, weights, heads, column, out),
                _ => return,
            }
            column += count * BLOCK;
        }
    }
}

/// Some blocks of columns of [`weighted_sum`], from `column` on.
///
/// # Safety
/// As for [`weighted_sum`]; the columns exist, and no block lies in two groups.
#[inline(always)]
unsafe fn blocks<const BLOCKS: usize>(
    list: List<'_>,
    rows: Strided,
    weights: &[f32],
    heads: usize,
    column: usize,
    out: *mut f32,
) {
    let group = rows.width / heads;
    let mut of_block = [0; BLOCKS];
    for (number, head) in of_block.iter_mut().enumerate() {
        *head = (column + number * BLOCK) / group;
    }
    let mut sums = [[0.0; BLOCK]; BLOCKS];
    for (item, weights) in weights.chunks_exact(heads).enumerate() {
        let from = rows.row(list.row(item) as usize).wrapping_add(column);
        for (number, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the columns of the row exist, and the heads are below their number.
            unsafe {
                let weight = *weights.get_unchecked(of_block[number]);
                let from = from.add(number * BLOCK);
                for (element, sum) in sum.iter_mut().enumerate() {
                    *sum = scalar::fma(weight, *from.add(element), *sum);
                }
            }
        }
    }
    for (number, sum) in sums.iter().enumerate() {
        // SAFETY: the columns of the result are writable.
        unsafe { std::ptr::copy_nonoverlapping(sum.as_ptr(), out.add(column + number * BLOCK), BLOCK) };
    }
}

/// [`weighted_sum`] for groups of any width.
///
/// # Safety
/// As for [`weighted_sum`].
#[inline(always)]
unsafe fn any_groups(list: List<'_>, rows: Strided, weights: &[f32], heads: usize, out: *mut f32) {
    let group = rows.width / heads;
    // SAFETY: the result is writable.
    let out = unsafe { from_raw_parts_mut(out, rows.width) };
    out.fill(0.0);
    for (item, weights) in weights.chunks_exact(heads).enumerate() {
        // SAFETY: the row exists.
        let row = unsafe { row_of(rows, list.row(item) as usize) };
        for ((&weight, row), out) in
            weights.iter().zip(row.chunks_exact(group)).zip(out.chunks_exact_mut(group))
        {
            for (out, &x) in out.iter_mut().zip(row) {
                *out = scalar::fma(weight, x, *out);
            }
        }
    }
}
