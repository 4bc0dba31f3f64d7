//! What the tests of several crates share.
//!
//! * [`random`]: random graphs with shrinking, as models emit them.
//! * [`written`]: random graphs as texts, with what the emitter does not say.
//! * [`op_table`]: for every op its inference test, error test, numbers and gradient check; an op
//!   without an entry does not compile.
//! * [`trials`]: how much random tests try.
//! * [`tidy`], [`dependencies`]: the repository's own rules, as functions on text.

pub mod dependencies;
pub mod op_table;
pub mod random;
pub mod tidy;
#[path = "../trials.rs"]
pub mod trials;
pub mod written;
