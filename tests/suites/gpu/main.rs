//! The GPU runtime: agreement with the definition, forward and backward; bits that do not depend on the
//! batch; limits; faults; and that every module translates.
//!
//! Without an adapter each test says that it was skipped and passes; `AUTOBATCH_REQUIRE_GPU=1` makes that
//! a failure.

mod agreement;
mod ahead;
mod attention;
mod batches;
mod bounds;
mod common;
mod edges;
mod execute;
mod exhausted;
mod faults;
mod files;
mod gl;
mod gradients;
mod grown;
mod lab;
mod limits;
mod loops;
mod models;
mod parts;
mod session;
mod persistent;
mod together;
mod training;
mod translate;
mod updates;
mod vectors;
