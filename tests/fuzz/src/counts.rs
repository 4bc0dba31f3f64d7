//! Counts of a run.

use autobatch_testing::hostile::{Budget, Spent, metered};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The events that a run counts, in the order of the columns of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tally {
    /// A case began.
    Cases,
    /// The reader or the verifier rejected a file.
    Refused,
    /// The reader and the verifier accepted a file, and every form of it read back equal.
    Accepted,
    /// An accepted file declares more than a case computes.
    Large,
    /// The planner returned an error, or bindings were out of range. Every executor agreed.
    Unplanned,
    /// The planner made a plan, and the verifier accepted it.
    Planned,
    /// The proof accepted a plan.
    Proven,
    /// The proof rejected a plan.
    Unproven,
    /// An executor executed a plan, and its outputs had the expected bits.
    Executed,
    /// Values whose bits were compared with the reference.
    Values,
}

impl Tally {
    /// Every event.
    pub const ALL: [Self; 10] = [
        Self::Cases,
        Self::Refused,
        Self::Accepted,
        Self::Large,
        Self::Unplanned,
        Self::Planned,
        Self::Proven,
        Self::Unproven,
        Self::Executed,
        Self::Values,
    ];

    /// The heading of the column.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cases => "cases",
            Self::Refused => "refused",
            Self::Accepted => "accepted",
            Self::Large => "large",
            Self::Unplanned => "unplanned",
            Self::Planned => "planned",
            Self::Proven => "proven",
            Self::Unproven => "unproven",
            Self::Executed => "executed",
            Self::Values => "values",
        }
    }
}

/// The number of each event, and the largest shares of the budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    counts: BTreeMap<Tally, u64>,
    /// The plans of each setting.
    pub settings: BTreeMap<String, u64>,
    /// The largest share of a budget for reading, in thousandths.
    pub reading: u64,
    /// The largest share of a budget for a whole case, in thousandths.
    pub whole: u64,
    /// Observations for a human reader, at most forty.
    pub notes: Vec<String>,
}

/// The most observations of a run.
const NOTES: usize = 40;

impl Counts {
    /// Keeps the beginning of an observation.
    pub fn note(&mut self, note: &str) {
        const SHOWN: usize = 500;
        if self.notes.len() < NOTES {
            self.notes.push(note.chars().take(SHOWN).collect());
        }
    }

    /// Returns the number of an event.
    #[must_use]
    pub fn get(&self, tally: Tally) -> u64 {
        self.counts.get(&tally).copied().unwrap_or(0)
    }

    /// Counts an event once.
    pub fn add(&mut self, tally: Tally) {
        self.add_many(tally, 1);
    }

    /// Counts an event several times.
    pub fn add_many(&mut self, tally: Tally, times: u64) {
        *self.counts.entry(tally).or_default() += times;
    }

    /// Reads a file of this many bytes within the budget. Counts a refused file.
    ///
    /// # Panics
    /// Panics if reading exceeds its budget, or an error is longer than any terminal shows.
    pub fn read<T, E: std::fmt::Display>(
        &mut self,
        bytes: usize,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Option<T> {
        const LONGEST: usize = 100_000;
        let (result, spent) = metered(read);
        let budget = Budget::reading(bytes);
        self.reading = self.reading.max(budget.share(spent));
        budget.admits(spent, "reading");
        match result {
            Ok(made) => Some(made),
            Err(error) => {
                let said = error.to_string().len();
                assert!(said < LONGEST, "the error has {said} bytes");
                self.add(Tally::Refused);
                None
            }
        }
    }

    /// Records the share of the budget that a whole case took.
    pub fn record(&mut self, budget: Budget, spent: Spent) {
        self.whole = self.whole.max(budget.share(spent));
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        other.counts.iter().for_each(|(&tally, &times)| self.add_many(tally, times));
        for (setting, times) in &other.settings {
            *self.settings.entry(setting.clone()).or_default() += times;
        }
        self.reading = self.reading.max(other.reading);
        self.whole = self.whole.max(other.whole);
        other.notes.iter().for_each(|note| self.note(note));
    }
}
