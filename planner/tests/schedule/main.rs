//! Tests of the batching policies: against exhaustive search and on many shapes of problems.
//!
//! Every random test prints the seed of a failing case. `AUTOBATCH_TEST=long` raises the number of cases.

mod costs;
mod files;
mod learned;
mod names;
mod optimality;
mod problems;
mod validity;

use autobatch_planner::schedule::{Problem, Schedule, Scratch, check};
use autobatch_planner::{JobId, TypeIndex};
use autobatch_testing::job_graphs::JobGraph;
use autobatch_testing::trials::trials;
use bytemuck::TransparentWrapper;

/// Number of cases: `usual`, or ten times as many in long runs.
fn cases(usual: u64) -> u64 {
    trials(usual, usual * 10)
}

/// The checked problem of a generated graph.
trait AsProblem {
    fn problem(&self) -> Problem<'_>;
}

impl AsProblem for JobGraph {
    fn problem(&self) -> Problem<'_> {
        let [alone, operands] = [&self.alone, &self.operands].map(|jobs| JobId::wrap_slice(jobs));
        Problem::new(self.types, TypeIndex::wrap_slice(&self.ty), alone, &self.start, operands)
            .expect("generated problems follow the rules")
    }
}

/// The number of batches of a policy, whose order must be valid.
fn count(policy: &dyn Schedule, graph: &JobGraph, scratch: &mut Scratch, seed: u64) -> usize {
    let problem = graph.problem();
    let batches = policy.schedule(&problem, scratch);
    if let Err(error) = check(&problem, &batches) {
        panic!("{} on seed {seed}: {error}\n{graph:?}", policy.name());
    }
    batches.len()
}
