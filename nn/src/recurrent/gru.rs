//! [`Gru`]: the gated recurrent unit.

use super::gates::{Gates, GatesSpec};
use super::{Hoist, Recurrent, Spec};
use autobatch_ir::{Init, ModuleBuilder};

/// The type parameter of [`Gru`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GruKind;

/// The gated recurrent unit (Cho et al. 2014), in the variant of PyTorch and cuDNN that resets *after*
/// the product. Gates in the order **r, z, n**:
/// ```text
/// [xr xz xn] = x · Wx + b        [hr hz hn] = h · Wh
/// r = sigmoid(xr + hr)           z = sigmoid(xz + hz)
/// n = tanh(xn + r * (hn + bn))   h' = (1 - z) * n + z * h
/// ```
/// Parameters: `name.wx: [input, 3 width]`, `name.wh: [width, 3 width]`, `name.b: [3 width]`,
/// `name.bn: [width]`. The two products are always separate because `r` is applied between them, so
/// hoisting changes neither parameters nor bits. Layer norm applies to both products, with gains
/// `name.gx`, `name.gh`.
pub type Gru = Recurrent<GruKind, 1>;

/// Options of a [`Gru`].
#[derive(Clone, Debug, PartialEq)]
pub struct GruOptions {
    /// See the [module](super).
    pub hoist: Hoist,
    /// Whether both products are normalised.
    pub layer_norm: bool,
    /// The rate of variational dropout on inputs.
    pub input_dropout: f32,
    /// The rate of variational dropout on hidden values.
    pub hidden_dropout: f32,
    /// The initialiser of the weights; biases start at zero.
    pub init: Init,
}

impl Default for GruOptions {
    fn default() -> Self {
        Self {
            hoist: Hoist::No,
            layer_norm: false,
            input_dropout: 0.0,
            hidden_dropout: 0.0,
            init: Init::Glorot(1.0),
        }
    }
}

impl Gru {
    /// A plain layer.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with_options(m, name, input, width, &GruOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        width: usize,
        options: &GruOptions,
    ) -> Self {
        let &GruOptions { hoist, layer_norm, input_dropout, hidden_dropout, .. } = options;
        let gates = Gates::declare(
            m,
            &GatesSpec {
                name,
                input,
                hidden: width,
                gate: width,
                count: 3,
                separate: true,
                projected: hoist == Hoist::Yes,
                layer_norm,
                init: options.init.clone(),
                bias: |_, _| 0.0,
                bias_argument: 0.0,
            },
        );
        let bn = m.param(&format!("{name}.bn"), [width], Init::ZEROS);
        let spec = Spec { name, input, width, memory: width, hoist, input_dropout, hidden_dropout };
        Self::assemble(m, &spec, gates, |g, x, entering, [h]| {
            let [x, product] = gates.pair(g, x, entering);
            let [xr, xz, xn] = x.split();
            let [hr, hz, hn] = product.split();
            let (r, z) = ((xr + hr).sigmoid(), (xz + hz).sigmoid());
            let n = (xn + r * (hn + g.param(bn))).tanh();
            [(1.0 - z) * n + z * h]
        })
    }
}
