//! [`LayerNorm`]: each row less its mean, over its deviation, with a learned gain and bias.

use autobatch_ir::{Init, ModuleBuilder, Param, Value};

/// What layers of this crate add to a variance before they take its root.
pub(crate) const EPS: f32 = 1e-5;

/// `y = (x - mean x) / sqrt(var x + 1e-5) * gain + bias`, with `name.gain` and `name.bias` of the
/// row's width; a matrix is normed row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayerNorm {
    gain: Param,
    bias: Param,
}

impl LayerNorm {
    /// A gain of ones and a bias of zeros.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize) -> Self {
        let gain = m.param(&format!("{name}.gain"), [width], Init::Constant(1.0));
        let bias = m.param(&format!("{name}.bias"), [width], Init::ZEROS);
        Self { gain, bias }
    }

    /// The normed rows.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        let g = x.graph();
        x.layer_norm(EPS) * g.param(self.gain) + g.param(self.bias)
    }
}
