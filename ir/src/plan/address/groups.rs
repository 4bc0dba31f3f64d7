//! Groups: neighbouring lanes of a step that read lists over one range of numbers.

use super::List;
use crate::plan::normal::table;
use serde::{Deserialize, Serialize};

/// Neighbouring lanes that read lists over one range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// The lane after its last, counted in the step. Its first is the end of the group before.
    pub end: u32,
    /// How many numbers the range has.
    pub len: u32,
    /// The range.
    pub range: GroupRange,
    /// Which of the range each lane reads.
    pub rule: GroupRule,
}

/// The numbers of a group.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupRange {
    /// Neighbours from `start` on.
    Run { start: u32 },
    /// Numbers in the tables, from `at` on.
    Table { at: u32 },
}

/// The part of a group's range that each lane reads, as a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupRule {
    /// Each lane reads all.
    All,
    /// The last lane reads all, and each other lane one number less than the next: the end of the range is cut.
    Prefix,
    /// The first lane reads all, and each other lane one number less than the one before: the start of the range is cut.
    Suffix,
}

impl GroupRule {
    /// Every rule, in declaration order.
    pub const ALL: [Self; 3] = [Self::All, Self::Prefix, Self::Suffix];

    /// The word for it in text.
    #[must_use]
    pub const fn spelling(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Prefix => "prefix",
            Self::Suffix => "suffix",
        }
    }
}

impl Group {
    /// The numbers that a lane of the step reads, and how many, if the lanes of the group begin at `first`.
    #[inline]
    #[must_use]
    pub fn part(self, first: u32, lane: u32) -> (GroupRange, u32) {
        let cut = match self.rule {
            GroupRule::All => 0,
            GroupRule::Prefix => self.end - 1 - lane,
            GroupRule::Suffix => lane - first,
        };
        let (from, len) = (if self.rule == GroupRule::Suffix { cut } else { 0 }, self.len - cut);
        let range = match self.range {
            GroupRange::Run { start } => GroupRange::Run { start: start + from },
            GroupRange::Table { at } => GroupRange::Table { at: at + from },
        };
        (range, len)
    }

    /// The list of a lane of the step, if the lanes of the group begin at `first`.
    #[inline]
    pub(super) fn list(self, tables: &[u32], first: u32, lane: u32) -> List<'_> {
        match self.part(first, lane) {
            (GroupRange::Run { start }, len) => List { table: &[], start, len },
            (GroupRange::Table { at }, len) => {
                List { table: &tables[at as usize..][..len as usize], start: 0, len }
            }
        }
    }

    /// The lengths of the lists of its lanes together, if these begin at `first`.
    pub(super) fn listed(self, first: u32) -> u64 {
        let (lanes, len) = (u64::from(self.end - first), u64::from(self.len));
        let cut = if self.rule == GroupRule::All { 0 } else { lanes * (lanes - 1) / 2 };
        (lanes * len).saturating_sub(cut)
    }

    /// Its numbers in the tables; none if they are neighbours. A range that leaves the tables is cut.
    pub(in crate::plan) fn table(self, tables: &[u32]) -> &[u32] {
        match self.range {
            GroupRange::Run { .. } => &[],
            GroupRange::Table { at } => table(tables, at, self.len),
        }
    }

    /// Whether two groups are equal wherever their tables lie.
    pub(super) fn matches(self, tables: &[u32], other: Self) -> bool {
        let same = match (self.range, other.range) {
            (GroupRange::Table { .. }, GroupRange::Table { .. }) => self.table(tables) == other.table(tables),
            (one, two) => one == two,
        };
        same && (self.end, self.len, self.rule) == (other.end, other.len, other.rule)
    }
}

impl GroupRange {
    /// The range of the numbers at the end of the tables. Neighbours leave the tables.
    pub fn of_last(tables: &mut Vec<u32>, first: usize) -> Self {
        let numbers = &tables[first..];
        let start = numbers.first().copied().unwrap_or(0);
        if numbers.iter().zip(u64::from(start)..).all(|(&number, expected)| u64::from(number) == expected) {
            tables.truncate(first);
            return Self::Run { start };
        }
        Self::Table { at: first as u32 }
    }
}
