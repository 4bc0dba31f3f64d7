//! Rules with two moments: [`Adam`], [`AdamW`], [`AmsGrad`].

use super::rule::{Element, Rule, WeightDecay, as_the_rule_inside, decayed, zeros};
use autobatch_ir::Value;
use autobatch_ir::recipe::StateRecipe;

/// What tells the three rules apart.
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

    fn states(&self) -> Vec<StateRecipe> {
        match self.kind {
            Kind::Adam | Kind::AdamW => vec![zeros("m"), zeros("v")],
            Kind::AmsGrad => vec![zeros("m"), zeros("v"), zeros("x")],
        }
    }

    /// `lr / (1 - beta1^t)` and `1 / sqrt(1 - beta2^t)`
    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        let correction = |beta: f64| 1.0 - beta.powf(number as f64);
        vec![learning_rate / correction(self.betas[0]), 1.0 / correction(self.betas[1]).sqrt()]
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
            /// With this learning rate, betas 0.9 and 0.999, and eps 1e-8.
            #[must_use]
            pub const fn new(learning_rate: f64) -> Self {
                let kind = Kind::$rule;
                Self { moments: Moments { kind, learning_rate, betas: [0.9, 0.999], eps: 1e-8 } }
            }

            /// How much of the first and of the second moment an update keeps.
            #[must_use]
            pub const fn betas(mut self, first: f64, second: f64) -> Self {
                self.moments.betas = [first, second];
                self
            }

            /// What is added to the root, so that nothing is divided by zero.
            #[must_use]
            pub const fn eps(mut self, eps: f64) -> Self {
                self.moments.eps = eps;
                self
            }
        }

        as_the_rule_inside! { $rule, moments }
    )*};
}

rules_with_moments! {
    /// `m = b1 * m + (1 - b1) * g`, `v = b2 * v + (1 - b2) * g * g`,
    /// `w = w - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)`.
    ///
    /// Weight decay is coupled, as in the first publication; [`AdamW`] decouples it.
    Adam;
    /// [`Adam`] with decoupled weight decay, 0.01 unless said otherwise:
    /// `w = w * (1 - lr * d)` before the step.
    AdamW;
    /// [`Adam`] whose divisor never shrinks: `x = max(x, v)` stands in the place of `v` under the root.
    AmsGrad;
}
