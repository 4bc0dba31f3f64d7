//! The op table. It holds, for every op: results for valid operands, the error for invalid operands, numbers
//! that the project did not compute, and the way to check its gradient.
//!
//! [`Kind`] names every op and every attribute that changes the result; [`case`] matches it
//! without a wildcard. So a new op does not compile until it has an entry here.
//!
//! Inference tests and error tests run through the emitter. Number tests and gradient checks take an
//! evaluator, [`Evaluate`] or [`Differentiate`]. One table thus checks the reference interpreter, a plan executor
//! and a runtime. Round trips take a writer and a reader.

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
    /// Valid uses; at least one.
    pub examples: Vec<Example>,
    /// An invalid use.
    pub bad: Bad,
    /// The derivative of the op.
    pub gradient: Gradient,
}

/// One valid use of an op.
#[derive(Clone, Debug)]
pub struct Example {
    /// Emits the use.
    pub build: Build,
    /// The types of the results in their textual form.
    pub types: Vec<&'static str>,
    /// The elements of each result, row by row. A `bool` is 0 or 1.
    pub numbers: Vec<Vec<f64>>,
}

/// An invalid use of an op.
#[derive(Clone, Debug)]
pub struct Bad {
    /// The invalid operation.
    pub attempt: Attempt,
    /// The expected message.
    pub message: &'static str,
}

/// The way in which a test makes an invalid use.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// Through the emitter.
    Emit(Build),
    /// Through inference alone, on operands of these types. The emitter cannot express the use.
    Infer(Op, Vec<Type>),
}

/// The derivative of an op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gradient {
    /// The derivative of the function, multiplied by this factor.
    TimesTrue(f64),
    /// No derivative, for this reason.
    None(&'static str),
}
