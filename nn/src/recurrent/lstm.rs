//! [`Lstm`]: long short-term memory.

use super::gates::{Gates, GatesSpec};
use super::{Hoist, Recurrent, Spec};
use crate::norm::LayerNorm;
use autobatch_ir::{Init, ModuleBuilder};

/// The type parameter of [`Lstm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LstmKind;

/// Long short-term memory (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
/// 2000). Gates in PyTorch's order **i, f, g, o**, with one bias:
/// ```text
/// [i f g o] = x · Wx + h · Wh + b
/// c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
/// h' = sigmoid(o) * tanh(c')
/// ```
/// Parameters: `name.w: [input + width, 4 width]`, whose first `input` rows are `Wx`, and
/// `name.b: [4 width]`. With hoisting or layer norm, `name.wx` and `name.wh` replace `name.w`.
///
/// * Peepholes (Gers & Schmidhuber 2000): the sigmoids take `i + pi * c`, `f + pf * c` and
///   `o + po * c'`, with `name.pi`, `name.pf`, `name.po: [width]`.
/// * Layer norm (Ba et al. 2016): the gates are `norm(x · Wx) * gx + b + norm(h · Wh) * gh`, and
///   `h' = sigmoid(o) * tanh(norm(c') * gain + bias)` with `name.c.gain` and `name.c.bias`.
/// * Projection (Sak et al. 2014): `h' = (sigmoid(o) * tanh(c')) · Wr` with `name.wr: [width, projection]`. Hidden values,
///   outputs and the rows of `Wh` then have the projection's width; PyTorch calls it `proj_size`.
pub type Lstm = Recurrent<LstmKind, 2>;

/// Options of an [`Lstm`].
#[derive(Clone, Debug, PartialEq)]
pub struct LstmOptions {
    /// See the [module](super).
    pub hoist: Hoist,
    /// Whether both products and the memory are normalised.
    pub layer_norm: bool,
    /// Whether gates read the memory.
    pub peepholes: bool,
    /// The width of hidden values, if they are a projection of the memory.
    pub projection: Option<usize>,
    /// The rate of variational dropout on inputs.
    pub input_dropout: f32,
    /// The rate of variational dropout on hidden values.
    pub hidden_dropout: f32,
    /// The initial bias of the forget gate; other biases start at zero.
    pub forget_bias: f32,
    /// The initialiser of the weights.
    pub init: Init,
}

impl Default for LstmOptions {
    fn default() -> Self {
        Self {
            hoist: Hoist::No,
            layer_norm: false,
            peepholes: false,
            projection: None,
            input_dropout: 0.0,
            hidden_dropout: 0.0,
            forget_bias: 0.0,
            init: Init::Glorot(1.0),
        }
    }
}

impl Lstm {
    /// A plain layer.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with_options(m, name, input, width, &LstmOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        width: usize,
        options: &LstmOptions,
    ) -> Self {
        let &LstmOptions { hoist, layer_norm, input_dropout, hidden_dropout, .. } = options;
        let hidden = options.projection.unwrap_or(width);
        let gates = Gates::declare(
            m,
            &GatesSpec {
                name,
                input,
                hidden,
                gate: width,
                count: 4,
                separate: false,
                projected: hoist == Hoist::Yes,
                layer_norm,
                init: options.init.clone(),
                bias: |gate, forget| if gate == 1 { forget } else { 0.0 },
                bias_argument: options.forget_bias,
            },
        );
        let peepholes = if options.peepholes {
            let i = m.param(&format!("{name}.pi"), [width], Init::ZEROS);
            let f = m.param(&format!("{name}.pf"), [width], Init::ZEROS);
            Some([i, f, m.param(&format!("{name}.po"), [width], Init::ZEROS)])
        } else {
            None
        };
        let norm = if layer_norm { Some(LayerNorm::new(m, &format!("{name}.c"), width)) } else { None };
        let mut project = None;
        if let Some(projection) = options.projection {
            project = Some(m.param(&format!("{name}.wr"), [width, projection], options.init.clone()));
        }
        let spec = Spec { name, input, width: hidden, memory: width, hoist, input_dropout, hidden_dropout };
        Self::assemble(m, &spec, gates, |g, x, h, [_, c]| {
            let [mut i, mut f, u, mut o] = gates.sum(g, x, h).split();
            if let Some([pi, pf, _]) = peepholes {
                i = i + g.param(pi) * c;
                f = f + g.param(pf) * c;
            }
            let c = f.sigmoid() * c + i.sigmoid() * u.tanh();
            if let Some([_, _, po]) = peepholes {
                o = o + g.param(po) * c;
            }
            let memory = norm.map_or(c, |norm| norm.on(c));
            let h = o.sigmoid() * memory.tanh();
            [project.map_or(h, |weight| h.affine(weight, None)), c]
        })
    }
}
