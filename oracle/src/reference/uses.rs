//! Uses of parameters: their contributions to gradients, and the sums of contributions.

use autobatch_ir::id::ParamId;
use autobatch_ir::numeric::Real;
use std::sync::Arc;

/// One use of a parameter.
pub(crate) struct ParamUse<T> {
    pub(crate) param: ParamId,
    pub(crate) share: Share<T>,
}

/// The contribution of a use to the gradient of its parameter.
pub(crate) enum Share<T> {
    /// A product `dy = x · W[first.., ..]`: row by row, `dW[k][n] = fma(x[k], dy[n], dW[k][n])`.
    Product {
        /// The rows of the operand, each of width `width`.
        x: Arc<[T]>,
        /// The width of those rows.
        width: usize,
        /// The gradient of the results, with as many rows.
        dy: Arc<[T]>,
        /// The row of `W` for the first element of a row of `x`.
        first: usize,
        /// Whether the parameter is stored as `Wᵀ`.
        transposed: bool,
    },
    /// Numbers that are added to the whole parameter, once per row of the parameter's size.
    Rows(Arc<[T]>),
    /// Numbers added to one row of a table.
    Row {
        /// The row.
        index: usize,
        /// The added numbers.
        dy: Arc<[T]>,
    },
}

impl<T: Real> Share<T> {
    /// Adds the contribution to the gradient of a parameter with rows of width `columns`.
    pub(crate) fn add_to(&self, gradient: &mut [T], columns: usize) {
        match self {
            Self::Product { x, width, dy, first, transposed } => {
                let outputs = dy.len() * width / x.len().max(1);
                for (x, dy) in x.chunks_exact(*width).zip(dy.chunks_exact(outputs.max(1))) {
                    if *transposed {
                        let rows = gradient.chunks_exact_mut(columns).zip(dy);
                        rows.for_each(|(row, &dy)| add_scaled(&mut row[*first..], dy, x));
                    } else {
                        let rows = gradient.chunks_exact_mut(columns).skip(*first).zip(x);
                        rows.for_each(|(row, &x)| add_scaled(row, x, dy));
                    }
                }
            }
            Self::Rows(dy) => {
                for row in dy.chunks_exact(gradient.len().max(1)) {
                    add(gradient, row);
                }
            }
            Self::Row { index, dy } => {
                if let Some(row) = gradient.chunks_exact_mut(columns).nth(*index) {
                    add(row, dy);
                }
            }
        }
    }
}

/// `sum = fma(factor, x, sum)`, element by element.
fn add_scaled<T: Real>(sum: &mut [T], factor: T, x: &[T]) {
    for (sum, &x) in sum.iter_mut().zip(x) {
        *sum = factor.fma(x, *sum);
    }
}

/// `sum = sum + more`, element by element.
pub(crate) fn add<T: Real>(sum: &mut [T], more: &[T]) {
    for (sum, &more) in sum.iter_mut().zip(more) {
        *sum = sum.add(more);
    }
}
