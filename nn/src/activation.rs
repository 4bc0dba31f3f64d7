//! Elementwise nonlinearities by name, for layers that let their user choose.

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
    /// `x / 2 * (1 + tanh(sqrt(2 / π) * (x + 0.044715 x³)))`: what GPT-2 and others were trained with.
    GeluTanh,
    /// `x * sigmoid(x)`
    Silu,
    /// `log(1 + e^x)`
    Softplus,
    /// `x * tanh(log(1 + e^x))`
    Mish,
    /// [`Elu`](Self::Elu) with 1.6732632, times 1.050701.
    Selu,
    /// `x` cut to an interval: PyTorch's `Hardtanh` with -1 and 1, its `ReLU6` with 0 and 6, but for the slope at the very ends, which is
    /// 1 as that of its `clamp`.
    Clamp(f32, f32),
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

    /// Refuses a function that no op computes, at the line that declares the layer; inside a cell
    /// the error would name the layer's own source.
    #[track_caller]
    pub(crate) fn check(self, m: &mut ModuleBuilder, layer: &str) {
        let message = match self {
            Self::LeakyRelu(number) | Self::Elu(number) if !number.is_finite() => {
                format!("an activation's number must be finite, found {number}")
            }
            Self::Clamp(low, high) if low.is_nan() || high.is_nan() || low > high => {
                format!("an interval begins before it ends, found {low} to {high}")
            }
            _ => return,
        };
        m.fail(&format!("layer @{layer}"), message, None, Location::caller());
    }
}

/// `x` where positive, `slope * x` elsewhere, with a learned `name.slope: [1]`, 0.25 at first, for all elements, or of the row's
/// width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PRelu {
    slope: Param,
}

impl PRelu {
    /// With `slopes` slopes: one, or one an element.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, slopes: usize) -> Self {
        Self { slope: m.param(&format!("{name}.slope"), [slopes], Init::Constant(0.25)) }
    }

    /// The function of every element.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        let below = x * x.graph().param(self.slope);
        (x.greater(0.0)).select(x, below)
    }
}
