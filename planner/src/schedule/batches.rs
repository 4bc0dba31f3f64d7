//! What a policy returns: ordered batches, and why its search stopped.
//!
//! Batches are flat (offsets and items), because a minibatch has hundreds of them and they are read once, in order. Items are
//! ascending by job number inside a batch: the order inside a batch is decided later, by the layout pass, and an order that
//! does not depend on the policy keeps equal batches equal.

use std::fmt;

/// An ordered list of batches that covers every job once.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    /// One offset per batch into `items`, and the length of `items` at the end. Empty only if made by hand; read through
    /// [`Batches::len`] and [`Batches::get`].
    pub start: Vec<u32>,
    /// Job numbers, batch after batch, ascending inside a batch.
    pub items: Vec<u32>,
    /// The path-sum lower bound, where the policy knows it without extra work; see [`path_sum_bound`](super::path_sum_bound).
    pub bound: Option<u32>,
    /// Why the policy stopped searching.
    pub why: Why,
}

impl Batches {
    /// Number of batches.
    pub fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// Whether there is no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The jobs of a batch, ascending.
    ///
    /// # Panics
    /// If `batch` is not smaller than [`Batches::len`].
    pub fn get(&self, batch: usize) -> &[u32] {
        &self.items[self.start[batch] as usize..self.start[batch + 1] as usize]
    }

    /// The batches in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|batch| self.get(batch))
    }

    /// Groups jobs by batch number with one counting sort, which leaves the items of a batch ascending. Takes the memory that
    /// `spare` holds.
    ///
    /// Needs: `batch_of[v] < count` for every job `v`.
    pub(super) fn collect(
        batch_of: &[u32],
        count: u32,
        bound: Option<u32>,
        why: Why,
        spare: &mut Spare,
    ) -> Self {
        let mut tally = Tally::new(count, spare);
        batch_of.iter().for_each(|&batch| tally.add(batch));
        tally.collect(batch_of, bound, why)
    }
}

/// Counts jobs by batch, then groups them.
pub(super) struct Tally {
    /// Per batch, two places later, how many jobs it has.
    start: Vec<u32>,
    items: Vec<u32>,
}

impl Tally {
    /// Nothing is counted of so many batches; takes the memory that `spare` holds.
    pub(super) fn new(count: u32, spare: &mut Spare) -> Self {
        let Spare { mut start, items } = std::mem::take(spare);
        start.clear();
        start.resize(count as usize + 2, 0);
        Self { start, items }
    }

    /// Counts a job.
    #[inline]
    pub(super) fn add(&mut self, batch: u32) {
        self.start[batch as usize + 2] += 1;
    }

    /// The batches, once all jobs are counted. The items of a batch are ascending.
    pub(super) fn collect(self, batch_of: &[u32], bound: Option<u32>, why: Why) -> Batches {
        let Self { mut start, mut items } = self;
        for at in 2..start.len() {
            start[at] += start[at - 1];
        }
        // Every item is written, so what the memory held before need not be cleared.
        items.resize(batch_of.len(), 0);
        for (job, &batch) in batch_of.iter().enumerate() {
            let at = &mut start[batch as usize + 1];
            items[*at as usize] = job as u32;
            *at += 1;
        }
        start.pop();
        Batches { start, items, bound, why }
    }
}

/// Memory of batches that are not needed any more.
#[derive(Default)]
pub(super) struct Spare {
    pub(super) start: Vec<u32>,
    pub(super) items: Vec<u32>,
}

/// Why a policy stopped; one sentence for reports through `Display`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// The policy follows a fixed rule and searches nothing.
    Rule,
    /// The number of batches equals the lower bound: no order has fewer.
    BoundMet,
    /// The greedy choice ran to its end, above the bound.
    Greedy,
    /// The beam ran to its end in both directions, above the bound.
    BeamEnded {
        /// How many states were kept at a time.
        width: u32,
    },
    /// The work budget was spent, so the rest was chosen greedily.
    BudgetSpent {
        /// The budget, in visited edges.
        budget: u64,
    },
    /// A group of mutually dependent types was too large to search, so it was ordered by depth.
    TooManyTypes {
        /// The types in the largest such group.
        types: u32,
    },
    /// The learned table chose; states that it did not know were decided by the frontier ratio.
    Learned {
        /// Decisions taken from the table.
        known: u32,
        /// Decisions that fell back to the ratio.
        unknown: u32,
    },
    /// Every order was found, so this one is the shortest.
    Exhausted,
    /// A search is expected to cost more time than the batches that it would save.
    SearchDoesNotPay {
        /// Nanoseconds of executing that it is expected to save.
        saves: f64,
        /// Nanoseconds of planning that it is expected to cost.
        costs: f64,
    },
    /// The cost table predicts that jobs one by one take no longer than the best batches found.
    BatchingDoesNotPay {
        /// Nanoseconds that steps of one job each cost, apart from their rows.
        alone: f64,
        /// Nanoseconds that the batches cost, apart from their rows, with operand rows read through tables.
        batched: f64,
    },
}

impl fmt::Display for Why {
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
            Self::Learned { known: 0, unknown } => write!(
                f,
                "learned table knows none of {unknown} states, the ratio decided all; train it on graphs like this one"
            ),
            Self::Learned { known, unknown } => {
                write!(f, "learned table decided {known} times, {unknown} unknown states went to the ratio")
            }
            Self::Exhausted => write!(f, "every order was searched: no order has fewer batches"),
            Self::SearchDoesNotPay { saves, costs } => write!(
                f,
                "searching further does not pay: it would save about {:.1} µs of executing and cost {:.1} µs of planning",
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
