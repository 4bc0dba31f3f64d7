//! Row allocation over time: which rows are free, and which become free after a wave.
//!
//! *Needs* requests with ascending waves. *Ensures* that the rows of a request are consecutive and that no live value of its wave
//! holds one of them.
//!
//! Rows become free in runs. The end of a wave sorts its runs and merges them into the free runs. *Cost.* A request visits at most
//! [`MAX_VISITED`] free runs. The end of a wave visits the free runs of the slabs in which rows become free.

#[cfg(test)]
mod tests;

use crate::ids::WaveId;
use crate::index_vec::IndexVec;
use autobatch_ir::plan::SlabId;
use std::ops::Range;

/// How many free runs a request visits to find one that is long enough.
const MAX_VISITED: usize = 256;

/// No run.
const NONE: u32 = u32::MAX;

/// The rows of all slabs.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    slabs: IndexVec<SlabId, Slab>,
    /// Runs that become free after a wave, as linked lists.
    ending: Vec<Ending>,
    /// Per wave the last run of its list.
    last_ending: IndexVec<WaveId, u32>,
    /// How many waves have ended.
    ended: u32,
    /// Slabs in which rows become free with the current wave.
    changed: Vec<SlabId>,
    merged: Vec<(u32, u32)>,
}

#[derive(Debug, Default)]
struct Slab {
    /// Start and length of the free runs below `high`, ascending and not adjacent. The runs before `first` are used up.
    free: Vec<(u32, u32)>,
    first: usize,
    /// Runs that become free with the current wave.
    freed: Vec<(u32, u32)>,
    high: u32,
}

/// A run of rows that becomes free, with the one before it in the list of its wave.
#[derive(Debug)]
struct Ending {
    slab: SlabId,
    start: u32,
    rows: u32,
    before: u32,
}

impl Heaps {
    /// Starts again, without rows.
    pub(crate) fn restart(&mut self, slabs: usize, waves: usize) {
        self.slabs.resize_with(slabs, Slab::default);
        for slab in self.slabs.iter_mut() {
            slab.free.clear();
            slab.freed.clear();
            (slab.first, slab.high) = (0, 0);
        }
        self.ending.clear();
        self.last_ending.refill(waves, NONE);
        self.ended = 0;
    }

    /// Takes `rows` consecutive rows of a slab that no live value of `wave` holds. Returns the first.
    pub(crate) fn take(&mut self, wave: WaveId, slab: SlabId, rows: u32) -> u32 {
        while self.ended < wave.0 {
            self.end_wave();
        }
        self.slabs[slab].take(rows)
    }

    /// Frees rows at the end of `wave`; never, if there is no such wave.
    #[inline(never)]
    pub(crate) fn release_after(&mut self, wave: WaveId, slab: SlabId, rows: Range<u32>) {
        let Some(last) = self.last_ending.get_mut(wave) else { return };
        if rows.is_empty() {
            return;
        }
        let count = rows.end - rows.start;
        match self.ending.get_mut(*last as usize) {
            Some(run) if run.slab == slab && run.start + run.rows == rows.start => run.rows += count,
            _ => {
                let before = std::mem::replace(last, self.ending.len() as u32);
                self.ending.push(Ending { slab, start: rows.start, rows: count, before });
            }
        }
    }

    /// The number of rows of each slab.
    pub(crate) fn highs(&self) -> impl Iterator<Item = u32> {
        self.slabs.iter().map(|slab| slab.high)
    }

    fn end_wave(&mut self) {
        let mut at = self.last_ending.get(WaveId(self.ended)).copied().unwrap_or(NONE);
        self.ended += 1;
        while let Some(run) = self.ending.get(at as usize) {
            let slab = &mut self.slabs[run.slab];
            if slab.freed.is_empty() {
                self.changed.push(run.slab);
            }
            slab.freed.push((run.start, run.rows));
            at = run.before;
        }
        for slab in self.changed.drain(..) {
            self.slabs[slab].merge(&mut self.merged);
        }
    }
}

impl Slab {
    fn take(&mut self, rows: u32) -> u32 {
        let free = &mut self.free[self.first..];
        if let Some(at) = free.iter().take(MAX_VISITED).position(|run| run.1 >= rows) {
            let (start, len) = free[at];
            if len > rows {
                free[at] = (start + rows, len - rows);
            } else {
                // The few runs before it move up by one; the many behind it stay.
                free[..=at].rotate_right(1);
                self.first += 1;
            }
            return start;
        }
        // A free run at the end of the slab grows instead of staying a gap.
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

    /// Merges the freed runs into the free ones.
    fn merge(&mut self, merged: &mut Vec<(u32, u32)>) {
        self.freed.sort_unstable();
        merged.clear();
        let mut old = self.free[self.first..].iter().copied().peekable();
        for run in self.freed.drain(..) {
            while let Some(before) = old.next_if(|before| before.0 < run.0) {
                append(merged, before);
            }
            append(merged, run);
        }
        old.for_each(|run| append(merged, run));
        // A copy, not a swap, so that every slab keeps its own memory from plan to plan.
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
