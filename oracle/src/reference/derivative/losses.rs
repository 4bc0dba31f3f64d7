//! Derivatives of losses.

use super::{Partial, Partials};
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use crate::reference::ops::{self, label};
use crate::reference::uses::{ParamUse, Share, ShareKind};
use autobatch_ir::numeric::{Real, label_loss, row};
use std::sync::Arc;

/// The contribution to the scores of a loss with labels, row by row: `rule(row, label, dy, dx)`.
fn labelled<T: Real>(
    call: &Call<'_, T>,
    dy: &[T],
    rule: impl Fn(&[T], usize, T, &mut [T]),
) -> Checked<Partials<T>> {
    let (x, width) = (call.floats(0)?, call.width(0));
    let mut dx = vec![T::ZERO; x.len()];
    for (number, (out, row)) in dx.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
        rule(row, label(call, number)?, dy[number], out);
    }
    Ok(vec![Partial::one(dx), Partial::None].into())
}

/// `dx = dy * (softmax(x) - 1 at the label)`.
pub(super) fn pick_neg_log_softmax<T: Real>(call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    labelled(call, dy, |x, label, dy, out| {
        row::softmax(x, out);
        out[label] = out[label].sub(T::ONE);
        for dx in out {
            *dx = dy.mul(*dx);
        }
    })
}

/// `dx = dy * slope`, and the gradients of the logits, which the reverse of the parameter multiplies with `x`.
pub(super) fn label_loss<T: Real>(call: &Call<'_, T>, dy: T) -> Checked<Partials<T>> {
    let (made, label) = ops::label_loss(call)?;
    let (x, rows) = (call.floats(0)?, call.params[0].values.chunks_exact(call.width(0)));
    let factors = [dy, made.log_sum, T::from_f64(f64::from(label))];
    let gradient = |(row, own): (usize, &[T])| {
        label_loss::gradient(label_loss::logit(x, own), factors, row == label as usize)
    };
    let dlogits: Vec<T> = rows.enumerate().map(gradient).collect();
    let kind = ShareKind::Labels { x: Arc::clone(x), factors };
    let share = Share { dy: dlogits.into(), kind };
    let params = vec![ParamUse { node: None, param: call.params[0].id, share }];
    let dx = made.slope.iter().map(|&slope| dy.mul(slope)).collect();
    Ok(Partials { operands: vec![Partial::one(dx), Partial::None], params })
}

/// `dx_j = dy` where `(margin - x_label) + x_j` is positive, and `-(dy * count)` at the label.
pub(super) fn hinge<T: Real>(margin: T, call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    labelled(call, dy, |x, label, dy, out| {
        let offset = margin.sub(x[label]);
        let mut violations = 0u32;
        for (j, (dx, &x)) in out.iter_mut().zip(x).enumerate() {
            if j != label && offset.add(x) > T::ZERO {
                *dx = dy;
                violations += 1;
            }
        }
        out[label] = dy.mul(T::from_f64(f64::from(violations))).neg();
    })
}

/// Contributions to two operands, element by element: `rule(index, a, b)`.
fn pairs<T: Real>(call: &Call<'_, T>, rule: impl Fn(usize, T, T) -> (T, T)) -> Checked<Partials<T>> {
    let (a, b) = (call.floats(0)?, call.floats(1)?);
    let (da, db) = a.iter().zip(b.iter()).enumerate().map(|(i, (&a, &b))| rule(i, a, b)).unzip();
    Ok(vec![Partial::one(da), Partial::one(db)].into())
}

/// `dx = dy * (softmax(x) * sum(t) - t)`; `dt = dy * -log_softmax(x)`.
pub(super) fn cross_entropy<T: Real>(call: &Call<'_, T>, dy: T) -> Checked<Partials<T>> {
    let x = call.floats(0)?;
    let (mut likely, mut log) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len()]);
    row::softmax(x, &mut likely);
    row::log_softmax(x, &mut log);
    let total = row::sum(call.floats(1)?);
    pairs(call, |i, _, t| (dy.mul(likely[i].mul(total).sub(t)), dy.mul(log[i].neg())))
}

/// `dx = -(dy * t)`; `dt = dy * ((log t + 1) - x)`, 0 where `t` is 0.
pub(super) fn kl_div<T: Real>(call: &Call<'_, T>, dy: T) -> Checked<Partials<T>> {
    pairs(call, |_, x, t| {
        let to_target = dy.mul(t.log().add(T::ONE).sub(x));
        (dy.mul(t).neg(), if t == T::ZERO { T::ZERO } else { to_target })
    })
}

/// `da = (2 dy / n) * (a - b)`, `db = -da`.
pub(super) fn mse<T: Real>(call: &Call<'_, T>, dy: T) -> Checked<Partials<T>> {
    let factor = dy.add(dy).div(T::from_f64(call.types[0].shape.elements() as f64));
    pairs(call, |_, a, b| {
        let da = factor.mul(a.sub(b));
        (da, da.neg())
    })
}

/// `dx = (dy / n) * (sigmoid(x) - t)`; `dt = (dy / n) * -x`.
pub(super) fn bce<T: Real>(call: &Call<'_, T>, dy: T) -> Checked<Partials<T>> {
    let factor = dy.div(T::from_f64(call.types[0].shape.elements() as f64));
    pairs(call, |_, x, t| (factor.mul(x.sigmoid().sub(t)), factor.mul(x.neg())))
}
