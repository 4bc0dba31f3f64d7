//! Sets of numbers as disjoint runs: written rows, or written elements of a register.
//!
//! Runs that touch are merged, so the memory of a set depends on its gaps. Rows are mostly written block after block. So most
//! sets have a few runs, which a list holds. A set with more runs, as a hostile file may require, uses a tree, which is fast
//! for every order of insertions.

use std::collections::BTreeMap;

/// The most runs that a list holds.
const FEW: usize = 32;

/// A set of numbers below 2^32.
#[derive(Clone, Debug)]
pub(super) enum Spans {
    /// The half-open runs, ascending.
    Few(Vec<(u64, u64)>),
    /// The same, by start.
    Many(BTreeMap<u64, u64>),
}

impl Default for Spans {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Spans {
    /// Empties the set.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Few(runs) => runs.clear(),
            Self::Many(_) => *self = Self::default(),
        }
    }

    /// How many numbers are in the set.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Few(runs) => runs.iter().map(|(start, end)| end - start).sum(),
            Self::Many(runs) => runs.iter().map(|(start, end)| end - start).sum(),
        }
    }

    /// The first number of `start..end` that is missing.
    pub(super) fn first_missing(&self, start: u64, end: u64) -> Option<u64> {
        match self.run_before(start) {
            Some((_, until)) if until > start => (until < end).then_some(until),
            _ => (start < end).then_some(start),
        }
    }

    /// The first number of `start..end` that is in the set.
    pub(super) fn first_present(&self, start: u64, end: u64) -> Option<u64> {
        if start >= end {
            return None;
        }
        if self.run_before(start).is_some_and(|(_, until)| until > start) {
            return Some(start);
        }
        match self {
            Self::Few(runs) => runs.iter().map(|run| run.0).find(|from| (start..end).contains(from)),
            Self::Many(runs) => runs.range(start..end).next().map(|(&from, _)| from),
        }
    }

    /// The last run that begins at `start` or before.
    fn run_before(&self, start: u64) -> Option<(u64, u64)> {
        match self {
            Self::Few(runs) => runs.iter().copied().rfind(|run| run.0 <= start),
            Self::Many(runs) => runs.range(..=start).next_back().map(|(&from, &until)| (from, until)),
        }
    }

    /// Adds `start..end`, which may overlap the set.
    pub(super) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        match self {
            Self::Few(runs) => {
                insert_into_list(runs, start, end);
                if runs.len() > FEW {
                    *self = Self::Many(runs.drain(..).collect());
                }
            }
            Self::Many(runs) => insert_into_tree(runs, start, end),
        }
    }
}

fn insert_into_list(runs: &mut Vec<(u64, u64)>, start: u64, end: u64) {
    // The runs from `first` up to `after` touch the new run.
    let first = runs.iter().rposition(|run| run.1 < start).map_or(0, |before| before + 1);
    let after = runs[first..].iter().position(|run| run.0 > end).map_or(runs.len(), |more| first + more);
    match &mut runs[first..after] {
        [] => runs.insert(first, (start, end)),
        [run] => *run = (run.0.min(start), run.1.max(end)),
        [run, .., last] => {
            *run = (run.0.min(start), last.1.max(end));
            runs.drain(first + 1..after);
        }
    }
}

fn insert_into_tree(runs: &mut BTreeMap<u64, u64>, start: u64, end: u64) {
    let (mut from, mut until) = (start, end);
    if let Some((&before, &before_end)) = runs.range(..=start).next_back()
        && before_end >= start
    {
        (from, until) = (before, until.max(before_end));
    }
    while let Some((&next, &next_end)) = runs.range(from..=until).next() {
        runs.remove(&next);
        until = until.max(next_end);
    }
    runs.insert(from, until);
}

#[cfg(test)]
#[path = "tests/spans.rs"]
mod tests;
