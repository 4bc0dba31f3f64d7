//! Runs of rows: the operands of sums over rows.

use super::error::{KernelError, reaches};
use super::rows::Rows;

/// Rows of some lanes, all read in the same way.
#[derive(Clone, Copy, Debug)]
pub struct RowsRun<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// The number of lanes.
    pub count: usize,
}

/// A position in a sequence of runs.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    runs: &'a [RowsRun<'a>],
    lane: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(runs: &'a [RowsRun<'a>]) -> Self {
        Cursor { runs, lane: 0 }
    }

    /// Advances by `rows` rows, or to the end.
    pub(super) fn skip(&mut self, mut rows: usize) {
        while let Some(run) = self.runs.first() {
            let left = run.count - self.lane;
            if rows < left {
                self.lane += rows;
                return;
            }
            rows -= left;
            self.runs = &self.runs[1..];
            self.lane = 0;
        }
    }

    /// Returns whether no row is left. Advances to the run of the next row.
    #[inline(always)]
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip(0);
        self.runs.is_empty()
    }

    /// The next row.
    ///
    /// # Safety
    /// A row is left, and tables have entries for all lanes of their runs.
    #[inline(always)]
    pub(super) unsafe fn next(&mut self) -> *const f32 {
        // SAFETY: a row is left, so a run with another lane follows before the runs end.
        unsafe {
            while self.lane == self.runs.get_unchecked(0).count {
                self.runs = self.runs.get_unchecked(1..);
                self.lane = 0;
            }
            let row = self.runs.get_unchecked(0).rows.row(self.lane);
            self.lane += 1;
            row
        }
    }
}

/// Counts the rows of the runs and checks that all are at least `width` wide.
pub(super) fn check_runs(
    what: &'static str,
    runs: &[RowsRun<'_>],
    width: usize,
) -> Result<usize, KernelError> {
    let mut count = Some(0usize);
    for run in runs {
        run.rows.check(what, &(0..run.count), width)?;
        count = count.and_then(|count| count.checked_add(run.count));
    }
    reaches(what, count, usize::MAX)?;
    Ok(count.unwrap_or(usize::MAX))
}
