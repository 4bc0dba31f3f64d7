//! Runs of numbers: `0 2 5..8 10..20 by 2 7 x3`.
//!
//! Tables and lanes are mostly regular lists of numbers. `5..8` is 5 6 7, `10..20 by 2` is 10 12 14 16 18, `7 x3` is 7 7 7.
//! To bound the memory of a reader, numbers that are not spelled count against an [`allowance`]. A writer cuts runs to stay
//! within it.

/// How many numbers a text of this size may leave unspelled.
pub(super) const fn allowance(bytes: usize) -> usize {
    (1 << 16) + bytes / 4
}

/// The maximal length of runs, for each attempt of a writer.
pub(super) const REACHES: [usize; 3] = [usize::MAX, 4, 1];

/// Equally spaced numbers: `start + i * stride` for `i` below `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberRun {
    pub(super) start: u32,
    pub(super) stride: u32,
    pub(super) count: usize,
}

impl NumberRun {
    const fn one(start: u32) -> Self {
        Self { start, stride: 1, count: 1 }
    }

    /// One past the last number, in steps.
    pub(super) const fn end(self) -> u64 {
        self.start as u64 + self.stride as u64 * self.count as u64
    }
}

/// The numbers as runs of at most `reach`: three or more consecutive numbers, or four or more equal or equally spaced ones.
pub(super) fn runs(numbers: &[u32], reach: usize) -> impl Iterator<Item = NumberRun> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = numbers.get(at..).filter(|rest| !rest.is_empty())?;
        let start = rest[0];
        let stride = rest.get(1).and_then(|second| second.checked_sub(start));
        let run = stride.map_or(NumberRun::one(start), |stride| {
            let steady = rest.windows(2).take_while(|pair| pair[1].checked_sub(pair[0]) == Some(stride));
            NumberRun { start, stride, count: steady.take(reach.saturating_sub(1)).count() + 1 }
        });
        let least = if run.stride == 1 { 3 } else { 4 };
        let run = if run.count >= least { run } else { NumberRun::one(start) };
        at += run.count;
        Some(run)
    })
}
