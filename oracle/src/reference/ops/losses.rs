//! Losses.

use super::{floats, index::label};
use crate::reference::datum::Datum;
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use autobatch_ir::numeric::{Real, loss};

/// A loss of two values, with all elements as one row.
pub(super) fn of_pair<T: Real>(call: &Call<'_, T>, loss: impl Fn(&[T], &[T]) -> T) -> Checked<Vec<Datum<T>>> {
    Ok(floats(vec![loss(call.floats(0)?, call.floats(1)?)]))
}

/// A loss of each row with its label.
fn labelled<T: Real>(call: &Call<'_, T>, loss: impl Fn(&[T], u32) -> T) -> Checked<Vec<Datum<T>>> {
    let rows = call.floats(0)?.chunks_exact(call.width(0));
    let losses = rows.enumerate().map(|(row, scores)| Ok(loss(scores, label(call, row)? as u32)));
    Ok(floats(losses.collect::<Checked<Vec<_>>>()?))
}

/// `-log_softmax(x)[label]` of each row.
pub(super) fn pick_neg_log_softmax<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    labelled(call, loss::pick_neg_log_softmax)
}

/// The margin loss of each row.
pub(super) fn hinge<T: Real>(margin: T, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    labelled(call, |scores, label| loss::hinge(scores, label, margin))
}
