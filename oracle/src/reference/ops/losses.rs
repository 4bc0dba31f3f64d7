//! Losses.

use super::floats;
use super::index::{label, label_of_row};
use crate::reference::datum::Datum;
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use autobatch_ir::numeric::label_loss::LabelLoss;
use autobatch_ir::numeric::{self, Real, loss};

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

/// The loss of a label under a product with a parameter, and the label.
pub(crate) fn label_loss<T: Real>(call: &Call<'_, T>) -> Checked<(LabelLoss<T>, u32)> {
    let label = label_of_row(call)? as u32;
    Ok((numeric::label_loss::label_loss(call.params[0].values, call.floats(0)?, label), label))
}

/// The margin loss of each row.
pub(super) fn hinge<T: Real>(margin: T, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    labelled(call, |scores, label| loss::hinge(scores, label, margin))
}
