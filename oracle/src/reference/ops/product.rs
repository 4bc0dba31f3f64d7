//! Products: chains of fused multiply-adds over ascending `k`.

use super::floats;
use crate::reference::datum::Datum;
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use autobatch_ir::numeric::{Real, product, row};
use autobatch_ir::types::Type;

/// The chains of an affine op: their starting values and the rows of the weight that they use.
#[derive(Clone, Copy, Default)]
pub(crate) struct Chains {
    /// The row of the weight for the first element of the operands.
    pub(crate) row: usize,
    /// True if chains start with a bias.
    pub(crate) bias: bool,
    /// True if chains start with the first operand.
    pub(crate) onto: bool,
    /// True if the weight is stored transposed.
    pub(crate) transposed: bool,
}

/// `acc = bias, first operand or 0; for each part in operand order, k ascending: acc = fma(x[k], w[k], acc)`.
///
/// All outputs of a row advance together. This computes each chain of [`prod_chain`](product::prod_chain) and reads the
/// weight in storage order.
pub(super) fn affine<T: Real>(chains: Chains, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let Chains { row: first, bias, onto, transposed } = chains;
    let weight = &call.params[0];
    let outputs = call.results[0].shape.width();
    let inputs = weight.values.len() / outputs;
    let mut result = Vec::with_capacity(call.results[0].shape.elements());
    for row in 0..call.results[0].shape.rows() {
        let mut acc = match (bias, onto) {
            (true, _) => call.params[1].values.to_vec(),
            (_, true) => call.floats(0)?[row * outputs..][..outputs].to_vec(),
            _ => vec![T::ZERO; outputs],
        };
        let mut k = first;
        for operand in usize::from(onto)..call.args.len() {
            let width = call.width(operand);
            for &x in &call.floats(operand)?[row * width..][..width] {
                if transposed {
                    let column = weight.values[k..].iter().step_by(inputs);
                    acc.iter_mut().zip(column).for_each(|(acc, &w)| *acc = x.fma(w, *acc));
                } else {
                    let line = &weight.values[k * outputs..][..outputs];
                    acc.iter_mut().zip(line).for_each(|(acc, &w)| *acc = x.fma(w, *acc));
                }
                k += 1;
            }
        }
        result.extend(acc);
    }
    Ok(floats(result))
}

/// The extents `(m, k, n)` of a product. A vector is a row on the left and a column on the right.
pub(crate) fn matrices(a: Type, b: Type) -> (usize, usize, usize) {
    let k = a.shape.width();
    (a.shape.rows(), k, b.shape.elements() / k)
}

/// `c[i][j] = chain over k ascending from 0 of a[i][k] * b[k][j]`.
pub(super) fn matmul<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let (_, k, n) = matrices(call.types[0], call.types[1]);
    let (a, b) = (call.floats(0)?, call.floats(1)?);
    let mut result = Vec::with_capacity(call.results[0].shape.elements());
    for row in a.chunks_exact(k) {
        let column = |j| product::prod_chain(T::ZERO, &[product::Part::column(row, b, n, 0, j)]);
        result.extend((0..n).map(column));
    }
    Ok(floats(result))
}

/// The inner product of two vectors, over 16 lanes: a row reduction.
pub(super) fn dot<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    Ok(floats(vec![row::dot(call.floats(0)?, call.floats(1)?)]))
}

/// The outer product, one rounding per element.
pub(super) fn outer<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let mut result = vec![T::ZERO; call.results[0].shape.elements()];
    product::outer(call.floats(0)?, call.floats(1)?, &mut result);
    Ok(floats(result))
}
