//! Recurrent layers: [`Rnn`], [`Lstm`], [`Gru`], and compositions of them: [`Bidirectional`],
//! [`Stacked`].
//!
//! A layer is one traced cell that performs a step. Its parameters are arguments of the cell, so
//! layers of equal sizes and options, in any direction or position, share it and compile once.
//! There are three ways to use a layer:
//!
//! * `run(g, xs)`: all hidden values. Pass a reversed iterator for the other direction.
//! * `last(g, xs)`: the last hidden value, or zeros if there are no inputs.
//! * `start(g)` and `state.push(x)`: step by step. A [`State`] is `Copy` and never changes. To pop a
//!   stack, continue from an earlier state.
//!
//! **Hoisting.** With [`Hoist::No`], a step multiplies `[x h]` by one weight. With [`Hoist::Yes`],
//! a second cell computes `x · Wx + b` for every step before the recurrence starts. This is one large
//! batch over all tokens of all instances, and the product inside the recurrence becomes smaller.
//! The step cell is then independent of the input width, so all layers of a stack share it.
//!
//! Hoisting may change bits. A joint product is one chain: `b`, then the terms of `x`, then those of
//! `h`. The hoisted form ends this chain after the terms of `x`, starts another at zero for `h`, and
//! adds the two. So [`Rnn`] and [`Lstm`] **round differently**. (The planner's pass `hoist` makes the
//! same batch out of [`Hoist::No`] where it is worthwhile, and preserves the joint chain and its bits.)
//! A [`Gru`] and layers with layer norm have separate products anyway. Their bits and parameters are
//! **equal** with both options.
//!
//! **Dropout.** The options `input_dropout` and `hidden_dropout` are variational: one
//! [mask](crate::dropout_mask) per sequence, applied to `x` and to the `h` that enters the products.
//! [`Stacked`] has ordinary dropout between layers.

mod bidirectional;
mod gates;
mod gru;
mod lstm;
mod rnn;
mod sequence;
mod stacked;
mod state;
mod unroll;

pub use bidirectional::{BiGru, BiLstm, BiRnn, Bidirectional};
pub use gru::{Gru, GruKind, GruOptions};
pub use lstm::{Lstm, LstmKind, LstmOptions};
pub use rnn::{Rnn, RnnKind, RnnOptions};
pub use sequence::Sequence;
pub use stacked::{Stacked, StackedState};
pub use state::State;
pub use unroll::unroll;

use crate::any_cell::{AnyCell, vector};
use crate::mask::dropout_mask;
use crate::values::Values;
use autobatch_ir::{Graph, ModuleBuilder, Value};
use gates::Gates;
use std::marker::PhantomData;

/// Whether the products of the inputs are computed outside the recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Hoist {
    /// One batch computes `x · Wx + b` of all steps before the first step.
    Yes,
    /// A step multiplies `x` and `h` by one weight.
    #[default]
    No,
}

/// A recurrent layer with `S` state values, of which the first is the hidden value. Use it as
/// [`Rnn`], [`Lstm`] or [`Gru`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recurrent<K, const S: usize> {
    step: AnyCell<S>,
    project: Option<AnyCell<1>>,
    input_dropout: f32,
    hidden_dropout: f32,
    input: usize,
    width: usize,
    /// The width of all state values except the hidden one.
    memory: usize,
    kind: PhantomData<K>,
}

/// The masks of variational dropout, for inputs and for hidden values.
type Masks<'g> = [Option<Value<'g>>; 2];

/// The maximum number of ports of a step: an input, two state values, two masks.
const MAX_PORTS: usize = 5;

/// The part of a declaration that all kinds of layer share.
struct Spec<'a> {
    name: &'a str,
    input: usize,
    width: usize,
    memory: usize,
    hoist: Hoist,
    input_dropout: f32,
    hidden_dropout: f32,
}

