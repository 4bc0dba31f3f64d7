//! Elementwise nonlinearities by name, for layers that let their user choose.

use autobatch_ir::{ModuleBuilder, Value};
use std::panic::Location;

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Activation {
    /// `x`
    Identity,
    /// `tanh x`
    #[default]
    Tanh,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `max(x, 0)`
    Relu,
    /// `x` where positive, `slope * x` elsewhere.
    LeakyRelu(f32),
    /// `x` where positive, `alpha * (e^x - 1)` elsewhere.
    Elu(f32),
    /// `x * Φ(x)`, by the error function.
    Gelu,
    /// `x * sigmoid(x)`
    Silu,
}

impl Activation {
    /// The function of every element of `x`.
    #[track_caller]
    #[must_use]
    pub fn on(self, x: Value<'_>) -> Value<'_> {
        match self {
            Self::Identity => x,
            Self::Tanh => x.tanh(),
            Self::Sigmoid => x.sigmoid(),
            Self::Relu => x.relu(),
            Self::LeakyRelu(slope) => x.leaky_relu(slope),
            Self::Elu(alpha) => x.elu(alpha),
            Self::Gelu => x.gelu(),
            Self::Silu => x.silu(),
        }
    }

    /// Refuses a function that no op computes, at the line that declares the layer; inside a cell
    /// the error would name the layer's own source.
    #[track_caller]
    pub(crate) fn check(self, m: &mut ModuleBuilder, layer: &str) {
        if let Self::LeakyRelu(number) | Self::Elu(number) = self
            && !number.is_finite()
        {
            let message = format!("an activation's number must be finite, found {number}");
            m.fail(&format!("layer @{layer}"), message, None, Location::caller());
        }
    }
}
