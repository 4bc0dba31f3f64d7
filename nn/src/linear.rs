//! [`Linear`]: `y = x · W + b`, and [`Bilinear`], a bilinear form of two vectors.

use crate::values::Values;
use autobatch_ir::{Graph, Init, ModuleBuilder, Param, Value};

/// `y = x · W + b` with `W: [inputs, outputs]` named `name.w` and `b: [outputs]` named `name.b`.
///
/// A matrix is handled row by row. `x` may consist of several parts, which are not copied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Linear {
    weight: Param,
    bias: Option<Param>,
    inputs: usize,
    outputs: usize,
}

impl Linear {
    /// A layer with a bias of zeros and Glorot's weight.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, inputs: usize, outputs: usize) -> Self {
        Self::with_options(m, name, inputs, outputs, Init::Glorot(1.0), Some(Init::ZEROS))
    }

    /// A layer without a bias: `y = x · W`.
    #[track_caller]
    pub fn no_bias(m: &mut ModuleBuilder, name: &str, inputs: usize, outputs: usize) -> Self {
        Self::with_options(m, name, inputs, outputs, Init::Glorot(1.0), None)
    }

    /// A layer with the given initialisers; no bias if `bias` is `None`.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        inputs: usize,
        outputs: usize,
        weight: Init,
        bias: Option<Init>,
    ) -> Self {
        let weight = m.param(&format!("{name}.w"), [inputs, outputs], weight);
        let mut layer = Self { weight, bias: None, inputs, outputs };
        if let Some(bias) = bias {
            layer.bias = Some(m.param(&format!("{name}.b"), [outputs], bias));
        }
        layer
    }

    /// `x · W + b`
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        x.affine(self.weight, self.bias)
    }

    /// `[x_1 x_2 ..] · W + b`: the same bits as for the concatenated parts.
    #[track_caller]
    #[must_use]
    pub fn on_parts<'g>(&self, g: &'g Graph, parts: impl Values<'g>) -> Value<'g> {
        g.affine(parts, self.weight, self.bias)
    }

    /// The weight, `[inputs, outputs]`.
    #[must_use]
    pub const fn weight(&self) -> Param {
        self.weight
    }

    /// The bias, `[outputs]`.
    #[must_use]
    pub const fn bias(&self) -> Option<Param> {
        self.bias
    }

    /// The width of `x`.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// The width of `y`.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.outputs
    }
}

/// `y_o = left · W_o · right + b_o`, with `name.w: [lefts, outputs * rights]`, whose columns are grouped by output, and
/// `name.b: [outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bilinear {
    weight: Param,
    bias: Param,
    outputs: usize,
    rights: usize,
}

impl Bilinear {
    /// A layer with a bias of zeros and Glorot's weight.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, [lefts, rights]: [usize; 2], outputs: usize) -> Self {
        let columns = outputs.saturating_mul(rights);
        let weight = m.param(&format!("{name}.w"), [lefts, columns], Init::Glorot(1.0));
        let bias = m.param(&format!("{name}.b"), [outputs], Init::ZEROS);
        Self { weight, bias, outputs, rights }
    }

    /// The outputs for two vectors.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, left: Value<'g>, right: Value<'g>) -> Value<'g> {
        let projected = left.affine(self.weight, None).reshape([self.outputs, self.rights]);
        projected.matmul(right) + left.graph().param(self.bias)
    }
}
