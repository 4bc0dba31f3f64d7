//! Tools for tests of hostile input: a counting allocator and mutations of valid samples.
//!
//! `AUTOBATCH_TEST=long` multiplies the number of mutations by ten; `AUTOBATCH_SEED=n` selects another
//! seed.

#![allow(clippy::print_stdout, reason = "a failing test shows the seed")]

mod binaries;
mod budget;
mod counting;
mod mutation;
pub mod tokens;

use crate::trials::{asked_seed, trials};
pub use binaries::read_mutated;
pub use budget::{BYTES, BYTES_PER_BYTE, Budget, SLOW, Spent, TIME, TIME_PER_BYTE, limit, metered};
pub use counting::{Counting, Traffic, allocations, cap, counted, held, measured};

pub use mutation::{HEADER, SplitMix64, mutated_bytes, mutated_json, mutated_text, reseal};

/// Returns the seed, the number of mutations and their generator. Prints the first two, so a failure shows them.
pub fn campaign(seed: u64) -> (u64, usize, SplitMix64) {
    let seed = asked_seed().unwrap_or(seed);
    let rounds = trials(20_000, 200_000);
    println!("AUTOBATCH_SEED={seed}, {rounds} mutations");
    (seed, rounds, SplitMix64(seed))
}
