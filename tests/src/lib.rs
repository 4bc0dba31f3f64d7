//! What the tests of several crates share.
//!
//! * [`random`]: random graphs with shrinking.
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
