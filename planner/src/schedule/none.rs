//! Policy `none`: every job alone, in the order recorded.
//!
//! **What.** One batch per job. **Needs** a checked problem; **ensures** a valid order, because arena order is topological.
//! **Why it exists**: it is the yardstick of every other policy, the fallback where batching does not pay (tiny models on a CPU),
//! and the plainest way to debug a plan. **Cost** O(jobs). **Refuses** nothing.

use super::batches::Spare;
use super::{Batches, Problem, Schedule, Scratch, Why};

/// Runs every job by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbatched;

impl Schedule for Unbatched {
    fn name(&self) -> &str {
        "none"
    }

    fn options(&self) -> String {
        format!("{self:?}")
    }

    fn needs_check(&self) -> bool {
        false
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let jobs = problem.len() as u32;
        let Spare { mut start, mut items } = std::mem::take(&mut scratch.spare);
        start.clear();
        start.extend(0..=jobs);
        items.clear();
        items.extend(0..jobs);
        Batches { start, items, bound: None, why: Why::Rule }
    }
}
