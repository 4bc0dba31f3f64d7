//! Products: the chain of fused multiply-adds that every affine, matmul and outer product is.
//!
//! ```text
//! acc = init
//! for each part, in order: for k ascending: acc = fma(x[k], w[k], acc)
//! ```
//! Blocking over k by storing and reloading `acc`, cutting an operand into several parts, and
//! computing the first parts once as the `init` of the rest keep the bits. Several accumulators for
//! one output (split-k) do not, and are never used.

use super::Real;

/// One part of a product: the elements of a row and the column of the weight that meets them.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a, T> {
    /// The row of the left operand.
    pub x: &'a [T],
    /// The right operand, from which `w[first + k * stride]` meets `x[k]`.
    pub w: &'a [T],
    /// The index of the first element of the column.
    pub first: usize,
    /// The distance between neighbours of the column: the width of a row-major weight.
    pub stride: usize,
}

impl<'a, T: Copy> Part<'a, T> {
    /// A part whose right operand is contiguous.
    pub fn contiguous(x: &'a [T], w: &'a [T]) -> Self {
        Part { x, w, first: 0, stride: 1 }
    }

    /// A part that meets column `column` of the row-major weight `w` of `columns` columns, from its
    /// row `row` on.
    pub fn column(x: &'a [T], w: &'a [T], columns: usize, row: usize, column: usize) -> Self {
        Part { x, w, first: row.saturating_mul(columns).saturating_add(column), stride: columns }
    }
}

/// One output of a product; the definition, slow. The chain of a part ends early where its right
/// operand does.
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
