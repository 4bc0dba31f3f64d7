//! [`Mlp`]: linear layers with an activation between them, traced as one cell.

use crate::activation::Activation;
use crate::any_cell::vector;
use crate::linear::Linear;
use crate::mask::dropped;
use autobatch_ir::{Cell, Graph, ModuleBuilder, Value};
use std::panic::Location;

/// `x_k = dropout(act(x_{k-1} · W_k + b_k))` for every layer but the last, which is
/// `x_n = x_{n-1} · W_n + b_n`.
///
/// Layer `k`, from 0, is a [`Linear`] named `name.k`. All layers form one cell, so an instance costs
/// one node, and intermediate values stay in the tile that computes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mlp {
    cell: Cell<1, 1>,
    inputs: usize,
    outputs: usize,
}

impl Mlp {
    /// Layers between these widths, the input width first: `&[784, 200, 100, 10]` gives three layers.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, sizes: &[usize], activation: Activation) -> Self {
        Self::with_options(m, name, sizes, activation, 0.0)
    }

    /// As [`new`](Self::new), with dropout after each activation.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        sizes: &[usize],
        activation: Activation,
        dropout: f32,
    ) -> Self {
        let (&[inputs, ..], &[.., outputs], 2..) = (sizes, sizes, sizes.len()) else {
            let message = format!("an mlp has at least 2 widths, found {}", sizes.len());
            let help = Some("give the input width, then the width of each layer".to_owned());
            m.fail(&format!("mlp {name}"), message, help, Location::caller());
            return Self { cell: m.cell("mlp", [vector(1)], |_, x| x), inputs: 0, outputs: 0 };
        };
        activation.check(m, name);
        if !(0.0..1.0).contains(&dropout) {
            let message = format!("the rate must be at least 0 and below 1, found {dropout}");
            m.fail(&format!("mlp {name}"), message, None, Location::caller());
        }
        let mut layers = Vec::with_capacity(sizes.len() - 1);
        for (number, pair) in sizes.windows(2).enumerate() {
            layers.push(Linear::new(m, &format!("{name}.{number}"), pair[0], pair[1]));
        }
        let cell = m.cell(name, [vector(inputs)], |_, [mut x]| {
            for (number, layer) in layers.iter().enumerate() {
                x = layer.on(x);
                if number + 1 < layers.len() {
                    x = dropped(activation.on(x), dropout);
                }
            }
            [x]
        });
        Self { cell, inputs, outputs }
    }

    /// The output for one input row.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        let g: &'g Graph = x.graph();
        let [y] = g.call(self.cell, x);
        y
    }

    /// The width of the input.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// The width of the output.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.outputs
    }
}
