//! Exhaustive search: the fewest batches of a small problem, for tests and for comparisons of policies.
//!
//! **How.** Breadth-first search over sets of finished jobs. A step runs all ready jobs of one type, or one alone job. The first
//! layer with the full set has the fewest batches. The search uses no bound, no parts and no safe rule, so that it can judge
//! them. **Needs** at most [`MAX_EXACT_JOBS`] jobs: a set is one word, and 2^jobs sets may exist. **Ensures** an optimal order;
//! among optimal orders, the first in order of (finished set, type). **Cost** O(2^jobs) at worst.

use super::batches::Spare;
use super::{Batches, Problem, StopReason};
use std::fmt;

/// Largest number of jobs that [`exact`] accepts.
pub const MAX_EXACT_JOBS: usize = 20;

/// The problem has more jobs than exhaustive search accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The number of jobs.
    pub jobs: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = self.jobs;
        write!(
            f,
            "exhaustive search: expected at most {MAX_EXACT_JOBS} jobs, found {jobs}; use beam and compare with the bound"
        )
    }
}

impl std::error::Error for TooLarge {}

autobatch_ir::debug_as_display!(TooLarge);

/// A set of finished jobs, and the state of the previous layer that led to it.
#[derive(Clone, Copy)]
struct State {
    done: u32,
    from: u32,
}

/// Finds an order with the fewest batches.
pub fn exact(problem: &Problem<'_>) -> Result<Batches, TooLarge> {
    let jobs = problem.len();
    if jobs > MAX_EXACT_JOBS {
        return Err(TooLarge { jobs });
    }
    let all = (1u32 << jobs) - 1;
    let needs: Vec<u32> = (0..jobs)
        .map(|job| problem.operands(job).iter().fold(0, |set, &operand| set | 1 << operand))
        .collect();
    let groups = groups(problem);
    let mut layers = vec![vec![State { done: 0, from: 0 }]];
    loop {
        let last = &layers[layers.len() - 1];
        if let Some(end) = last.iter().position(|state| state.done == all) {
            return Ok(read_back(problem, &layers, end));
        }
        let mut next = Vec::new();
        for (from, state) in last.iter().enumerate() {
            let ready =
                (0..jobs).filter(|&job| needs[job] & !state.done == 0).fold(0u32, |set, job| set | 1 << job)
                    & !state.done;
            let fired = groups.iter().map(|group| group & ready).filter(|&batch| batch != 0);
            next.extend(fired.map(|batch| State { done: state.done | batch, from: from as u32 }));
        }
        next.sort_by_key(|state| state.done);
        next.dedup_by_key(|state| state.done);
        layers.push(next);
    }
}

/// The jobs of every type as a set. An alone job is a set of its own.
fn groups(problem: &Problem<'_>) -> Vec<u32> {
    let alone = problem.alone().iter().fold(0u32, |set, &job| set | 1 << job);
    let mut order: Vec<u32> = problem.ty().to_vec();
    order.sort_unstable();
    order.dedup();
    let of_type =
        |ty: u32| (0..problem.len()).filter(|&job| problem.ty()[job] == ty).fold(0u32, |set, v| set | 1 << v);
    let together = order.into_iter().map(|ty| of_type(ty) & !alone);
    together.chain(problem.alone().iter().map(|&job| 1 << job)).collect()
}

/// Follows the states back from the full set and numbers the batches.
fn read_back(problem: &Problem<'_>, layers: &[Vec<State>], mut at: usize) -> Batches {
    let mut batch_of = vec![0; problem.len()];
    for layer in (1..layers.len()).rev() {
        let state = layers[layer][at];
        at = state.from as usize;
        let fired = state.done & !layers[layer - 1][at].done;
        (0..problem.len())
            .filter(|job| fired >> job & 1 == 1)
            .for_each(|job| batch_of[job] = layer as u32 - 1);
    }
    Batches::collect(&batch_of, layers.len() as u32 - 1, None, StopReason::Exhausted, &mut Spare::default())
}
