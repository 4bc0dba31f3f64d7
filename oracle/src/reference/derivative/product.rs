//! Derivatives of products: products again.

use super::{Partial, Partials};
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use crate::reference::ops::{Chains, matrices};
use crate::reference::uses::{ParamUse, Share, ShareKind};
use autobatch_ir::numeric::{Real, product};
use std::sync::Arc;

/// `dx[k] = chain over n ascending from +0 of dy[n] * W[k][n]`, for every row, and the uses of the weight and the bias.
/// An operand at which chains start gets `dy`.
pub(super) fn affine<T: Real>(chains: Chains, call: &Call<'_, T>, dy: &Arc<[T]>) -> Checked<Partials<T>> {
    let Chains { row: mut first, bias, onto, transposed } = chains;
    let weight = &call.params[0];
    let outputs = call.results[0].shape.width();
    let inputs = weight.values.len() / outputs;
    let (mut operands, mut params) = (Vec::new(), Vec::new());
    operands.extend(onto.then(|| Partial::one(dy.to_vec())));
    for operand in usize::from(onto)..call.args.len() {
        let width = call.width(operand);
        let mut dx = Vec::with_capacity(width * dy.len() / outputs);
        for dy in dy.chunks_exact(outputs) {
            let mut acc = vec![T::ZERO; width];
            if transposed {
                for (&dy, row) in dy.iter().zip(weight.values.chunks_exact(inputs)) {
                    for (acc, &w) in acc.iter_mut().zip(&row[first..]) {
                        *acc = dy.fma(w, *acc);
                    }
                }
            } else {
                parallel_chains(dy, &weight.values[first * outputs..], &mut acc);
            }
            dx.extend(acc);
        }
        operands.push(Partial::one(dx));
        let x = Arc::clone(call.floats(operand)?);
        let kind = ShareKind::Product { x, width, first, transposed };
        params.push(ParamUse { node: None, param: weight.id, share: Share { dy: Arc::clone(dy), kind } });
        first += width;
    }
    if bias {
        let share = Share { dy: Arc::clone(dy), kind: ShareKind::Rows };
        params.push(ParamUse { node: None, param: call.params[1].id, share });
    }
    Ok(Partials { operands, params })
}

/// `acc[k] = chain over n ascending from +0 of dy[n] * w[k][n]`, for rows of `w` of the width of `dy`.
///
/// Eight chains advance together, which hides the latency of the additions and changes no chain.
fn parallel_chains<T: Real>(dy: &[T], w: &[T], acc: &mut [T]) {
    const TOGETHER: usize = 8;
    let width = dy.len();
    let (blocks, rest) = acc.as_chunks_mut::<TOGETHER>();
    let whole = blocks.len() * TOGETHER * width;
    for (block, w) in blocks.iter_mut().zip(w.chunks_exact(TOGETHER * width)) {
        let rows: [&[T]; TOGETHER] = std::array::from_fn(|row| &w[row * width..][..width]);
        *block = [T::ZERO; TOGETHER];
        for (n, &dy) in dy.iter().enumerate() {
            for (acc, row) in block.iter_mut().zip(rows) {
                *acc = dy.fma(row[n], *acc);
            }
        }
    }
    for (acc, row) in rest.iter_mut().zip(w[whole..].chunks_exact(width)) {
        *acc = product::prod_chain(T::ZERO, &[product::Part::contiguous(dy, row)]);
    }
}

/// `da[i][k] = chain over j of dc[i][j] * b[k][j]`, `db[k][j] = chain over i of a[i][k] * dc[i][j]`.
fn product_of<T: Real>(a: &[T], b: &[T], dc: &[T], extents: (usize, usize, usize)) -> Partials<T> {
    let (m, k, n) = extents;
    let mut da = Vec::with_capacity(a.len());
    for dc in dc.chunks_exact(n) {
        let chain = |b| product::prod_chain(T::ZERO, &[product::Part::contiguous(dc, b)]);
        da.extend(b.chunks_exact(n).map(chain));
    }
    let mut db = vec![T::ZERO; b.len()];
    for i in 0..m {
        for (db, &a) in db.chunks_exact_mut(n).zip(&a[i * k..]) {
            for (db, &dc) in db.iter_mut().zip(&dc[i * n..]) {
                *db = a.fma(dc, *db);
            }
        }
    }
    vec![Partial::one(da), Partial::one(db)].into()
}

/// The rule of the product of two values.
pub(super) fn matmul<T: Real>(call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    Ok(product_of(call.floats(0)?, call.floats(1)?, dy, matrices(call.types[0], call.types[1])))
}

/// The rule of the outer product: that of a column times a row.
pub(super) fn outer<T: Real>(call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    let (a, b) = (call.floats(0)?, call.floats(1)?);
    Ok(product_of(a, b, dy, (a.len(), 1, b.len())))
}

/// The rule of the inner product.
pub(super) fn dot<T: Real>(call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    let times = |other: &[T]| Partial::one(other.iter().map(|&x| dy[0].mul(x)).collect());
    Ok(vec![times(call.floats(1)?), times(call.floats(0)?)].into())
}
