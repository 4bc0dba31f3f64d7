//! Products: chains of fused multiply-adds over ascending `k`.

use super::floats;
use crate::reference::datum::Datum;
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use autobatch_ir::numeric::{Real, product, row};
use autobatch_ir::types::Type;

/// `acc = bias or 0; for each part in operand order, k ascending: acc = fma(x[k], w[k], acc)`.
///
/// All outputs of a row advance together, which gives each the chain of
/// [`prod_chain`](product::prod_chain) and reads the weight in its own order.
pub(super) fn affine<T: Real>(bias: bool, transposed: bool, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let weight = &call.params[0];
    let outputs = call.results[0].shape.width();
    let inputs = weight.values.len() / outputs;
    let mut result = Vec::with_capacity(call.results[0].shape.elements());
    for row in 0..call.types[0].shape.rows() {
        let mut acc = if bias { call.params[1].values.to_vec() } else { vec![T::ZERO; outputs] };
        let mut k = 0;
        for place in 0..call.args.len() {
            let width = call.width(place);
            for &x in &call.floats(place)?[row * width..][..width] {
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

/// A stretch of those chains: over rows of the weight from `row` on, from where the first operand left them.
pub(super) fn affine_rows<T: Real>(
    row: u32,
    bias: bool,
    onto: bool,
    call: &Call<'_, T>,
) -> Checked<Vec<Datum<T>>> {
    let weight = &call.params[0];
    let outputs = call.results[0].shape.width();
    let mut result = Vec::with_capacity(call.results[0].shape.elements());
    for line in 0..call.results[0].shape.rows() {
        let mut acc = match (bias, onto) {
            (true, _) => call.params[1].values.to_vec(),
            (_, true) => call.floats(0)?[line * outputs..][..outputs].to_vec(),
            _ => vec![T::ZERO; outputs],
        };
        let mut k = row as usize;
        for place in usize::from(onto)..call.args.len() {
            let width = call.width(place);
            for &x in &call.floats(place)?[line * width..][..width] {
                let weights = &weight.values[k * outputs..][..outputs];
                acc.iter_mut().zip(weights).for_each(|(acc, &w)| *acc = x.fma(w, *acc));
                k += 1;
            }
        }
        result.extend(acc);
    }
    Ok(floats(result))
}

/// The extents `(m, k, n)` of a product of two values: a vector is a row on the left and a column
/// on the right.
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

/// One rounding an element.
pub(super) fn outer<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let mut result = vec![T::ZERO; call.results[0].shape.elements()];
    product::outer(call.floats(0)?, call.floats(1)?, &mut result);
    Ok(floats(result))
}
