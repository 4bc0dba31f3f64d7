//! Training: losses fall, bits repeat on any number of threads, checkpoints resume, errors name their cause.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

mod append;
mod checkpoints;
mod equal_bits;
mod errors;
mod groups;
mod interrupts;
mod killed;
mod model;
mod panics;
mod parts;
mod ranks;
mod rewritten;
mod shards;
mod steps;
mod weights;
