//! [`State`]: where a recurrent layer stands after some inputs.

use crate::recurrent::Recurrent;
use autobatch_ir::Value;

/// Where a layer stands after some inputs: `Copy`, and never changed. Keeping an older one is a
/// stack's pop, keeping several is a search's branches.
#[derive(Clone, Copy, Debug)]
pub struct State<'g, K, const S: usize> {
    pub(super) layer: Recurrent<K, S>,
    pub(super) values: [Value<'g>; S],
    pub(super) masks: [Option<Value<'g>>; 2],
}

impl<'g, K: Copy, const S: usize> State<'g, K, S> {
    /// The state after one more input.
    #[track_caller]
    #[must_use]
    pub fn push(&self, x: Value<'g>) -> Self {
        self.step(self.projected(x))
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

    /// What the step takes for an input.
    #[track_caller]
    #[inline]
    pub(super) fn projected(&self, x: Value<'g>) -> Value<'g> {
        let Some(project) = self.layer.project else { return x };
        let g = self.values[0].graph();
        let [x] = match self.masks[0] {
            Some(mask) => project.call(g, &[x, mask]),
            None => project.call(g, &[x]),
        };
        x
    }

    #[track_caller]
    #[inline]
    pub(super) fn step(&self, x: Value<'g>) -> Self {
        let mut args = [x; 5];
        args[1..=S].copy_from_slice(&self.values);
        let mut count = 1 + S;
        let [mask_x, mask_h] = self.masks;
        for mask in [mask_x.filter(|_| self.layer.project.is_none()), mask_h].into_iter().flatten() {
            args[count] = mask;
            count += 1;
        }
        let values = self.layer.step.call(self.values[0].graph(), &args[..count]);
        Self { layer: self.layer, values, masks: self.masks }
    }
}
