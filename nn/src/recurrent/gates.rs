//! The products of a recurrent step: of the input and of the hidden value, with one weight or two.

use crate::norm::EPS;
use autobatch_ir::{Graph, Init, ModuleBuilder, Param, Value};

/// The parameters of a step's pre-activations for `count` gates, concatenated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gates {
    weights: Weights,
    bias: Param,
    width: usize,
    /// Whether the step receives a projected input.
    projected: bool,
}

#[derive(Clone, Copy, Debug)]
enum Weights {
    /// `name.w: [input + hidden, gates]`, for both parts.
    Joint(Param),
    /// `name.wx: [input, gates]` and `name.wh: [hidden, gates]`; with layer norm the gains
    /// `name.gx` and `name.gh: [gates]` of the two products.
    Separate { x: Param, h: Param, gains: Option<[Param; 2]> },
}

/// The arguments of [`Gates::declare`].
pub(super) struct GatesSpec<'a> {
    pub(super) name: &'a str,
    pub(super) input: usize,
    pub(super) hidden: usize,
    /// The width of a gate.
    pub(super) gate: usize,
    pub(super) count: usize,
    /// Declares two weights even where one would suffice.
    pub(super) separate: bool,
    pub(super) projected: bool,
    pub(super) layer_norm: bool,
    pub(super) init: Init,
    /// The initial bias of each gate, by its index.
    pub(super) bias: fn(usize, f32) -> f32,
    /// The second argument of `bias`.
    pub(super) bias_argument: f32,
}

impl Gates {
    #[track_caller]
    pub(super) fn declare(m: &mut ModuleBuilder, spec: &GatesSpec<'_>) -> Self {
        let &GatesSpec { name, input, hidden, gate, count, separate, projected, layer_norm, .. } = spec;
        let width = gate.saturating_mul(count);
        let (weights, declared) = if separate || projected || layer_norm {
            let x = m.param(&format!("{name}.wx"), [input, width], spec.init.clone());
            let h = m.param(&format!("{name}.wh"), [hidden, width], spec.init.clone());
            let gains = if layer_norm {
                let ones = Init::Constant(1.0);
                let x = m.param(&format!("{name}.gx"), [width], ones.clone());
                Some([x, m.param(&format!("{name}.gh"), [width], ones)])
            } else {
                None
            };
            (Weights::Separate { x, h, gains }, h.id().is_some())
        } else {
            let rows = input.saturating_add(hidden);
            let joint = m.param(&format!("{name}.w"), [rows, width], spec.init.clone());
            (Weights::Joint(joint), joint.id().is_some())
        };
        // The declaration of the weight limits the width, so the bias has few values.
        let bias = if declared { spec.bias_init() } else { Init::ZEROS };
        let bias = m.param(&format!("{name}.b"), [width], bias);
        Self { weights, bias, width, projected }
    }

    /// The width of all gates together.
    pub(super) const fn width(self) -> usize {
        self.width
    }

    /// `x · Wx + b`, normalised before the bias if declared so.
    #[track_caller]
    pub(super) fn project<'g>(self, g: &'g Graph, x: Value<'g>) -> Value<'g> {
        match self.weights {
            Weights::Joint(_) => x,
            Weights::Separate { x: weight, gains: None, .. } => x.affine(weight, Some(self.bias)),
            Weights::Separate { x: weight, gains: Some([gain, _]), .. } => {
                x.affine(weight, None).layer_norm(EPS) * g.param(gain) + g.param(self.bias)
            }
        }
    }

    /// `[x · Wx + b, h · Wh]`, for declarations with two weights.
    #[track_caller]
    pub(super) fn pair<'g>(self, g: &'g Graph, x: Value<'g>, h: Value<'g>) -> [Value<'g>; 2] {
        let x = if self.projected { x } else { self.project(g, x) };
        match self.weights {
            Weights::Joint(_) => [x, h],
            Weights::Separate { h: weight, gains: None, .. } => [x, h.affine(weight, None)],
            Weights::Separate { h: weight, gains: Some([_, gain]), .. } => {
                [x, h.affine(weight, None).layer_norm(EPS) * g.param(gain)]
            }
        }
    }

    /// `[x h] · W + b` as one chain, or the sum of the two products.
    #[track_caller]
    pub(super) fn sum<'g>(self, g: &'g Graph, x: Value<'g>, h: Value<'g>) -> Value<'g> {
        if let Weights::Joint(weight) = self.weights {
            return g.affine([x, h], weight, Some(self.bias));
        }
        let [x, h] = self.pair(g, x, h);
        x + h
    }
}

impl GatesSpec<'_> {
    fn bias_init(&self) -> Init {
        let gates = (0..self.count).map(|gate| (self.bias)(gate, self.bias_argument));
        if gates.clone().all(|value| value == 0.0) {
            return Init::ZEROS;
        }
        Init::Values(gates.flat_map(|value| std::iter::repeat_n(value, self.gate)).collect())
    }
}
