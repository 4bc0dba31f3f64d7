//! [`Rule`]: the update of one element of a parameter.

use autobatch_ir::Value;
use autobatch_ir::recipe::{StateInit, StateRecipe};
use std::fmt::Debug;

/// The operands of a rule's cell, one element each.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a, 'g> {
    /// The element of the parameter, after decoupled decay.
    pub value: Value<'g>,
    /// Its gradient, after scaling, clipping and coupled decay.
    pub gradient: Value<'g>,
    /// The element's states, in the order of [`Rule::states`].
    pub states: &'a [Value<'g>],
    /// The scalars of [`Rule::numbers`].
    pub numbers: &'a [Value<'g>],
}

/// How weight decay is applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightDecay {
    /// `g = g + d * w`: adds the gradient of `d / 2 * w * w`.
    Coupled(f64),
    /// `w = w * (1 - lr * d)`, independent of the gradient.
    Decoupled(f64),
}

/// A number that a rule was made with, and the range of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument {
    /// Its name, as in the rule's methods.
    pub name: &'static str,
    /// The number.
    pub number: f64,
    /// Its range.
    pub range: ArgumentRange,
}

impl Argument {
    /// An argument of a rule.
    #[must_use]
    pub const fn new(name: &'static str, number: f64, range: ArgumentRange) -> Self {
        Self { name, number, range }
    }

    /// Whether the number lies in its range. The update computes in `f32`, so it must be finite there too.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let number = self.number;
        (number as f32).is_finite()
            && match self.range {
                ArgumentRange::Any => true,
                ArgumentRange::NotNegative => number >= 0.0,
                ArgumentRange::Decay => (0.0..1.0).contains(&number),
            }
    }
}

/// The range of an argument of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentRange {
    /// Any finite number.
    Any,
    /// A finite number that is not negative.
    NotNegative,
    /// A factor of a moving average: at least 0 and below 1.
    Decay,
}

impl ArgumentRange {
    /// The remedy for a number outside of the range.
    #[must_use]
    pub const fn help(self) -> &'static str {
        match self {
            Self::Any => "give a finite number",
            Self::NotNegative => "give a finite number that is not negative",
            Self::Decay => "give a number from 0 to below 1, such as 0.9",
        }
    }
}

/// An update rule.
pub trait Rule: Debug + Send + Sync {
    /// Its name, which is also the name of its cells.
    fn name(&self) -> &'static str;

    /// The learning rate, which a schedule multiplies.
    fn learning_rate(&self) -> f64;

    /// The numbers that it was made with, beside the learning rate. [`Optimizer::recipe`](super::Optimizer::recipe) rejects a
    /// number outside of its range.
    fn arguments(&self) -> Vec<Argument> {
        Vec::new()
    }

    /// The states of each element.
    fn states(&self) -> Vec<StateRecipe> {
        Vec::new()
    }

    /// The scalars of update `number` (from 1) at this learning rate; their number must be constant.
    /// The default is the learning rate alone.
    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        let _ = number;
        vec![learning_rate]
    }

    /// The rule's default weight decay.
    fn own_decay(&self) -> Option<WeightDecay> {
        None
    }

    /// Emits the update with elementwise ops only: the new value and the new states.
    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>);
}

/// Implements [`Rule`] for a type by delegation to one field.
macro_rules! delegate_rule {
    ($outer:ident, $inside:ident) => {
        impl Rule for $outer {
            fn name(&self) -> &'static str {
                self.$inside.name()
            }

            fn learning_rate(&self) -> f64 {
                self.$inside.learning_rate()
            }

            fn arguments(&self) -> Vec<$crate::optim::Argument> {
                self.$inside.arguments()
            }

            fn states(&self) -> Vec<StateRecipe> {
                self.$inside.states()
            }

            fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
                self.$inside.numbers(number, learning_rate)
            }

            fn own_decay(&self) -> Option<$crate::optim::WeightDecay> {
                self.$inside.own_decay()
            }

            fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>) {
                self.$inside.step(element)
            }
        }
    };
}
pub(super) use delegate_rule;

/// Defines setters: `name(field: type)`.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($field:ident: $number:ty);)*) => {
        $($(#[$doc])*
        #[must_use]
        pub const fn $name(mut self, $field: $number) -> Self {
            self.$field = $field;
            self
        })*
    };
}
pub(super) use setters;

/// A state that starts as zeros.
pub(super) fn zeros(role: &str) -> StateRecipe {
    StateRecipe { role: role.to_owned(), init: StateInit::Fill(0.0) }
}

/// `x`, or 0 where its magnitude is below the smallest normal number.
#[track_caller]
#[must_use]
pub fn flushed(x: Value<'_>) -> Value<'_> {
    let zero = x.graph().constant(0.0);
    x.abs().less(f32::MIN_POSITIVE).select(zero, x)
}

/// `flushed(keep * old + (1 - keep) * new)`
#[track_caller]
pub(super) fn decayed<'g>(keep: f64, old: Value<'g>, new: Value<'g>) -> Value<'g> {
    flushed(old * keep as f32 + new * (1.0 - keep) as f32)
}
