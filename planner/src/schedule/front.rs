//! The front of a run over a part: the ready jobs, and the number of sources of each type.
//!
//! A step runs all ready jobs of a type; running only some of them never lowers the number of batches. For every type t the front
//! knows
//! * `ready[t]`: the ready jobs, `|Frontier_t(G)|` of them;
//! * `sources[t]` = `|Frontier(G^t)|`: the unfinished t-jobs without an unfinished t-job above them.
//!
//! **How sources are counted without the graph G^t.** A job is *t-clean* if neither it (as a t-job) nor any job above it is an
//! unfinished t-job. Finished jobs are closed under operands, so a t-job is a source iff all its operands are t-clean. For every
//! job and tracked type the front counts the operands that are not t-clean. At zero, a t-job becomes a source, and any other job
//! becomes t-clean and updates its consumers. A job is t-clean for every other type before it runs, so a t-job only has to update
//! the counts of t. Each pair (operand edge, type) is counted down once per run: O(edges x tracked types).
//! Typed depths would be cheaper and wrong: jobs of equal typed depth may become sources at different times.

use super::part::Part;
use super::parts::NONE;
use super::ready::Ready;
use crate::ids::{LocalJob, LocalType};

/// The state of a run over one part. Searches [copy](Front::copy) it.
#[derive(Default)]
pub(super) struct Front {
    /// Per job: unfinished operands, then for each tracked type the operands that are not clean.
    counts: Vec<u32>,
    stride: usize,
    pub(super) ready: Ready,
    /// `|Frontier(G^t)|` of every type. For an untracked type: all its unfinished jobs.
    pub(super) sources: Vec<u32>,
    /// Number of unfinished jobs, alone jobs included.
    pub(super) left: u32,
}

/// The jobs of the last step, and buffers.
#[derive(Default)]
pub(super) struct Fired {
    /// The jobs of the last batch, in no particular order.
    pub(super) batch: Vec<LocalJob>,
    /// The alone jobs that ran after it, in order.
    pub(super) alone: Vec<LocalJob>,
    /// Visited operand edges, if a search counts them.
    pub(super) visits: Visits,
    clean: Vec<LocalJob>,
    mask: Vec<u64>,
}

/// The work of a search.
#[derive(Default)]
pub(super) struct Visits {
    /// The operand edges of every job. Empty turns counting off.
    pub(super) of: Vec<u32>,
    pub(super) count: u64,
}

impl Visits {
    #[inline]
    fn add(&mut self, job: LocalJob) {
        self.count += u64::from(self.of.get(job.index()).copied().unwrap_or(0));
    }
}

impl Front {
    /// Copies another front into the memory that `self` already has.
    pub(super) fn copy(&mut self, other: &Self) {
        self.counts.clone_from(&other.counts);
        self.stride = other.stride;
        self.ready.copy(&other.ready);
        self.sources.clone_from(&other.sources);
        self.left = other.left;
    }

    /// Starts before the first job of `part`. `fired.alone` gets the alone jobs that are ready.
    pub(super) fn reset(&mut self, part: &Part, fired: &mut Fired) {
        self.stride = part.slots + 1;
        self.counts.clear();
        self.counts.resize(part.len() * self.stride, 0);
        self.ready.reset(part);
        self.sources.clone_from(&part.population);
        self.left = part.len() as u32;
        fired.alone.clear();
        fired.batch.clear();
        let Self { counts, stride, ready, sources, .. } = self;
        let mut mask = std::mem::take(&mut fired.mask);
        mask.clear();
        for (job, row) in (0..).map(LocalJob).zip(counts.chunks_exact_mut(*stride)) {
            let Some((waits, unclean)) = row.split_first_mut() else { continue };
            let (operands, ty) = (part.operands(job), part.linked_ty(job));
            *waits = operands.len() as u32;
            if operands.is_empty() {
                admit(ready, ty, job, fired);
            }
            if !unclean.is_empty() {
                let mut above = count_unclean(operands, &mask, unclean);
                let slot = part.slot_of.get(ty.index()).copied().unwrap_or(NONE);
                if slot != NONE {
                    sources[ty.index()] -= (above >> slot & 1) as u32;
                    above |= 1 << slot;
                }
                mask.push(above);
            }
        }
        fired.mask = mask;
        self.run_alone(part, fired);
    }

