//! Fuzz targets for everything that comes from outside, and for every path from a graph to its values.
//!
//! A [`Target`] draws inputs by mutating valid samples, and checks one input at a time. Three programs run the same targets:
//! * the tests of this crate, for a few seconds each;
//! * `volume`, for any number of cases, with counts and a state file;
//! * libFuzzer, with feedback from covered code, through the files in `fuzz_targets/`.
//!
//! Each case asserts its memory and its processor time against a [`Budget`](autobatch_testing::hostile::Budget). A program
//! installs [`Counting`](autobatch_testing::hostile::Counting) to count memory.

#![forbid(unsafe_code)]

mod counts;
mod effort;
mod expected;
mod machine;
mod setting;
mod subjects;
mod target;

pub use counts::{Counts, Tally};
pub use setting::{POLICIES, Setting};
pub use subjects::targets;
pub use target::{Bench, Case, Subject, Target};
