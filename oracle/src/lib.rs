//! The oracle: independent definitions of what graphs and plans mean, and proofs against them.
//!
//! * [`mod@reference`] evaluates a graph one op at a time, forward and in reverse, in f32 and f64.
//! * [`naive`] executes a plan one lane at a time.
//! * [`check`] proves that a plan computes what its graph says.
//! * [`equivalent`] proves that two graphs compute the same values.
//!
//! The crate depends on the two languages alone. It shares no code with the planner or with a
//! runtime, so a fault there cannot hide itself here.

#![forbid(unsafe_code)]

pub mod check;
pub mod equivalent;
pub mod naive;
pub mod reference;
