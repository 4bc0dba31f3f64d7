//! Rules along the gradient: [`Sgd`], [`Momentum`], [`Nesterov`].

use super::rule::{Element, Rule, flushed, zeros};
use autobatch_ir::Value;
use autobatch_ir::recipe::StateRecipe;

/// `w = w - lr * g`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    learning_rate: f64,
}

impl Sgd {
    /// With this learning rate.
    #[must_use]
    pub const fn new(learning_rate: f64) -> Self {
        Self { learning_rate }
    }
}

impl Rule for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn numbers(&self, _: u64, learning_rate: f64) -> Vec<f64> {
        vec![learning_rate]
    }

    fn step<'g>(
        &self,
        Element { value, gradient, numbers, .. }: Element<'_, 'g>,
    ) -> (Value<'g>, Vec<Value<'g>>) {
        (value - numbers[0] * gradient, Vec::new())
    }
}

/// `b = mu * b + g`, `w = w - lr * b`, with `b` 0 at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Momentum {
    learning_rate: f64,
    momentum: f64,
}

impl Momentum {
    /// With this learning rate and momentum `mu`.
    #[must_use]
    pub const fn new(learning_rate: f64, momentum: f64) -> Self {
        Self { learning_rate, momentum }
    }
}

impl Rule for Momentum {
    fn name(&self) -> &'static str {
        "momentum"
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![zeros("b")]
    }

    fn numbers(&self, _: u64, learning_rate: f64) -> Vec<f64> {
        vec![learning_rate]
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let b = flushed(element.states[0] * self.momentum as f32 + element.gradient);
        (element.value - element.numbers[0] * b, vec![b])
    }
}

/// `b = mu * b + g`, `w = w - lr * (g + mu * b)`, with `b` 0 at first: Nesterov's momentum with the
/// gradient taken where the parameter is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nesterov {
    learning_rate: f64,
    momentum: f64,
}

impl Nesterov {
    /// With this learning rate and momentum `mu`.
    #[must_use]
    pub const fn new(learning_rate: f64, momentum: f64) -> Self {
        Self { learning_rate, momentum }
    }
}

impl Rule for Nesterov {
    fn name(&self) -> &'static str {
        "nesterov"
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![zeros("b")]
    }

    fn numbers(&self, _: u64, learning_rate: f64) -> Vec<f64> {
        vec![learning_rate]
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let mu = self.momentum as f32;
        let b = flushed(element.states[0] * mu + element.gradient);
        (element.value - element.numbers[0] * (element.gradient + b * mu), vec![b])
    }
}
