//! Elementwise nonlinearities as values, for layers with a configurable activation.

use autobatch_ir::{Init, ModuleBuilder, Param, Value};
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
    /// `x / 2 * (1 + tanh(sqrt(2 / π) * (x + 0.044715 x³)))`: the approximation that GPT-2 and other models use.
    GeluTanh,
    /// `x * sigmoid(x)`
    Silu,
    /// `log(1 + e^x)`
    Softplus,
    /// `x * tanh(log(1 + e^x))`
    Mish,
    /// [`Elu`](Self::Elu) with 1.6732632, times 1.050701.
    Selu,
    /// `x` limited to an interval. It is PyTorch's `Hardtanh` with -1 and 1 and its `ReLU6` with 0 and 6, except for the
    /// slope at the ends, which is 1 as for its `clamp`.
    Clamp(f32, f32),
}

impl Activation {
    /// Applies the function to every element of `x`.
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
            Self::GeluTanh => {
                let inner = (x + x * x.square() * 0.044_715) * (2.0 / std::f32::consts::PI).sqrt();
                x * 0.5 * (inner.tanh() + 1.0)
            }
            Self::Silu => x.silu(),
            Self::Softplus => x.softplus(),
            Self::Mish => x * x.softplus().tanh(),
            Self::Selu => x.elu(1.673_263_2) * 1.050_701,
            Self::Clamp(low, high) => x.clamp(low, high),
        }
    }

    /// Reports invalid arguments at the line that declares the layer. An error inside a cell would
    /// name the layer's own source.
    #[track_caller]
    pub(crate) fn check(self, m: &mut ModuleBuilder, layer: &str) {
        let message = match self {
            Self::LeakyRelu(number) | Self::Elu(number) if !number.is_finite() => {
                format!("the argument of an activation must be finite, found {number}")
            }
            Self::Clamp(low, high) if low.is_nan() || high.is_nan() || low > high => {
                format!("an interval must begin before it ends, found {low} to {high}")
            }
            _ => return,
        };
        m.fail(&format!("layer @{layer}"), message, None, Location::caller());
    }
}

/// `x` where positive, `slope * x` elsewhere, with a learned `name.slope` (initially 0.25): one for all elements, or one per
/// element of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PRelu {
    slope: Param,
}

impl PRelu {
    /// A layer with `slopes` slopes: one, or one per element.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, slopes: usize) -> Self {
        Self { slope: m.param(&format!("{name}.slope"), [slopes], Init::Constant(0.25)) }
    }

    /// Applies the function to every element.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        let below = x * x.graph().param(self.slope);
        (x.greater(0.0)).select(x, below)
    }
}
