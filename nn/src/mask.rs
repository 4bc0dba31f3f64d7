//! Dropout that a layer may have, and masks that are drawn once and used many times.

use autobatch_ir::{Graph, Value};

/// A mask for variational dropout: in training each element is 0 with probability `rate` and
/// `1 / (1 - rate)` otherwise, elsewhere all are 1.
///
/// Noise is keyed by the instance and the ordinal of its use in the instance, so a mask that must
/// be the *same* at every time step is drawn once, as a value, and multiplied in at each step. Two
/// masks of one instance differ; an instance with the same key draws the same masks, whatever it
/// is batched with. A product with 1 keeps every bit, so evaluation is that of the layer without
/// dropout.
#[track_caller]
#[must_use]
pub fn dropout_mask(g: &Graph, width: usize, rate: f32) -> Value<'_> {
    g.fill([width], 1.0).dropout(rate)
}

/// Ordinary dropout; at rate 0 there is no op, so nothing is drawn and cells without it stay equal.
#[track_caller]
pub(crate) fn dropped(x: Value<'_>, rate: f32) -> Value<'_> {
    if rate == 0.0 { x } else { x.dropout(rate) }
}
