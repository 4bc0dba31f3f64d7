//! Uses of parameters: what each contributes to the gradient, and how contributions are summed.

use autobatch_ir::id::ParamId;
use autobatch_ir::numeric::Real;
use std::sync::Arc;

/// One use of a parameter.
pub(crate) struct ParamUse<T> {
    pub(crate) param: ParamId,
    pub(crate) share: Share<T>,
}

/// What a use contributes to the gradient of its parameter.
pub(crate) enum Share<T> {
    /// A product `dy = x · W[first.., ..]`: row by row, `dW[k][n] = fma(x[k], dy[n], dW[k][n])`.
    Product {
        /// The rows of the operand, each `width` wide.
        x: Arc<[T]>,
        /// The width of those rows.
        width: usize,
        /// The gradient of the results, as many rows.
        dy: Arc<[T]>,
        /// The row of `W` that meets the first element of a row of `x`.
        first: usize,
        /// Whether the parameter is stored as `Wᵀ`.
        transposed: bool,
    },
    /// Numbers added: to the whole parameter, once for each row as long as it.
    Rows(Arc<[T]>),
    /// Numbers added to one row of a table.
    Row {
        /// The row.
        index: usize,
        /// What is added.
        dy: Arc<[T]>,
    },
}

impl<T: Real> Share<T> {
    /// Adds the share to the gradient of a parameter whose rows are `columns` wide.
    pub(crate) fn add_to(&self, gradient: &mut [T], columns: usize) {
        match self {
            Self::Product { x, width, dy, first, transposed } => {
                let outputs = dy.len() * width / x.len().max(1);
                for (x, dy) in x.chunks_exact(*width).zip(dy.chunks_exact(outputs.max(1))) {
                    if *transposed {
                        for (row, &dy) in gradient.chunks_exact_mut(columns).zip(dy) {
                            for (sum, &x) in row[*first..].iter_mut().zip(x) {
                                *sum = x.fma(dy, *sum);
                            }
                        }
                    } else {
                        for (row, &x) in gradient.chunks_exact_mut(columns).skip(*first).zip(x) {
                            for (sum, &dy) in row.iter_mut().zip(dy) {
                                *sum = x.fma(dy, *sum);
                            }
                        }
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

/// `sum = sum + more`, element by element.
pub(crate) fn add<T: Real>(sum: &mut [T], more: &[T]) {
    for (sum, &more) in sum.iter_mut().zip(more) {
        *sum = sum.add(more);
    }
}
