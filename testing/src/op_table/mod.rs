//! The op table: for every op what it makes of good operands, what it says to bad ones, numbers
//! that were computed apart from the project, and how its gradient is checked.
//!
//! [`Kind`] names every op and every attribute that changes what is computed; [`case`] matches it
//! without a wildcard. So a new op does not compile until it has an entry here.
//!
//! Inference and error tests run through the emitter. Number tests and gradient checks take an
//! evaluator, [`Evaluate`] or [`Differentiate`], so that the reference interpreter, a plan executor
//! and a runtime are all held to one table; round trips take the writer and reader.

mod cases;
mod check;
mod kind;
mod model;

pub use cases::case;
pub use check::{
    Differentiate, Evaluate, Gradients, check_errors, check_gradients, check_inference, check_numbers,
    check_round_trip,
};
pub use kind::Kind;
pub use model::{Handles, model};

use autobatch_ir::graph::Op;
use autobatch_ir::{Graph, Type, Value};

/// Emits an example and returns its results.
pub type Build = for<'g> fn(&'g Graph, &Handles) -> Vec<Value<'g>>;

/// The entry of one kind of op.
#[derive(Clone, Debug)]
pub struct OpCase {
    /// Good uses; at least one.
    pub examples: Vec<Example>,
    /// A bad use.
    pub bad: Bad,
    /// Its derivative.
    pub gradient: Gradient,
}

/// One good use of an op.
#[derive(Clone, Debug)]
pub struct Example {
    /// Emits it.
    pub build: Build,
    /// The types of the results, as text spells them.
    pub types: Vec<&'static str>,
    /// The elements of each result, row by row; `bool` is 0 or 1.
    pub numbers: Vec<Vec<f64>>,
}

/// A use that is refused.
#[derive(Clone, Debug)]
pub struct Bad {
    /// The attempt.
    pub attempt: Attempt,
    /// The expected message.
    pub message: &'static str,
}

/// The attempt of a bad use.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// Through the emitter.
    Emit(Build),
    /// By inference alone, on operands of these types: the emitter cannot be made to do it.
    Infer(Op, Vec<Type>),
}

/// The derivative of an op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gradient {
    /// The true derivative, times this factor.
    TimesTrue(f64),
    /// None, for this reason.
    None(&'static str),
}
