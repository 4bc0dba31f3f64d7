//! Sets of numbers as disjoint runs: what rows were written, which elements of a register are set.
//!
//! Runs that touch are one run, so a set costs memory by its gaps, not by its numbers.

use std::collections::BTreeMap;

/// A set of numbers below 2^32.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    /// Start and end of each run, the end excluded.
    runs: BTreeMap<u64, u64>,
}

impl Spans {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// How many numbers are in the set.
    pub(super) fn len(&self) -> u64 {
        self.runs.iter().map(|(start, end)| end - start).sum()
    }

    /// The first number of `start..end` that is missing.
    pub(super) fn first_missing(&self, start: u64, end: u64) -> Option<u64> {
        match self.runs.range(..=start).next_back() {
            Some((_, &until)) if until > start => (until < end).then_some(until),
            _ => (start < end).then_some(start),
        }
    }

    /// The first number of `start..end` that is in the set.
    pub(super) fn first_present(&self, start: u64, end: u64) -> Option<u64> {
        if start >= end {
            return None;
        }
        match self.runs.range(..=start).next_back() {
            Some((_, &until)) if until > start => Some(start),
            _ => self.runs.range(start..end).next().map(|(&from, _)| from),
        }
    }

    /// Adds `start..end`, whatever of it is there already.
    pub(super) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut from, mut until) = (start, end);
        if let Some((&before, &before_end)) = self.runs.range(..=start).next_back()
            && before_end >= start
        {
            (from, until) = (before, until.max(before_end));
        }
        while let Some((&next, &next_end)) = self.runs.range(from..=until).next() {
            self.runs.remove(&next);
            until = until.max(next_end);
        }
        self.runs.insert(from, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_touch_become_one_and_gaps_are_found() {
        let mut spans = Spans::default();
        spans.insert(4, 6);
        spans.insert(0, 2);
        assert_eq!(spans.first_missing(0, 6), Some(2));
        assert_eq!(spans.first_present(2, 9), Some(4));
        assert_eq!(spans.first_present(2, 4), None);
        spans.insert(1, 5);
        assert_eq!((spans.first_missing(0, 6), spans.len(), spans.runs.len()), (None, 6, 1));
        spans.insert(6, 7);
        assert_eq!((spans.first_missing(3, 8), spans.len(), spans.runs.len()), (Some(7), 7, 1));
    }
}
