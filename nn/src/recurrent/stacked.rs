//! [`Stacked`]: layers on top of each other.

use super::{Recurrent, Sequence, State};
use crate::mask::dropped;
use autobatch_ir::{Graph, ModuleBuilder, Value};
use std::borrow::Borrow;

/// `LAYERS` layers named `name.0`, `name.1` and so on; each takes what the one below gives, after
/// ordinary dropout (another mask at each step) if a rate is set.
///
/// The first layer's input is `input` wide, the others' as wide as a layer's output, so with
/// joint weights layers 1 and up share a cell, and layer 0 too if the widths agree. Layers without
/// a common cell cost a compiled cell each, not a batch: they wait for each other anyway.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stacked<R, const LAYERS: usize> {
    /// The layers, lowest first.
    pub layers: [R; LAYERS],
    /// The rate of the dropout between layers.
    pub between: f32,
}

impl<R: Sequence, const LAYERS: usize> Stacked<R, LAYERS> {
    /// Plain layers without dropout between them.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with(m, name, input, width, &R::Options::default(), 0.0)
    }

    /// Layers with options, and dropout between them.
    #[track_caller]
    pub fn with(
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

    /// The uppermost layer's output at each input.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(
        &self,
        g: &'g Graph,
        xs: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Vec<Value<'g>> {
        let xs = xs.into_iter().map(|x| *x.borrow()).collect();
        let xs = self.below_top(g, xs);
        self.layers[LAYERS - 1].outputs(g, &xs)
    }

    /// The uppermost layer's output that has seen every input.
    #[track_caller]
    #[must_use]
    pub fn last<'g>(&self, g: &'g Graph, xs: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Value<'g> {
        let xs = xs.into_iter().map(|x| *x.borrow()).collect();
        let xs = self.below_top(g, xs);
        self.layers[LAYERS - 1].summary(g, &xs)
    }

    /// What enters the uppermost layer.
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

    /// How wide an input is.
    #[must_use]
    pub fn input(&self) -> usize {
        self.layers[0].input_width()
    }

    /// How wide an output is.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layers[LAYERS - 1].output_width()
    }
}

/// Where a stack stands after some inputs; see [`State`].
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

    /// The uppermost hidden value.
    #[must_use]
    pub const fn h(&self) -> Value<'g> {
        self.states[LAYERS - 1].h()
    }

    /// The layers' own states, lowest first.
    #[must_use]
    pub const fn states(&self) -> &[State<'g, K, S>; LAYERS] {
        &self.states
    }
}
