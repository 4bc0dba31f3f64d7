//! The result of a policy: ordered batches, and the reason why its search stopped.
//!
//! Batches are flat (offsets and items), because a minibatch has hundreds of them and later stages read them once, in order.
//! Items ascend inside a batch. The layout chooses the lane order later; ascending items keep equal batches of different
//! policies equal.

use crate::ids::JobId;
use std::fmt;

/// An ordered list of batches that covers every job once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batches {
    /// One offset per batch into `items`, then the length of `items`. Read it through [`Batches::len`] and [`Batches::get`],
    /// which also accept an empty list.
    pub start: Vec<u32>,
    /// The jobs, batch after batch; they ascend inside a batch.
    pub items: Vec<JobId>,
    /// The lower bound of [`path_sum_bound`](super::path_sum_bound), if the policy knows it without extra work.
    pub bound: Option<u32>,
    /// Why the policy stopped searching.
    pub why: StopReason,
}

impl Batches {
    /// Number of batches.
    pub fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// Whether the list has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The jobs of the batch at a place in the order, ascending.
    ///
    /// # Panics
    /// If `place` is not smaller than [`Batches::len`].
    pub fn get(&self, place: usize) -> &[JobId] {
        &self.items[self.start[place] as usize..self.start[place + 1] as usize]
    }

    /// The batches in order.
    pub fn iter(&self) -> impl Iterator<Item = &[JobId]> {
        (0..self.len()).map(|batch| self.get(batch))
    }
}

/// Memory of recycled batches.
#[derive(Default)]
pub(super) struct Spare {
    pub(super) start: Vec<u32>,
    pub(super) items: Vec<JobId>,
}

/// The reason why a policy stopped searching. `Display` gives one sentence for reports.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum StopReason {
    /// The policy follows a fixed rule without a search.
    #[default]
    Rule,
    /// The number of batches equals the lower bound, so no order has fewer.
    BoundMet,
    /// The greedy choice ran to the end and stayed above the bound.
    Greedy,
    /// The beam ran to the end in both directions and stayed above the bound.
    BeamEnded {
        /// Number of states per step.
        width: u32,
    },
    /// The work budget ran out, and greedy choices completed the order.
    BudgetSpent {
        /// The budget, in visited edges.
        budget: u64,
    },
    /// A group of mutually dependent types was too large for a search and was ordered by depth.
    TooManyTypes {
        /// Number of types in the largest such group.
        types: u32,
    },
    /// The learned table decided; the frontier ratio decided in states that the table does not contain.
    Learned {
        /// Number of decisions from the table.
        known: u32,
        /// Number of decisions by the ratio.
        unknown: u32,
    },
    /// A search is expected to take more time than its saved batches.
    SearchDoesNotPay {
        /// Expected saving of execution, in nanoseconds.
        saves: f64,
        /// Expected cost of planning, in nanoseconds.
        costs: f64,
    },
    /// The learned table is empty, so the ratio decided all.
    EmptyTable,
    /// By the cost table, single jobs take no longer than the best batches found.
    BatchingDoesNotPay {
        /// Fixed cost of steps of one job each, in nanoseconds.
        alone: f64,
        /// Fixed cost of the batches plus gathered operand rows, in nanoseconds.
        batched: f64,
    },
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule => write!(f, "fixed rule, no search"),
            Self::BoundMet => write!(f, "met the lower bound: no order has fewer batches"),
            Self::Greedy => write!(f, "greedy choice ran to its end above the bound"),
            Self::BeamEnded { width } => write!(f, "beam of width {width} ran to its end above the bound"),
            Self::BudgetSpent { budget } => {
                write!(f, "budget of {budget} visited edges spent; the rest was chosen greedily")
            }
            Self::TooManyTypes { types } => {
                write!(f, "{types} types depend on each other, too many to search; ordered by depth")
            }
            Self::EmptyTable => write!(
                f,
                "the learned table is empty, because nothing beat the ratio on its samples; the ratio decided all"
            ),
            Self::Learned { known: 0, unknown } => write!(
                f,
                "the learned table contains none of {unknown} states and the ratio decided all; train it on similar graphs"
            ),
            Self::Learned { known, unknown } => {
                write!(
                    f,
                    "the learned table decided {known} times, the ratio decided in {unknown} unknown states"
                )
            }
            Self::SearchDoesNotPay { saves, costs } => write!(
                f,
                "searching further does not pay: it would save about {:.1} µs of execution and cost {:.1} µs of planning",
                saves / 1e3,
                costs / 1e3
            ),
            Self::BatchingDoesNotPay { alone, batched } => write!(
                f,
                "batching does not pay: {:.1} µs one by one, {:.1} µs in batches, besides the rows",
                alone / 1e3,
                batched / 1e3
            ),
        }
    }
}
