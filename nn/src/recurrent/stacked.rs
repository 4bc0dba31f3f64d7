//! [`Stacked`]: a stack of layers.

use super::{Recurrent, Sequence, State};
use crate::mask::dropped;
use crate::values::Values;
use autobatch_ir::{Graph, ModuleBuilder, Value};

/// `LAYERS` layers named `name.0`, `name.1` and so on. Each takes the outputs of the layer below. If a
/// rate is set, ordinary dropout (a new mask at each step) is applied between layers.
///
/// The first layer's inputs have width `input`, those of the others the width of a layer's output. So
/// with joint weights, layers 1 and up share a cell, and so does layer 0 if the widths agree. Separate
/// cells cost only compilation, not batches: a layer waits for the one below in any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stacked<R, const LAYERS: usize> {
    /// The layers, lowest first.
    pub layers: [R; LAYERS],
    /// The rate of dropout between layers.
    pub between: f32,
}

impl<R: Sequence, const LAYERS: usize> Stacked<R, LAYERS> {
    /// Plain layers without dropout between them.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with_options(m, name, input, width, &R::Options::default(), 0.0)
    }

    /// Layers with options, and dropout between them.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        width: usize,
        options: &R::Options,
        between: f32,
    ) -> Self {
        const { assert!(LAYERS > 0, "a stack has at least one layer") };
        let lowest = R::build(m, &format!("{name}.0"), input, width, options);
        let mut layers = [lowest; LAYERS];
        for number in 1..LAYERS {
            let below = layers[number - 1].output_width();
            layers[number] = R::build(m, &format!("{name}.{number}"), below, width, options);
        }
        Self { layers, between }
    }

    /// The output of the top layer at each input.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let xs = xs.into_vec();
        let xs = self.below_top(g, xs);
        self.layers[LAYERS - 1].outputs(g, &xs)
    }

    /// The output of the top layer after all inputs.
    #[track_caller]
    #[must_use]
    pub fn last<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Value<'g> {
        let xs = xs.into_vec();
        let xs = self.below_top(g, xs);
        self.layers[LAYERS - 1].summary(g, &xs)
    }

    /// The inputs of the top layer.
    #[track_caller]
    fn below_top<'g>(&self, g: &'g Graph, mut xs: Vec<Value<'g>>) -> Vec<Value<'g>> {
        for layer in &self.layers[..LAYERS - 1] {
            xs = layer.outputs(g, &xs);
            for x in &mut xs {
                *x = dropped(*x, self.between);
            }
        }
        xs
    }

    /// The width of an input.
    #[must_use]
    pub fn input(&self) -> usize {
        self.layers[0].input_width()
    }

    /// The width of an output.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layers[LAYERS - 1].output_width()
    }
}

/// The state of a stack after some inputs; see [`State`].
#[derive(Clone, Copy, Debug)]
pub struct StackedState<'g, K, const S: usize, const LAYERS: usize> {
    states: [State<'g, K, S>; LAYERS],
    between: f32,
}

impl<K: Copy, const S: usize, const LAYERS: usize> Stacked<Recurrent<K, S>, LAYERS> {
    /// The state before the first input.
    #[track_caller]
    #[must_use]
    pub fn start<'g>(&self, g: &'g Graph) -> StackedState<'g, K, S, LAYERS> {
        let mut states = [self.layers[0].start(g); LAYERS];
        for (state, layer) in states.iter_mut().zip(&self.layers).skip(1) {
            *state = layer.start(g);
        }
        StackedState { states, between: self.between }
    }
}

impl<'g, K: Copy, const S: usize, const LAYERS: usize> StackedState<'g, K, S, LAYERS> {
    /// The state after one more input.
    #[track_caller]
    #[must_use]
    pub fn push(&self, x: Value<'g>) -> Self {
        let mut next = *self;
        let mut x = x;
        for (number, state) in next.states.iter_mut().enumerate() {
            if number > 0 {
                x = dropped(x, self.between);
            }
            *state = state.push(x);
            x = state.h();
        }
        next
    }

    /// The hidden value of the top layer.
    #[must_use]
    pub const fn h(&self) -> Value<'g> {
        self.states[LAYERS - 1].h()
    }

    /// The states of the layers, lowest first.
    #[must_use]
    pub const fn states(&self) -> &[State<'g, K, S>; LAYERS] {
        &self.states
    }
}