impl<K: Copy, const S: usize> Recurrent<K, S> {
    /// Traces the cells of a layer. `body` computes the next state from the input (or its projection,
    /// if hoisted), the hidden value that enters the products, and the state.
    #[track_caller]
    fn assemble(
        m: &mut ModuleBuilder,
        spec: &Spec<'_>,
        gates: Gates,
        body: impl for<'g> FnOnce(&'g Graph, Value<'g>, Value<'g>, [Value<'g>; S]) -> [Value<'g>; S],
    ) -> Self {
        let &Spec { name, input, width, memory, hoist, input_dropout, hidden_dropout } = spec;
        let hoisted = hoist == Hoist::Yes;
        let (masks_x, masks_h) = (input_dropout != 0.0, hidden_dropout != 0.0);
        let project = if hoisted {
            let ports = vec![vector(input); 1 + usize::from(masks_x)];
            Some(AnyCell::trace(m, &format!("{name}.project"), &ports, |g, ports| {
                [gates.project(g, masked(ports[0], ports.get(1)))]
            }))
        } else {
            None
        };
        let first = if hoisted { gates.width() } else { input };
        let mut ports = vec![vector(first), vector(width)];
        ports.extend(std::iter::repeat_n(vector(memory), S - 1));
        ports.extend((masks_x && !hoisted).then(|| vector(input)));
        ports.extend(masks_h.then(|| vector(width)));
        let step = AnyCell::trace(m, name, &ports, |g, ports| {
            let state: [Value<'_>; S] = std::array::from_fn(|place| ports[1 + place]);
            let mut masks = ports[1 + S..].iter();
            let x = if masks_x && !hoisted { masked(ports[0], masks.next()) } else { ports[0] };
            body(g, x, masked(state[0], masks.next()), state)
        });
        Self { step, project, input_dropout, hidden_dropout, input, width, memory, kind: PhantomData }
    }

    /// The state before the first input: zeros, and dropout masks if the layer has any.
    #[track_caller]
    #[must_use]
    pub fn start<'g>(&self, g: &'g Graph) -> State<'g, K, S> {
        self.start_from(self.zeros(g))
    }

    /// A sequence that starts with this state, the final state of an encoder for example.
    #[track_caller]
    #[must_use]
    pub fn start_from<'g>(&self, state: [Value<'g>; S]) -> State<'g, K, S> {
        State { layer: *self, values: state, masks: self.masks(state[0].graph()) }
    }

    /// The state of a sequence that has these values and [masks](State::masks).
    #[track_caller]
    #[must_use]
    pub const fn state_of<'g>(
        &self,
        values: [Value<'g>; S],
        masks: [Option<Value<'g>>; 2],
    ) -> State<'g, K, S> {
        State { layer: *self, values, masks }
    }

    /// The hidden value after each input.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let mut xs = xs.into_vec();
        let (mut state, masks) = (self.zeros(g), self.masks(g));
        self.project_all(g, &masks, &mut xs);
        for x in &mut xs {
            state = self.step(g, *x, &state, &masks);
            *x = state[0];
        }
        xs
    }

    /// The hidden value after the last input; zeros if there are none.
    #[track_caller]
    #[must_use]
    pub fn last<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Value<'g> {
        let mut xs = xs.into_vec();
        let (mut state, masks) = (self.zeros(g), self.masks(g));
        self.project_all(g, &masks, &mut xs);
        for &x in &xs {
            state = self.step(g, x, &state, &masks);
        }
        state[0]
    }

    /// The state before the first input.
    #[track_caller]
    fn zeros<'g>(&self, g: &'g Graph) -> [Value<'g>; S] {
        let (h, others) = (g.zeros([self.width]), S > 1 && self.memory != self.width);
        let mut state = [h; S];
        if others {
            state[1..].fill(g.zeros([self.memory]));
        }
        state
    }

    /// The masks of one sequence, for inputs and for hidden values.
    #[track_caller]
    fn masks<'g>(&self, g: &'g Graph) -> Masks<'g> {
        let (x, h) = (self.input_dropout, self.hidden_dropout);
        let x = if x == 0.0 { None } else { Some(dropout_mask(g, self.input, x)) };
        let h = if h == 0.0 { None } else { Some(dropout_mask(g, self.width, h)) };
        [x, h]
    }

    #[track_caller]
    fn project_all<'g>(&self, g: &'g Graph, masks: &Masks<'g>, xs: &mut [Value<'g>]) {
        if self.project.is_some() {
            for x in xs {
                *x = self.projected(g, *x, masks);
            }
        }
    }

    /// The operand of the step for an input.
    #[track_caller]
    #[inline]
    fn projected<'g>(&self, g: &'g Graph, x: Value<'g>, masks: &Masks<'g>) -> Value<'g> {
        let Some(project) = self.project else { return x };
        let [x] = match masks[0] {
            Some(mask) => project.call(g, &[x, mask]),
            None => project.call(g, &[x]),
        };
        x
    }

    /// The state after an input, which must be projected if the layer hoists.
    #[track_caller]
    #[inline]
    fn step<'g>(
        &self,
        g: &'g Graph,
        x: Value<'g>,
        state: &[Value<'g>; S],
        masks: &Masks<'g>,
    ) -> [Value<'g>; S] {
        let mut args = [x; MAX_PORTS];
        args[1..=S].copy_from_slice(state);
        let mut count = 1 + S;
        let [mask_x, mask_h] = *masks;
        for mask in [mask_x.filter(|_| self.project.is_none()), mask_h].into_iter().flatten() {
            args[count] = mask;
            count += 1;
        }
        self.step.call(g, &args[..count])
    }

    /// The width of an input.
    #[must_use]
    pub const fn input(&self) -> usize {
        self.input
    }

    /// The width of a hidden value.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}

#[track_caller]
fn masked<'g>(value: Value<'g>, mask: Option<&Value<'g>>) -> Value<'g> {
    match mask {
        Some(mask) => value * mask,
        None => value,
    }
}
