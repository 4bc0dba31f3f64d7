//! Rules with two moments: [`Adam`], [`AdamW`], [`AmsGrad`].

use super::rule::{Argument, ArgumentRange, Element, Rule, WeightDecay, decayed, delegate_rule, zeros};
use autobatch_ir::Value;
use autobatch_ir::recipe::StateRecipe;

/// The difference between the three rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Adam,
    AdamW,
    AmsGrad,
}

/// The three rules.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moments {
    kind: Kind,
    learning_rate: f64,
    betas: [f64; 2],
    eps: f64,
    /// Whether eps is added to the root before its bias is corrected.
    eps_uncorrected: bool,
}

impl Rule for Moments {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Adam => "adam",
            Kind::AdamW => "adamw",
            Kind::AmsGrad => "amsgrad",
        }
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn arguments(&self) -> Vec<Argument> {
        vec![
            Argument::new("betas.0", self.betas[0], ArgumentRange::Decay),
            Argument::new("betas.1", self.betas[1], ArgumentRange::Decay),
            Argument::new("eps", self.eps, ArgumentRange::NotNegative),
        ]
    }

    fn states(&self) -> Vec<StateRecipe> {
        match self.kind {
            Kind::Adam | Kind::AdamW => vec![zeros("m"), zeros("v")],
            Kind::AmsGrad => vec![zeros("m"), zeros("v"), zeros("x")],
        }
    }

    /// `lr / (1 - beta1^t)` and `1 / sqrt(1 - beta2^t)`; with an uncorrected eps the quotient of both, and 1.
    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        let correction = |beta: f64| 1.0 - beta.powf(number as f64);
        let (rate, root) = (learning_rate / correction(self.betas[0]), correction(self.betas[1]).sqrt());
        if self.eps_uncorrected { vec![rate * root, 1.0] } else { vec![rate, 1.0 / root] }
    }

    fn own_decay(&self) -> Option<WeightDecay> {
        (self.kind == Kind::AdamW).then_some(WeightDecay::Decoupled(0.01))
    }

    /// `w - lr' * m / (sqrt(v) * r + eps)`
    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let Element { value, gradient, states, numbers } = element;
        let m = decayed(self.betas[0], states[0], gradient);
        let v = decayed(self.betas[1], states[1], gradient.square());
        let mut new = vec![m, v];
        let mut under_root = v;
        if self.kind == Kind::AmsGrad {
            under_root = states[2].maximum(v);
            new.push(under_root);
        }
        let divisor = under_root.sqrt() * numbers[1] + self.eps as f32;
        (value - numbers[0] * m / divisor, new)
    }
}

macro_rules! rules_with_moments {
    ($($(#[$doc:meta])* $rule:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $rule {
            moments: Moments,
        }

        impl $rule {
            /// A rule with this learning rate, betas 0.9 and 0.999, and eps 1e-8.
            #[must_use]
            pub const fn new(learning_rate: f64) -> Self {
                let kind = Kind::$rule;
                let (betas, eps) = ([0.9, 0.999], 1e-8);
                Self { moments: Moments { kind, learning_rate, betas, eps, eps_uncorrected: false } }
            }

            /// The decay factors of the first and the second moment.
            #[must_use]
            pub const fn betas(mut self, first: f64, second: f64) -> Self {
                self.moments.betas = [first, second];
                self
            }

            /// The constant added to the root to avoid division by zero.
            #[must_use]
            pub const fn eps(mut self, eps: f64) -> Self {
                self.moments.eps = eps;
                self
            }

            /// Adds eps to the root before its bias is corrected, as DyNet and TensorFlow do:
            /// `sqrt(1 - b2^t) * m / (sqrt(v) + eps)` instead of `m / (sqrt(v) / sqrt(1 - b2^t) + eps)`.
            #[must_use]
            pub const fn eps_uncorrected(mut self) -> Self {
                self.moments.eps_uncorrected = true;
                self
            }
        }

        delegate_rule! { $rule, moments }
    )*};
}

rules_with_moments! {
    /// `m = b1 * m + (1 - b1) * g`, `v = b2 * v + (1 - b2) * g * g`,
    /// `w = w - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)`.
    ///
    /// Weight decay is coupled, as in the original publication; [`AdamW`] decouples it.
    Adam;
    /// [`Adam`] with decoupled weight decay (0.01 by default):
    /// `w = w * (1 - lr * d)` before the step.
    AdamW;
    /// [`Adam`] whose divisor never decreases: `x = max(x, v)` replaces `v` under the root.
    AmsGrad;
}
