//! [`State`]: where a recurrent layer stands after some inputs.

use super::{Masks, Recurrent};
use autobatch_ir::Value;

/// Where a layer stands after some inputs: `Copy`, and never changed. Keeping an older one is a
/// stack's pop, keeping several is a search's branches.
#[derive(Clone, Copy, Debug)]
pub struct State<'g, K, const S: usize> {
    pub(super) layer: Recurrent<K, S>,
    pub(super) values: [Value<'g>; S],
    pub(super) masks: Masks<'g>,
}

impl<'g, K: Copy, const S: usize> State<'g, K, S> {
    /// The state after one more input.
    #[track_caller]
    #[must_use]
    pub fn push(&self, x: Value<'g>) -> Self {
        let Self { layer, values, masks } = self;
        let g = values[0].graph();
        let x = layer.projected(g, x, masks);
        Self { layer: *layer, values: layer.step(g, x, values, masks), masks: *masks }
    }

    /// The hidden value: zeros, or as given, before the first input.
    #[must_use]
    pub const fn h(&self) -> Value<'g> {
        self.values[0]
    }

    /// All values of the state: `[h, c]` of an LSTM.
    #[must_use]
    pub const fn values(&self) -> [Value<'g>; S] {
        self.values
    }
}
