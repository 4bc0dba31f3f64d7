//! [`Rnn`]: the simple recurrent layer.

use super::gates::{Gates, GatesSpec};
use super::{Hoist, Recurrent, Spec};
use crate::activation::Activation;
use autobatch_ir::{Init, ModuleBuilder};

/// The type parameter of [`Rnn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RnnKind;

/// The simple recurrent layer: `h' = act(x · Wx + h · Wh + b)`.
///
/// Parameters: `name.w: [input + width, width]`, whose first `input` rows are `Wx`, and
/// `name.b: [width]`. With hoisting or layer norm, `name.wx` and `name.wh` replace `name.w`. Layer
/// norm: `h' = act(norm(x · Wx) * gx + b + norm(h · Wh) * gh)`.
pub type Rnn = Recurrent<RnnKind, 1>;

/// Options of a [`Rnn`].
#[derive(Clone, Debug, PartialEq)]
pub struct RnnOptions {
    /// See the [module](super).
    pub hoist: Hoist,
    /// Whether both products are normalised.
    pub layer_norm: bool,
    /// The rate of variational dropout on inputs.
    pub input_dropout: f32,
    /// The rate of variational dropout on hidden values.
    pub hidden_dropout: f32,
    /// The nonlinearity.
    pub activation: Activation,
    /// The initialiser of the weights; the bias starts at zero.
    pub init: Init,
}

impl Default for RnnOptions {
    fn default() -> Self {
        Self {
            hoist: Hoist::No,
            layer_norm: false,
            input_dropout: 0.0,
            hidden_dropout: 0.0,
            activation: Activation::Tanh,
            init: Init::Glorot(1.0),
        }
    }
}

impl Rnn {
    /// A tanh layer.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with_options(m, name, input, width, &RnnOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        width: usize,
        options: &RnnOptions,
    ) -> Self {
        let &RnnOptions { hoist, layer_norm, input_dropout, hidden_dropout, activation, .. } = options;
        activation.check(m, name);
        let gates = Gates::declare(
            m,
            &GatesSpec {
                name,
                input,
                hidden: width,
                gate: width,
                count: 1,
                separate: false,
                projected: hoist == Hoist::Yes,
                layer_norm,
                init: options.init.clone(),
                bias: |_, _| 0.0,
                bias_argument: 0.0,
            },
        );
        let spec = Spec { name, input, width, memory: width, hoist, input_dropout, hidden_dropout };
        Self::assemble(m, &spec, gates, |g, x, h, _| [activation.on(gates.sum(g, x, h))])
    }
}
