//! The ready jobs of a part, by type.
//!
//! A type never has more ready jobs than its population. Each type therefore owns a fixed section of one block of memory, and a
//! second part of the same size allocates nothing.

use super::part::Part;
use crate::ids::{LocalJob, LocalType};

/// Ready jobs of every type, in no particular order.
#[derive(Default)]
pub(super) struct Ready {
    /// Where the ready jobs of each type begin and end.
    spans: Vec<(u32, u32)>,
    jobs: Vec<LocalJob>,
}

impl Ready {
    /// Starts a part without ready jobs.
    pub(super) fn reset(&mut self, part: &Part) {
        self.spans.clear();
        let mut start = 0;
        for &population in &part.population {
            self.spans.push((start, start));
            start += population;
        }
        // Entries are written before they are read.
        self.jobs.resize(start as usize, LocalJob(0));
    }

    /// All types, ascending.
    pub(super) fn types(&self) -> impl ExactSizeIterator<Item = LocalType> + use<> {
        (0..self.spans.len() as u32).map(LocalType)
    }

    /// The ready jobs of a type.
    #[inline]
    pub(super) fn of(&self, ty: LocalType) -> &[LocalJob] {
        let (from, to) = self.spans[ty.index()];
        &self.jobs[from as usize..to as usize]
    }

    /// Number of ready jobs of a type.
    #[inline]
    pub(super) fn count(&self, ty: LocalType) -> u32 {
        let (from, to) = self.spans[ty.index()];
        to - from
    }

    /// Adds a job of a type. Returns false for the type number of alone jobs.
    #[inline]
    pub(super) fn push(&mut self, ty: LocalType, job: LocalJob) -> bool {
        let Some((_, end)) = self.spans.get_mut(ty.index()) else { return false };
        self.jobs[*end as usize] = job;
        *end += 1;
        true
    }

    /// Moves the ready jobs of a type to `batch`.
    pub(super) fn take(&mut self, ty: LocalType, batch: &mut Vec<LocalJob>) {
        batch.clear();
        batch.extend_from_slice(self.of(ty));
        let (from, to) = &mut self.spans[ty.index()];
        *from = *to;
    }

    /// Copies another state into the memory of this one.
    pub(super) fn copy(&mut self, other: &Self) {
        self.spans.clone_from(&other.spans);
        self.jobs.resize(other.jobs.len(), LocalJob(0));
        for &(from, to) in &other.spans {
            let ready = from as usize..to as usize;
            self.jobs[ready.clone()].copy_from_slice(&other.jobs[ready]);
        }
    }
}
