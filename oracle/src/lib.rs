//! The oracle: independent definitions of the meaning of graphs and plans, and proofs against them.
//!
//! * [`mod@reference`] evaluates a graph one op at a time, forward and in reverse, in f32 and f64.
//! * [`naive`] executes a plan one lane at a time.
//! * [`check`] proves that a plan computes its graph.
//! * [`equivalent`] proves that two graphs compute the same values.
//!
//! The crate depends only on the two languages. It shares no code with the planner or with a
//! runtime, so it detects faults in both.

#![forbid(unsafe_code)]

pub mod check;
pub mod equivalent;
pub mod naive;
pub mod reference;
