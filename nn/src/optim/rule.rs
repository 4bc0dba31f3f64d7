//! [`Rule`]: what one update does to one element of a parameter.

use autobatch_ir::Value;
use autobatch_ir::recipe::{StateInit, StateRecipe};
use std::fmt::Debug;

/// What a rule's cell computes with: numbers, one element each.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a, 'g> {
    /// The parameter's element, decayed already where decay is decoupled.
    pub value: Value<'g>,
    /// Its gradient: scaled, clipped, decayed where decay is coupled.
    pub gradient: Value<'g>,
    /// What the rule keeps for it, in the order of [`Rule::states`].
    pub states: &'a [Value<'g>],
    /// What [`Rule::numbers`] gave.
    pub numbers: &'a [Value<'g>],
}

/// How weight decay enters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightDecay {
    /// `g = g + d * w`: as the gradient of `d / 2 * w * w`.
    Coupled(f64),
    /// `w = w * (1 - lr * d)`, apart from the gradient.
    Decoupled(f64),
}

/// What one update does to one element.
pub trait Rule: Debug + Send + Sync {
    /// Its name: that of its cells.
    fn name(&self) -> &'static str;

    /// The learning rate, which a schedule multiplies.
    fn learning_rate(&self) -> f64;

    /// What it keeps for each element.
    fn states(&self) -> Vec<StateRecipe> {
        Vec::new()
    }

    /// The numbers that update `number` (from 1 on) takes at this learning rate: always as many. The
    /// learning rate alone unless the rule says otherwise.
    fn numbers(&self, number: u64, learning_rate: f64) -> Vec<f64> {
        let _ = number;
        vec![learning_rate]
    }

    /// The weight decay that it has by itself.
    fn own_decay(&self) -> Option<WeightDecay> {
        None
    }

    /// Emits the update: the new value, then the new states. Elementwise ops only.
    fn step<'g>(&self, element: Element<'_, 'g>) -> (Value<'g>, Vec<Value<'g>>);
}

/// Makes a type with a rule in one field that rule.
macro_rules! as_the_rule_inside {
    ($outer:ident, $inside:ident) => {
        impl Rule for $outer {
            fn name(&self) -> &'static str {
                self.$inside.name()
            }

            fn learning_rate(&self) -> f64 {
                self.$inside.learning_rate()
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
pub(super) use as_the_rule_inside;

/// A state that begins as zeros.
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
