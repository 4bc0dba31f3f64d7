//! The tools that the tests of all crates share.
//!
//! * [`random`]: random graphs as models emit them, with shrinking.
//! * [`written`]: random graphs as texts, with constructs that the emitter cannot express.
//! * [`op_table`]: the inference test, the error test, the expected numbers and the gradient check of every op.
//!   An op without an entry does not compile.
//! * [`job_graphs`]: random scheduling problems. [`exhaustive`] finds their fewest batches.
//! * [`cases`]: the policies and losses of agreement tests.
//! * [`files`]: reads a graph of a file test, and compares the snapshot beside it.
//! * [`growing`]: a model for graphs that grow.
//! * [`tree_lstm`]: the model that the examples of several crates measure.
//! * [`hostile`]: mutated files, and an allocator that counts.
//! * [`trials`]: the number of cases and the seed of random tests.
//!
//! Of the workspace the crate depends on `autobatch-ir` alone, so every other crate can use it in its tests.

pub mod cases;
pub mod exhaustive;
pub mod files;
pub mod growing;
pub mod hostile;
pub mod job_graphs;
pub mod op_table;
pub mod random;
pub mod tree_lstm;
pub mod trials;
pub mod written;
