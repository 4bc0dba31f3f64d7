//! Uses of parameters: their contributions to gradients, and the sums of contributions.

use autobatch_ir::id::{NodeId, ParamId};
use autobatch_ir::numeric::Real;
use autobatch_ir::numeric::label_loss::FACTORS;
use std::sync::Arc;

pub(crate) struct ParamUse<T> {
    /// The node of the graph; `None` inside the reverse of one node.
    pub(crate) node: Option<NodeId>,
    pub(crate) param: ParamId,
    pub(crate) share: Share<T>,
}

/// The contribution of a use to the gradient of its parameter.
pub(crate) struct Share<T> {
    /// The rows that are added: the gradient of the result, or its products with rows of an operand.
    pub(crate) dy: Arc<[T]>,
    pub(crate) kind: ShareKind<T>,
}

/// The elements of a parameter to which a use contributes.
pub(crate) enum ShareKind<T> {
    /// A product `dy = x · W[first.., ..]`: row by row, `dW[k][n] = fma(x[k], dy[n], dW[k][n])`. The rows of `x` have
    /// `width` elements. The parameter is stored as `Wᵀ` if `transposed`.
    Product { x: Arc<[T]>, width: usize, first: usize, transposed: bool },
    /// The whole parameter, once per row of its size.
    Rows,
    /// The row of a table with this index.
    Row(usize),
    /// All rows: `dW[v] = fma(dy[v], x, dW[v])`, where `dy` is computed from the logits and three factors.
    Labels { x: Arc<[T]>, factors: [T; FACTORS] },
}

impl<T> Share<T> {
    /// The rows `x` and `dy` that a reduction takes.
    pub(crate) fn taken(&self) -> [&[T]; 2] {
        match &self.kind {
            ShareKind::Product { x, .. } => [x, &self.dy],
            ShareKind::Labels { x, factors } => [x, factors],
            ShareKind::Rows | ShareKind::Row(_) => [&[], &self.dy],
        }
    }
}

impl<T: Real> Share<T> {
    /// Adds the contribution to the gradient of a parameter with rows of width `columns`.
    pub(crate) fn add_to(&self, gradient: &mut [T], columns: usize) {
        let dy = &self.dy;
        match &self.kind {
            ShareKind::Product { x, width, first, transposed } => {
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
            ShareKind::Labels { x, .. } => {
                let rows = gradient.chunks_exact_mut(columns).zip(&**dy);
                rows.for_each(|(row, &dy)| add_scaled(row, dy, x));
            }
            ShareKind::Rows => {
                for row in dy.chunks_exact(gradient.len().max(1)) {
                    add(gradient, row);
                }
            }
            ShareKind::Row(index) => {
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
