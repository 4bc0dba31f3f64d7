//! Rules with two moments: [`Adam`], [`AdamW`], [`AmsGrad`].

use super::rule::{Element, Rule, WeightDecay, decayed, zeros};
use autobatch_ir::Value;
use autobatch_ir::recipe::StateRecipe;

/// What the three rules share.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moments {
    learning_rate: f64,
    betas: [f64; 2],
    eps: f64,
}

impl Moments {
    const fn new(learning_rate: f64) -> Self {
        Self { learning_rate, betas: [0.9, 0.999], eps: 1e-8 }
    }

    /// `lr / (1 - beta1^t)` and `1 / sqrt(1 - beta2^t)`
    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        let correction = |beta: f64| 1.0 - beta.powf(number as f64);
        vec![learning_rate / correction(self.betas[0]), 1.0 / correction(self.betas[1]).sqrt()]
    }

    /// The new `m` and `v`.
    fn moments<'g>(&self, element: Element<'_, 'g>) -> [Value<'g>; 2] {
        let m = decayed(self.betas[0], element.states[0], element.gradient);
        [m, decayed(self.betas[1], element.states[1], element.gradient.square())]
    }

    /// `w - lr' * m / (sqrt(v) * r + eps)`
    #[track_caller]
    fn value<'g>(&self, element: Element<'_, 'g>, m: Value<'g>, v: Value<'g>) -> Value<'g> {
        let divisor = v.sqrt() * element.numbers[1] + self.eps as f32;
        element.value - element.numbers[0] * m / divisor
    }
}

macro_rules! hyperparameters {
    ($rule:ident) => {
        impl $rule {
            /// With this learning rate, betas 0.9 and 0.999, and eps 1e-8.
            #[must_use]
            pub const fn new(learning_rate: f64) -> Self {
                Self { moments: Moments::new(learning_rate) }
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
    };
}

/// `m = b1 * m + (1 - b1) * g`, `v = b2 * v + (1 - b2) * g * g`,
/// `w = w - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)`.
///
/// Weight decay is coupled, as in the first publication; [`AdamW`] decouples it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    moments: Moments,
}

hyperparameters! { Adam }

impl Rule for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn learning_rate(&self) -> f64 {
        self.moments.learning_rate
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![zeros("m"), zeros("v")]
    }

    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        self.moments.numbers(number, learning_rate)
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let [m, v] = self.moments.moments(element);
        (self.moments.value(element, m, v), vec![m, v])
    }
}

/// [`Adam`] with decoupled weight decay, 0.01 unless said otherwise:
/// `w = w * (1 - lr * d)` before the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    moments: Moments,
}

hyperparameters! { AdamW }

impl Rule for AdamW {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn learning_rate(&self) -> f64 {
        self.moments.learning_rate
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![zeros("m"), zeros("v")]
    }

    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        self.moments.numbers(number, learning_rate)
    }

    fn own_decay(&self) -> Option<WeightDecay> {
        Some(WeightDecay::Decoupled(0.01))
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let [m, v] = self.moments.moments(element);
        (self.moments.value(element, m, v), vec![m, v])
    }
}

/// [`Adam`] whose divisor never shrinks: `x = max(x, v)` stands in the place of `v` under the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmsGrad {
    moments: Moments,
}

hyperparameters! { AmsGrad }

impl Rule for AmsGrad {
    fn name(&self) -> &'static str {
        "amsgrad"
    }

    fn learning_rate(&self) -> f64 {
        self.moments.learning_rate
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![zeros("m"), zeros("v"), zeros("x")]
    }

    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        self.moments.numbers(number, learning_rate)
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let [m, v] = self.moments.moments(element);
        let x = element.states[2].maximum(v);
        (self.moments.value(element, m, x), vec![m, v, x])
    }
}
