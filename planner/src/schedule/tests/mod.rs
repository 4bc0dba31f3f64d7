//! Tests of the schedulers: against exhaustive search, against brute-force definitions, and on many shapes of graph.
//!
//! Every random test prints the seed of the case that fails. `AUTOBATCH_TEST=long` raises the number of cases.

mod counters;
mod generate;
mod learned;
mod names;
mod optimality;
mod problems;
mod validity;

use super::*;
use autobatch_testing::trials::trials;
use generate::Graph;

/// How many cases to run: `usual`, or ten times as many in long runs.
fn cases(usual: u64) -> u64 {
    trials(usual, usual * 10)
}

/// The number of batches of a valid order; fails with the seed otherwise.
fn count(policy: &dyn Schedule, graph: &Graph, scratch: &mut Scratch, seed: u64) -> usize {
    let problem = graph.problem();
    let batches = policy.schedule(&problem, scratch);
    if let Err(error) = check(&problem, &batches) {
        panic!("{} on seed {seed}: {error}\n{graph:?}", policy.name());
    }
    batches.len()
}