    /// Runs all ready jobs of a type, then the alone jobs that become ready. `fired` gets these jobs.
    pub(super) fn fire(&mut self, part: &Part, ty: LocalType, fired: &mut Fired) {
        fired.alone.clear();
        let mut batch = std::mem::take(&mut fired.batch);
        self.ready.take(ty, &mut batch);
        self.left -= batch.len() as u32;
        self.sources[ty.index()] -= batch.len() as u32;
        match part.slot_of[ty.index()] {
            NONE => self.release(part, &batch, fired),
            slot => self.pass_on(part, ty, 1 + slot as usize, &batch, fired),
        }
        fired.batch = batch;
        self.run_alone(part, fired);
    }

    /// Finishes the jobs of `batch`, of type `ty`: counts down the unfinished operands of their consumers, and transitively the
    /// operands that are not clean of `ty` (by the counter of the type).
    ///
    /// This is the hottest loop of all policies. It keeps everything in locals, because after a write through one vector the
    /// compiler loads all others again.
    fn pass_on(&mut self, part: &Part, ty: LocalType, counter: usize, batch: &[LocalJob], fired: &mut Fired) {
        let Self { counts, stride, ready, sources, .. } = self;
        let (counts, stride) = (counts.as_mut_slice(), *stride);
        let (mut clean, mut found) = (std::mem::take(&mut fired.clean), 0u32);
        for &job in batch {
            let consumers = part.consumers(job);
            fired.visits.add(job);
            for &consumer in consumers {
                let row = &mut counts[consumer.index() * stride..][..counter + 1];
                row[0] -= 1;
                row[counter] -= 1;
                let (waits, unclean) = (row[0] != 0, row[counter] != 0);
                if waits && unclean {
                    continue;
                }
                let own = part.linked_ty(consumer);
                if !waits {
                    admit(ready, own, consumer, fired);
                }
                if !unclean {
                    found += u32::from(own == ty);
                    if own != ty {
                        clean.push(consumer);
                    }
                }
            }
        }
        while let Some(job) = clean.pop() {
            let consumers = part.consumers(job);
            fired.visits.add(job);
            for &consumer in consumers {
                let count = &mut counts[consumer.index() * stride + counter];
                *count -= 1;
                if *count == 0 {
                    if part.linked_ty(consumer) == ty {
                        found += 1;
                    } else {
                        clean.push(consumer);
                    }
                }
            }
        }
        sources[ty.index()] += found;
        fired.clean = clean;
    }

    /// Finishes jobs: counts down the unfinished operands of their consumers.
    fn release(&mut self, part: &Part, done: &[LocalJob], fired: &mut Fired) {
        let Self { counts, stride, ready, .. } = self;
        let (counts, stride) = (counts.as_mut_slice(), *stride);
        for &job in done {
            let consumers = part.consumers(job);
            fired.visits.add(job);
            for &consumer in consumers {
                let waits = &mut counts[consumer.index() * stride];
                *waits -= 1;
                if *waits == 0 {
                    admit(ready, part.linked_ty(consumer), consumer, fired);
                }
            }
        }
    }

    /// Runs the ready alone jobs, and the alone jobs that become ready.
    fn run_alone(&mut self, part: &Part, fired: &mut Fired) {
        let mut at = 0;
        while at < fired.alone.len() {
            let job = fired.alone[at];
            self.left -= 1;
            self.release(part, &[job], fired);
            at += 1;
        }
    }
}

/// Makes a job ready.
#[inline]
fn admit(ready: &mut Ready, ty: LocalType, job: LocalJob, fired: &mut Fired) {
    if !ready.push(ty, job) {
        fired.alone.push(job);
    }
}

/// Counts for each tracked type the operands of a job that are not clean, from the `mask` of every earlier job. Returns the mask
/// of the job without its own type.
#[inline]
fn count_unclean(operands: &[LocalJob], mask: &[u64], counts: &mut [u32]) -> u64 {
    let mut above = 0u64;
    for &operand in operands {
        let mut bits = mask[operand.index()];
        above |= bits;
        if counts.len() <= 8 {
            counts.iter_mut().enumerate().for_each(|(slot, count)| *count += (bits >> slot & 1) as u32);
            continue;
        }
        while bits != 0 {
            counts[bits.trailing_zeros() as usize] += 1;
            bits &= bits - 1;
        }
    }
    above
}
