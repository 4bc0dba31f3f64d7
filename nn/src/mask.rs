//! Optional dropout of layers, and masks that are drawn once and used several times.

use autobatch_ir::{Graph, Value};

/// A mask for variational dropout. In training each element is 0 with probability `rate` and
/// `1 / (1 - rate)` otherwise; in inference all are 1.
///
/// The key of noise is the instance and the ordinal of its use in the instance. A mask that must be
/// the *same* at every time step is therefore drawn once, as a value, and multiplied in at each step.
/// Two masks of one instance differ. An instance with the same key draws the same masks in any batch.
/// A product with 1 preserves every bit, so inference equals that of the layer without dropout.
#[track_caller]
#[must_use]
pub fn dropout_mask(g: &Graph, width: usize, rate: f32) -> Value<'_> {
    g.fill([width], 1.0).dropout(rate)
}

/// Ordinary dropout. Rate 0 emits no op, so cells without dropout stay equal.
#[track_caller]
pub(crate) fn dropped(x: Value<'_>, rate: f32) -> Value<'_> {
    if rate == 0.0 { x } else { x.dropout(rate) }
}
