//! Policy `none`: every node alone, in the order recorded.
//!
//! **What.** One batch per node. **Needs** a checked problem; **ensures** a valid order, because arena order is topological.
//! **Why it exists**: it is the yardstick of every other policy, the fallback where batching does not pay (tiny models on a CPU),
//! and the plainest way to debug a plan. **Cost** O(nodes). **Refuses** nothing.

use super::{Batches, Problem, Schedule, Scratch, Why};

/// Runs every node by itself.
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

    fn schedule(&self, problem: &Problem<'_>, _: &mut Scratch) -> Batches {
        let nodes = problem.len() as u32;
        Batches { start: (0..=nodes).collect(), items: (0..nodes).collect(), bound: None, why: Why::Rule }
    }
}
