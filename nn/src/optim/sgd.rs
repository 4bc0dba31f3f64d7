//! Rules that step along the gradient: [`Sgd`], [`Momentum`], [`Nesterov`].

use super::rule::{Argument, ArgumentRange, Element, Rule, delegate_rule, flushed, zeros};
use autobatch_ir::Value;
use autobatch_ir::recipe::StateRecipe;

/// `w = w - lr * g`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    learning_rate: f64,
}

impl Sgd {
    /// A rule with this learning rate.
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

    fn step<'g>(
        &self,
        Element { value, gradient, numbers, .. }: Element<'_, 'g>,
    ) -> (Value<'g>, Vec<Value<'g>>) {
        (value - numbers[0] * gradient, Vec::new())
    }
}

/// The difference between the rules with momentum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Momentum,
    Nesterov,
}

/// The rules with momentum.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moving {
    kind: Kind,
    learning_rate: f64,
    momentum: f64,
}

impl Rule for Moving {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Momentum => "momentum",
            Kind::Nesterov => "nesterov",
        }
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn arguments(&self) -> Vec<Argument> {
        vec![Argument::new("momentum", self.momentum, ArgumentRange::Decay)]
    }

    fn states(&self) -> Vec<StateRecipe> {
        vec![zeros("b")]
    }

    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
        let mu = self.momentum as f32;
        let b = flushed(element.states[0] * mu + element.gradient);
        let along = match self.kind {
            Kind::Momentum => b,
            Kind::Nesterov => element.gradient + b * mu,
        };
        (element.value - element.numbers[0] * along, vec![b])
    }
}

macro_rules! rules_with_momentum {
    ($($(#[$doc:meta])* $rule:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $rule {
            moving: Moving,
        }

        impl $rule {
            /// A rule with this learning rate and momentum `mu`.
            #[must_use]
            pub const fn new(learning_rate: f64, momentum: f64) -> Self {
                Self { moving: Moving { kind: Kind::$rule, learning_rate, momentum } }
            }
        }

        delegate_rule! { $rule, moving }
    )*};
}

rules_with_momentum! {
    /// `b = mu * b + g`, `w = w - lr * b`; `b` starts at 0.
    Momentum;
    /// `b = mu * b + g`, `w = w - lr * (g + mu * b)`; `b` starts at 0. Nesterov's momentum, with the
    /// gradient at the parameter's current value.
    Nesterov;
}
