//! Rules that divide by statistics of earlier gradients: [`Adagrad`], [`Adadelta`], [`RmsProp`].

use super::rule::{Argument, ArgumentRange, Element, Rule, decayed, flushed, setters, zeros};
use autobatch_ir::Value;
use autobatch_ir::recipe::{StateInit, StateRecipe};

/// The divisor of a step: a root with eps beside or under it.
#[track_caller]
fn root(x: Value<'_>, eps: f64, eps_under_root: bool) -> Value<'_> {
    let eps = eps as f32;
    if eps_under_root { (x + eps).sqrt() } else { x.sqrt() + eps }
}

/// `s = s + g * g`, `w = w - lr / (1 + (t - 1) * decay) * g / (sqrt(s) + eps)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adagrad {
    learning_rate: f64,
    decay: f64,
    first: f32,
    eps: f64,
    eps_under_root: bool,
}

impl Adagrad {
    /// A rule with this learning rate, without decay, with initial sums of 0 and eps 1e-10.
    #[must_use]
    pub const fn new(learning_rate: f64) -> Self {
        Self { learning_rate, decay: 0.0, first: 0.0, eps: 1e-10, eps_under_root: false }
    }

    setters! {
        /// The decay of the learning rate per update.
        learning_rate_decay(decay: f64);
        /// The initial value of the sums.
        first_sum(first: f32);
        /// The constant added to the root.
        eps(eps: f64);
    }

    /// Adds eps under the root, as DyNet does: `sqrt(s + eps)` instead of `sqrt(s) + eps`.
    #[must_use]
    pub const fn eps_under_root(mut self) -> Self {
        self.eps_under_root = true;
        self
    }
}

impl Rule for Adagrad {
    fn name(&self) -> &'static str {
        "adagrad"
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn arguments(&self) -> Vec<Argument> {
        vec![
            Argument::new("learning_rate_decay", self.decay, ArgumentRange::NotNegative),
            Argument::new("first_sum", f64::from(self.first), ArgumentRange::NotNegative),
            Argument::new("eps", self.eps, ArgumentRange::NotNegative),
        ]
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![StateRecipe { role: "s".to_owned(), init: StateInit::Fill(self.first) }]
    }

    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        vec![learning_rate / (1.0 + number.saturating_sub(1) as f64 * self.decay)]
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let s = flushed(element.states[0] + element.gradient.square());
        let step = element.numbers[0] * element.gradient / root(s, self.eps, self.eps_under_root);
        (element.value - step, vec![s])
    }
}

/// `s = rho * s + (1 - rho) * g * g`, `d = sqrt(e + eps) / sqrt(s + eps) * g`,
/// `e = rho * e + (1 - rho) * d * d`, `w = w - lr * d`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adadelta {
    learning_rate: f64,
    rho: f64,
    eps: f64,
}

impl Adadelta {
    /// A rule with this learning rate (1 in the publication), rho 0.9 and eps 1e-6.
    #[must_use]
    pub const fn new(learning_rate: f64) -> Self {
        Self { learning_rate, rho: 0.9, eps: 1e-6 }
    }

    setters! {
        /// The decay factor of both averages.
        rho(rho: f64);
        /// The constant added under the roots.
        eps(eps: f64);
    }
}

impl Rule for Adadelta {
    fn name(&self) -> &'static str {
        "adadelta"
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn arguments(&self) -> Vec<Argument> {
        vec![
            Argument::new("rho", self.rho, ArgumentRange::Decay),
            Argument::new("eps", self.eps, ArgumentRange::NotNegative),
        ]
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![zeros("s"), zeros("e")]
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let eps = self.eps as f32;
        let s = decayed(self.rho, element.states[0], element.gradient.square());
        let d = (element.states[1] + eps).sqrt() / (s + eps).sqrt() * element.gradient;
        let e = decayed(self.rho, element.states[1], d.square());
        (element.value - element.numbers[0] * d, vec![s, e])
    }
}

/// `s = alpha * s + (1 - alpha) * g * g`, `w = w - lr * g / (sqrt(s) + eps)`.
///
/// [`centred`](Self::centred) adds the state `c = alpha * c + (1 - alpha) * g` and replaces the root by
/// `sqrt(max(s - c * c, 0))`. [`momentum`](Self::momentum) adds the state `b = mu * b + g / (root + eps)`
/// and updates `w = w - lr * b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    learning_rate: f64,
    alpha: f64,
    eps: f64,
    momentum: f64,
    centred: bool,
    eps_under_root: bool,
}

impl RmsProp {
    /// A rule with this learning rate, alpha 0.99 and eps 1e-8, neither centred nor with momentum.
    #[must_use]
    pub const fn new(learning_rate: f64) -> Self {
        Self { learning_rate, alpha: 0.99, eps: 1e-8, momentum: 0.0, centred: false, eps_under_root: false }
    }

    setters! {
        /// The decay factor of the averages.
        alpha(alpha: f64);
        /// The constant added to the root.
        eps(eps: f64);
        /// The momentum `mu`; 0 means none.
        momentum(momentum: f64);
    }

    /// Divides by the standard deviation instead of the root mean square.
    #[must_use]
    pub const fn centred(mut self) -> Self {
        self.centred = true;
        self
    }

    /// Adds eps under the root, as DyNet does: `sqrt(s + eps)` instead of `sqrt(s) + eps`.
    #[must_use]
    pub const fn eps_under_root(mut self) -> Self {
        self.eps_under_root = true;
        self
    }
}

impl Rule for RmsProp {
    fn name(&self) -> &'static str {
        "rmsprop"
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn arguments(&self) -> Vec<Argument> {
        vec![
            Argument::new("alpha", self.alpha, ArgumentRange::Decay),
            Argument::new("eps", self.eps, ArgumentRange::NotNegative),
            Argument::new("momentum", self.momentum, ArgumentRange::Decay),
        ]
    }

    fn states(&self) -> Vec<StateRecipe> {
        let mut states = vec![zeros("s")];
        states.extend(self.centred.then(|| zeros("c")));
        states.extend((self.momentum != 0.0).then(|| zeros("b")));
        states
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let Element { value, gradient, states, numbers } = element;
        let mut old = states.iter().copied();
        let s = decayed(self.alpha, old.next().unwrap_or(gradient), gradient.square());
        let mut new = vec![s];
        let mut under_root = s;
        if self.centred {
            let c = decayed(self.alpha, old.next().unwrap_or(gradient), gradient);
            // The variance of equal gradients is 0; rounding may make it negative.
            under_root = (s - c.square()).maximum(0.0);
            new.push(c);
        }
        let mut step = gradient / root(under_root, self.eps, self.eps_under_root);
        if self.momentum != 0.0 {
            step = flushed(old.next().unwrap_or(gradient) * self.momentum as f32 + step);
            new.push(step);
        }
        (value - numbers[0] * step, new)
    }
}
