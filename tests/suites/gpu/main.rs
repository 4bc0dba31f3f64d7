//! Tests of the GPU runtime: agreement with the definition, forward and backward; bits that do not depend on the
//! batch; limits; faults; and translation of every module.
//! Without an adapter each test reports that it is skipped, and passes. `AUTOBATCH_REQUIRE_GPU=1` makes that a
//! failure.

mod agreement;
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
mod growing;
mod lab;
mod limits;
mod loops;
mod models;
mod pace;
mod parts;
mod pauses;
mod persistent;
mod prerecorded;
mod profile;
mod self_test;
mod session;
mod together;
mod training;
mod translate;
mod updates;
mod vectors;
