//! [`State`]: the state of a recurrent layer after some inputs.

use super::{Masks, Recurrent};
use autobatch_ir::Value;

/// The state of a layer after some inputs. It is `Copy` and immutable. Continuing from an older state
/// pops a stack; continuing from several explores branches of a search.
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

    /// The hidden value; before the first input, the initial value.
    #[must_use]
    pub const fn h(&self) -> Value<'g> {
        self.values[0]
    }

    /// The masks of variational dropout, for inputs and for hidden values: the same at every state of a sequence.
    #[must_use]
    pub const fn masks(&self) -> [Option<Value<'g>>; 2] {
        self.masks
    }

    /// All values of the state, `[h, c]` for an LSTM.
    #[must_use]
    pub const fn values(&self) -> [Value<'g>; S] {
        self.values
    }
}
