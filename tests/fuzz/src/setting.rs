//! The settings under which a graph is planned.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_planner::schedule::{Fsm, Policy, Scratch, Training, train};
use autobatch_planner::{Jobs, Planner, RowOrder};
use autobatch_testing::hostile::SplitMix64;
use std::fmt;

/// The policies. `fsm` learns its table from the graph.
pub const POLICIES: [&str; 8] =
    ["none", "depth", "agenda", "agenda:remaining", "ratio", "beam:8", "fsm", "auto"];

/// A policy with the other options of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// One of [`POLICIES`].
    pub policy: &'static str,
    /// The order of rows.
    pub rows: RowOrder,
    /// The promise of the plan.
    pub mode: Mode,
    /// Whether dropout draws noise.
    pub training: bool,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, rows, mode, training } = self;
        write!(f, "{policy} {rows:?} {mode:?}{}", if *training { " training" } else { "" })
    }
}

impl Setting {
    /// Draws a setting for the forward direction.
    #[must_use]
    pub fn forward(random: &mut SplitMix64) -> Self {
        let policy = POLICIES[random.below(POLICIES.len())];
        let rows = [RowOrder::Batch, RowOrder::Propagated][random.below(2)];
        let mode = [Mode::Infer, Mode::Train][random.below(2)];
        Self { policy, rows, mode, training: random.below(2) == 1 }
    }

    /// Draws a setting for gradients.
    #[must_use]
    pub fn reverse(random: &mut SplitMix64) -> Self {
        Self { mode: Mode::Train, training: true, ..Self::forward(random) }
    }

    /// Returns this setting under every policy, in every order of rows.
    #[must_use]
    pub fn everywhere(self) -> Vec<Self> {
        let rows = [RowOrder::Batch, RowOrder::Propagated];
        let orders = |policy| rows.map(|rows| Self { policy, rows, ..self });
        POLICIES.into_iter().flat_map(orders).collect()
    }

    /// Makes the planner of the policy.
    ///
    /// # Panics
    /// Panics if the policy is none of [`POLICIES`].
    #[must_use]
    pub fn planner(&self, graph: &GraphData, wanted: &[ValueId]) -> Planner {
        if self.policy == "fsm" {
            let jobs = Jobs::new(graph, wanted);
            let training = Training { episodes: 2, seed: 1, ..Training::default() };
            let table = train(&[jobs.problem()], &training, &mut Scratch::default()).table;
            return Planner::new(Box::new(Fsm { table }));
        }
        let policy: Policy = self.policy.parse().expect("the list holds policies");
        Planner::new(policy.load().expect("the policy reads no file"))
    }
}
