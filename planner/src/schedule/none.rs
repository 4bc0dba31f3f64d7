//! Policy `none`: every job alone, in recorded order.
//!
//! **Needs** a checked problem. **Ensures** a valid order, because jobs are in topological order. **Use**: the measure of all
//! other policies, the fallback where batching does not pay (tiny models on a CPU), and the simplest plans to debug.
//! **Cost** O(jobs).

use super::batches::Spare;
use super::{Batches, Problem, Schedule, Scratch, StopReason, builtin};

/// Runs every job by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbatched;

impl Schedule for Unbatched {
    builtin!("none");

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let jobs = problem.len() as u32;
        let Spare { mut start, mut items } = std::mem::take(&mut scratch.spare);
        start.clear();
        start.extend(0..=jobs);
        items.clear();
        items.extend(problem.jobs());
        Batches { start, items, bound: None, why: StopReason::Rule }
    }
}
