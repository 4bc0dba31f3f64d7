//! Products: the chain of fused multiply-adds that defines every affine, matmul and outer product.
//!
//! ```text
//! acc = init
//! for each part, in order: for k ascending: acc = fma(x[k], w[k], acc)
//! ```
//! Three transformations keep the bits: blocking over k that stores and reloads `acc`, splitting an
//! operand into several parts, and computing the first parts once as the `init` of the rest. Several
//! accumulators for one output (split-k) change the bits and are never used.

use super::Real;

/// One part of a product: the elements of a row and a column of the weight.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a, T> {
    /// The row of the left operand.
    pub x: &'a [T],
    /// The right operand; `x[k]` is multiplied by `w[first + k * stride]`.
    pub w: &'a [T],
    /// The index of the first element of the column.
    pub first: usize,
    /// The distance between neighbours in the column: the width of a row-major weight.
    pub stride: usize,
}

impl<'a, T: Copy> Part<'a, T> {
    /// A part whose right operand is contiguous.
    pub fn contiguous(x: &'a [T], w: &'a [T]) -> Self {
        Part { x, w, first: 0, stride: 1 }
    }

    /// A part for column `column` of the row-major weight `w` of `columns` columns, starting at its row `row`.
    pub fn column(x: &'a [T], w: &'a [T], columns: usize, row: usize, column: usize) -> Self {
        Part { x, w, first: row.saturating_mul(columns).saturating_add(column), stride: columns }
    }
}

/// One output of a product: the definition, which is slow. The chain of a part ends at the end of its shorter operand.
pub fn prod_chain<T: Real>(init: T, parts: &[Part<'_, T>]) -> T {
    let mut acc = init;
    for part in parts {
        let column = part.w.get(part.first..).unwrap_or(&[]).iter().step_by(part.stride.max(1));
        for (&x, &w) in part.x.iter().zip(column) {
            acc = x.fma(w, acc);
        }
    }
    acc
}

/// The outer product `out[i * y.len() + j] = x[i] * y[j]`, one rounding each.
pub fn outer<T: Real>(x: &[T], y: &[T], out: &mut [T]) {
    if y.is_empty() {
        return;
    }
    for (row, &a) in out.chunks_exact_mut(y.len()).zip(x) {
        for (result, &b) in row.iter_mut().zip(y) {
            *result = a.mul(b);
        }
    }
}
