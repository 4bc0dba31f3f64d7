//! Policy `auto`: as much search as pays.
//!
//! **What.** Without a cost function: the ratio; if it meets the bound, done; else a beam of width 8 within a budget of
//! [`Auto::BUDGET`] visited edges (ten to thirty milliseconds on one core), which never returns more batches than the ratio.
//! With a cost function `cost(type, rows)`, the predicted time of one kernel call over `rows` nodes of a type: the orders of
//! ratio and beam are compared by predicted time (ties: fewer batches), and with running every node alone, because on tiny
//! models a kernel over many rows may cost as much as its rows one by one. If alone is not slower, every node runs alone and
//! [`Why::BatchingDoesNotPay`] says so.
//!
//! **Needs** a checked problem. **Ensures** a valid order. **Cost** as its members. **Refuses** nothing; a cost that is not a
//! finite number counts as infinite, so such a prediction never wins.

use super::{Batches, Beam, Problem, Ratio, Schedule, Scratch, Unbatched, Why};

/// Predicts the time of one kernel call: `cost(type, rows)`, in any unit. Called once per batch.
pub type Cost = dyn Fn(u32, u32) -> f64 + Send + Sync;

/// Chooses between ratio, beam and no batching.
#[derive(Default)]
pub struct Auto {
    /// The cost function; without one the number of batches decides and batching is taken to pay.
    pub cost: Option<Box<Cost>>,
}

impl Auto {
    /// Edges that the beam may visit.
    pub const BUDGET: u64 = 1_000_000;
}

impl Schedule for Auto {
    fn name(&self) -> &str {
        "auto"
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let beam = Beam { budget: Self::BUDGET, ..Beam::default() };
        let Some(cost) = &self.cost else {
            return beam.schedule(problem, scratch);
        };
        let mut best = Ratio.schedule(problem, scratch);
        let mut time = predict(problem, &best, cost);
        if best.why != Why::BoundMet {
            let searched = beam.schedule(problem, scratch);
            let searched_time = predict(problem, &searched, cost);
            if (searched_time, searched.len()) < (time, best.len()) {
                (best, time) = (searched, searched_time);
            }
        }
        let alone: f64 = problem.ty().iter().map(|&ty| finite(cost(ty, 1))).sum();
        if best.len() < problem.len() && alone <= time && alone.is_finite() {
            let why = Why::BatchingDoesNotPay { alone, batched: time };
            return Batches { why, bound: best.bound, ..Unbatched.schedule(problem, scratch) };
        }
        best
    }
}

/// Predicted time of an order.
fn predict(problem: &Problem<'_>, batches: &Batches, cost: &Cost) -> f64 {
    batches.iter().map(|nodes| finite(cost(problem.ty()[nodes[0] as usize], nodes.len() as u32))).sum()
}

fn finite(cost: f64) -> f64 {
    if cost.is_finite() { cost } else { f64::INFINITY }
}
