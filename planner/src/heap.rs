//! Rows over time: which are free, and which become free after a wave.
//!
//! *Needs* waves that never fall from one request to the next. *Ensures* that the rows of a request
//! are consecutive and that nothing alive in its wave holds one of them.
//!
//! Rows are given back as runs, which a wave sorts and merges into the free runs. *Cost.* A request
//! looks at up to [`LOOK`] free runs, whatever their number; a wave that ends visits the free runs
//! of the slabs in which rows end.

use std::ops::Range;

/// How many free runs are looked at for one that is long enough.
const LOOK: usize = 256;

/// No run, no wave.
const NONE: u32 = u32::MAX;

/// The rows of all slabs. Memory is kept from one use to the next.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    slabs: Vec<Slab>,
    /// Runs that end with a wave, in lists.
    ending: Vec<Ending>,
    /// Per wave the last run of its list.
    last_ending: Vec<u32>,
    /// Waves already over.
    over: u32,
    /// Slabs in which rows end, while a wave ends.
    touched: Vec<u32>,
    merged: Vec<(u32, u32)>,
}

#[derive(Debug, Default)]
struct Slab {
    /// Start and length of the free runs below `high`, ascending; no two touch. Those before `first`
    /// are used up.
    free: Vec<(u32, u32)>,
    first: usize,
    /// Runs of a wave that ends.
    given: Vec<(u32, u32)>,
    high: u32,
}

/// A run of rows that ends, and the one before it in its wave's list.
#[derive(Debug)]
struct Ending {
    slab: u32,
    start: u32,
    rows: u32,
    before: u32,
}

impl Heaps {
    /// Forgets everything but memory.
    pub(crate) fn restart(&mut self, slabs: usize, waves: usize) {
        self.slabs.resize_with(slabs, Slab::default);
        for slab in &mut self.slabs {
            slab.free.clear();
            slab.given.clear();
            (slab.first, slab.high) = (0, 0);
        }
        self.ending.clear();
        self.last_ending.clear();
        self.last_ending.resize(waves, NONE);
        self.over = 0;
    }

    /// The first of `rows` consecutive rows of a slab that nothing alive in `wave` holds.
    pub(crate) fn take(&mut self, wave: u32, slab: usize, rows: u32) -> u32 {
        while self.over < wave {
            self.end_wave();
        }
        self.slabs[slab].take(rows)
    }

    /// The rows are free once `wave` is over; never, if there is no such wave.
    #[inline(never)]
    pub(crate) fn release_after(&mut self, wave: u32, slab: usize, rows: Range<u32>) {
        let Some(last) = self.last_ending.get_mut(wave as usize) else { return };
        if rows.is_empty() {
            return;
        }
        let (slab, count) = (slab as u32, rows.end - rows.start);
        match self.ending.get_mut(*last as usize) {
            Some(run) if run.slab == slab && run.start + run.rows == rows.start => run.rows += count,
            _ => {
                let before = std::mem::replace(last, self.ending.len() as u32);
                self.ending.push(Ending { slab, start: rows.start, rows: count, before });
            }
        }
    }

    /// How many rows each slab needs.
    pub(crate) fn highs(&self) -> impl Iterator<Item = u32> {
        self.slabs.iter().map(|slab| slab.high)
    }

    fn end_wave(&mut self) {
        let mut at = self.last_ending.get(self.over as usize).copied().unwrap_or(NONE);
        self.over += 1;
        while let Some(run) = self.ending.get(at as usize) {
            let slab = &mut self.slabs[run.slab as usize];
            if slab.given.is_empty() {
                self.touched.push(run.slab);
            }
            slab.given.push((run.start, run.rows));
            at = run.before;
        }
        for slab in self.touched.drain(..) {
            self.slabs[slab as usize].merge(&mut self.merged);
        }
    }
}

impl Slab {
    fn take(&mut self, rows: u32) -> u32 {
        let free = &mut self.free[self.first..];
        if let Some(at) = free.iter().take(LOOK).position(|run| run.1 >= rows) {
            let (start, len) = free[at];
            if len > rows {
                free[at] = (start + rows, len - rows);
            } else {
                // The few runs before move up by one; those behind, which may be many, stay.
                free[..=at].rotate_right(1);
                self.first += 1;
            }
            return start;
        }
        // A free run that touches the end is extended rather than left behind.
        let start = match free.last() {
            Some(&(start, len)) if start + len == self.high => {
                self.free.pop();
                start
            }
            _ => self.high,
        };
        self.high = self.high.max(start + rows);
        if start + rows < self.high {
            self.free.push((start + rows, self.high - start - rows));
        }
        start
    }

    /// Merges the given runs into the free ones.
    fn merge(&mut self, merged: &mut Vec<(u32, u32)>) {
        self.given.sort_unstable();
        merged.clear();
        let mut old = self.free[self.first..].iter().copied().peekable();
        for run in self.given.drain(..) {
            while let Some(before) = old.next_if(|before| before.0 < run.0) {
                append(merged, before);
            }
            append(merged, run);
        }
        old.for_each(|run| append(merged, run));
        // Copied, not swapped: so every slab finds again the memory that it had.
        self.free.clear();
        self.free.extend_from_slice(merged);
        self.first = 0;
    }
}

fn append(runs: &mut Vec<(u32, u32)>, run: (u32, u32)) {
    match runs.last_mut() {
        Some(last) if last.0 + last.1 == run.0 => last.1 += run.1,
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heaps(waves: usize) -> Heaps {
        let mut heaps = Heaps::default();
        heaps.restart(1, waves);
        heaps
    }

    fn high(heaps: &Heaps) -> u32 {
        heaps.highs().sum()
    }

    #[test]
    fn rows_come_back_after_the_wave_that_reads_them_last() {
        let mut heap = heaps(4);
        assert_eq!(heap.take(0, 0, 3), 0);
        [(0, 1), (1, 2), (2, 1)]
            .into_iter()
            .for_each(|(row, wave)| heap.release_after(wave, 0, row..row + 1));
        assert_eq!(heap.take(1, 0, 2), 3, "nothing is free while wave 1 reads");
        assert_eq!(heap.take(2, 0, 1), 0);
        assert_eq!(heap.take(3, 0, 2), 1, "rows 1 and 2 have joined");
        assert_eq!(high(&heap), 5);
    }

    #[test]
    fn a_free_run_at_the_end_is_extended() {
        let mut heap = heaps(2);
        heap.take(0, 0, 2);
        [0, 1].into_iter().for_each(|row| heap.release_after(0, 0, row..row + 1));
        assert_eq!(heap.take(1, 0, 5), 0);
        assert_eq!(high(&heap), 5);
    }

    #[test]
    fn a_used_run_leaves_those_around_it_free() {
        let mut heap = heaps(2);
        heap.take(0, 0, 8);
        [0, 2, 3, 5].into_iter().for_each(|row| heap.release_after(0, 0, row..row + 1));
        let taken = [2, 1, 1].map(|rows| heap.take(1, 0, rows));
        assert_eq!(taken, [2, 0, 5], "the first run that is long enough");
        assert_eq!(heap.take(1, 0, 1), 8);
    }

    #[test]
    fn heaps_that_restart_remember_nothing() {
        let mut heap = heaps(2);
        heap.take(0, 0, 2);
        heap.release_after(0, 0, 1..2);
        heap.restart(2, 2);
        assert_eq!([heap.take(1, 0, 1), heap.take(1, 1, 1)], [0, 0]);
    }
}
