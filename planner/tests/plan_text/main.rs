//! Plans as text, bytes and JSON: what a planner makes comes back equal.

#[path = "../plans/graphs.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod graphs;
#[path = "../plans/vocabulary.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod vocabulary;

mod corpus;
mod errors;
mod page;
mod round_trip;
