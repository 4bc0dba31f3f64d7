//! Derivatives of reductions within a value.

use super::{Partial, Partials};
use crate::reference::datum::Datum;
use crate::reference::error::{Checked, malformed};
use crate::reference::frame::Call;
use autobatch_ir::graph::{Fold, Over};
use autobatch_ir::numeric::{Real, row};

/// One contribution, computed row by row: `rule(row number, row of x, row of dx)`.
fn by_rows<T: Real>(
    call: &Call<'_, T>,
    width: usize,
    mut rule: impl FnMut(usize, &[T], &mut [T]),
) -> Checked<Partials<T>> {
    let x = call.floats(0)?;
    let mut dx = vec![T::ZERO; x.len()];
    for (number, (out, row)) in dx.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
        rule(number, row, out);
    }
    Ok(vec![Partial::one(dx)].into())
}

/// The rule of a fold of each row, or of all elements as one row.
pub(super) fn reduce<T: Real>(fold: Fold, over: Over, call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    let width = match over {
        Over::Last => call.width(0),
        Over::All => call.types[0].shape.elements(),
    };
    by_rows(call, width, |number, row, out| {
        let dy = dy[number];
        match fold {
            Fold::Sum => out.fill(dy),
            Fold::Mean => out.fill(dy.div(T::from_f64(width as f64))),
            Fold::Max => out[row::argmax(row) as usize] = dy,
            Fold::Min => {
                let negated: Vec<T> = row.iter().map(|x| x.neg()).collect();
                out[row::argmax(&negated) as usize] = dy;
            }
        }
    })
}

/// The gradients of the selected values flow to their sources.
pub(super) fn top_k<T: Real>(
    k: usize,
    call: &Call<'_, T>,
    made: &[Datum<T>],
    dy: &[T],
) -> Checked<Partials<T>> {
    let Some(Datum::Words(taken)) = made.get(1) else { return malformed("top_k has no indices") };
    by_rows(call, call.width(0), |number, _, out| {
        let of_row = number * k..number * k + k;
        for (&index, &dy) in taken[of_row.clone()].iter().zip(&dy[of_row]) {
            out[index as usize] = dy;
        }
    })
}

/// `dx = y * (dy - dot(dy, y))`.
pub(super) fn softmax<T: Real>(call: &Call<'_, T>, y: &[T], dy: &[T]) -> Checked<Partials<T>> {
    let width = call.width(0);
    by_rows(call, width, |number, _, out| {
        let (y, dy) = (&y[number * width..][..width], &dy[number * width..][..width]);
        let common = row::dot(dy, y);
        for ((dx, y), dy) in out.iter_mut().zip(y).zip(dy) {
            *dx = y.mul(dy.sub(common));
        }
    })
}

/// `dx = dy - exp(y) * sum(dy)`.
pub(super) fn log_softmax<T: Real>(call: &Call<'_, T>, y: &[T], dy: &[T]) -> Checked<Partials<T>> {
    let width = call.width(0);
    by_rows(call, width, |number, _, out| {
        let (y, dy) = (&y[number * width..][..width], &dy[number * width..][..width]);
        let total = row::sum(dy);
        for ((dx, y), dy) in out.iter_mut().zip(y).zip(dy) {
            *dx = dy.sub(y.exp().mul(total));
        }
    })
}

/// `dx = dy * softmax(x)`.
pub(super) fn logsumexp<T: Real>(call: &Call<'_, T>, y: &[T], dy: &[T]) -> Checked<Partials<T>> {
    by_rows(call, call.width(0), |number, x, out| {
        row::softmax(x, out);
        let is_empty = y[number] == T::from_f32(f32::NEG_INFINITY);
        for dx in out {
            *dx = if is_empty { T::ZERO } else { dy[number].mul(*dx) };
        }
    })
}

/// `dx = dy * (x / y)`, 0 where `y` is 0.
pub(super) fn norm<T: Real>(call: &Call<'_, T>, y: &[T], dy: &[T]) -> Checked<Partials<T>> {
    by_rows(call, call.width(0), |number, x, out| {
        for (dx, x) in out.iter_mut().zip(x) {
            let along = dy[number].mul(x.div(y[number]));
            *dx = if y[number] == T::ZERO { T::ZERO } else { along };
        }
    })
}

/// `dx = f * ((dy - mean(dy)) - y * (dot(dy, y) / n))`.
pub(super) fn layer_norm<T: Real>(eps: T, call: &Call<'_, T>, y: &[T], dy: &[T]) -> Checked<Partials<T>> {
    let width = call.width(0);
    by_rows(call, width, |number, x, out| {
        let (y, dy) = (&y[number * width..][..width], &dy[number * width..][..width]);
        let (_, factor) = row::moments(x, eps);
        let centre = row::mean(dy);
        let slant = row::dot(dy, y).div(T::from_f64(width as f64));
        for ((dx, y), dy) in out.iter_mut().zip(y).zip(dy) {
            *dx = factor.mul(dy.sub(centre).sub(y.mul(slant)));
        }
    })
}
