//! One part of a problem, with jobs and types renumbered from 0 and linked in both directions, as searches need it.
//!
//! Local numbers keep the global order. Operands are therefore earlier jobs, and ties by local number are ties by job number.
//! Operands outside the part belong to earlier parts, which are finished, so they are left out. An alone job has no type in the
//! part (its type number is [`Part::types`]`.len()`). It runs as soon as it is ready: it costs one batch in any position and can
//! only make other jobs ready.

use super::Problem;
use super::operand_lists::JobOperand;
use super::parts::{NONE, Parts};
use super::problem::lists;
use crate::ids::{ComponentId, Id, JobId, LocalJob, LocalType, TypeIndex};
use crate::lists::ensure_len;
use bytemuck::TransparentWrapper;

/// Largest number of types of a part with exact source counters; see [`Part::track`].
pub(super) const MAX_TRACKED_TYPES: usize = 64;

/// Largest number of counters of one part (4 bytes each).
const MAX_COUNTERS: usize = 1 << 26;

/// Instead of the local number of a job outside the part.
const OUTSIDE: LocalJob = LocalJob(NONE);

/// A renumbered part.
#[derive(Default)]
pub(super) struct Part {
    /// Global job of every local job, ascending.
    pub(super) jobs: Vec<JobId>,
    /// Global type of every local type, ascending.
    pub(super) types: Vec<TypeIndex>,
    /// Local type of every job. `types.len()` marks an alone job.
    pub(super) ty: Vec<LocalType>,
    /// Number of jobs of every local type.
    pub(super) population: Vec<u32>,
    /// Number of alone jobs.
    pub(super) alone: u32,
    pub(super) operand_start: Vec<u32>,
    pub(super) operands: Vec<LocalJob>,
    /// Operands equal to their predecessor in the list of a consumer, with that consumer. The `h` and `c` of one cell are one
    /// edge of the part; the cost of a search counts this second occurrence as well.
    repeats: Vec<(LocalJob, LocalJob)>,
    /// The operands of one job, with the items of lists.
    written_out: Vec<JobId>,
    /// Type and first consumer of every job, and one final entry that ends the last list.
    links: Vec<Link>,
    consumers: Vec<LocalJob>,
    /// Counter of every tracked local type, or [`NONE`].
    pub(super) slot_of: Vec<u32>,
    /// Number of tracked types.
    pub(super) slots: usize,
    /// Types by population, if not all are tracked.
    most_populous: Vec<LocalType>,
}

/// The data of a job that a step reads. It is stored together, because on large parts every access is a cache miss.
#[derive(Clone, Copy, Default)]
struct Link {
    consumers: u32,
    ty: LocalType,
}

/// Maps from global to local numbers, reused between parts.
#[derive(Default)]
pub(super) struct Renumbering {
    /// The local number of every job, or [`OUTSIDE`] the part.
    job: Vec<LocalJob>,
    ty: Vec<LocalType>,
}

impl Part {
    /// Number of jobs.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The jobs, ascending.
    pub(super) fn ids(&self) -> impl DoubleEndedIterator<Item = LocalJob> + ExactSizeIterator + use<> {
        (0..self.jobs.len() as u32).map(LocalJob)
    }

    /// The types, ascending.
    pub(super) fn type_ids(&self) -> impl ExactSizeIterator<Item = LocalType> + use<> {
        (0..self.types.len() as u32).map(LocalType)
    }

    /// Number of operand occurrences inside the part.
    pub(super) fn edges(&self) -> usize {
        self.operands.len() + self.repeats.len()
    }

    /// Counts for each job how often it is an operand.
    pub(super) fn uses(&self, uses: &mut Vec<u32>) {
        uses.clear();
        uses.extend(self.ids().map(|job| self.consumers(job).len() as u32));
        self.repeats.iter().for_each(|&(operand, _)| uses[operand.index()] += 1);
    }

    #[inline]
    pub(super) fn operands(&self, job: LocalJob) -> &[LocalJob] {
        let job = job.index();
        &self.operands[self.operand_start[job] as usize..self.operand_start[job + 1] as usize]
    }

    #[inline]
    pub(super) fn consumers(&self, job: LocalJob) -> &[LocalJob] {
        let job = job.index();
        &self.consumers[self.links[job].consumers as usize..self.links[job + 1].consumers as usize]
    }

    /// The type of a linked job, equal to `ty[job]`.
    #[inline]
    pub(super) fn linked_ty(&self, job: LocalJob) -> LocalType {
        self.links[job.index()].ty
    }

    /// Extracts the part `number`, whose global jobs are in `self.jobs`, ascending. Does not link consumers.
    pub(super) fn extract(
        &mut self,
        problem: &Problem<'_>,
        parts: &Parts,
        number: ComponentId,
        renumbering: &mut Renumbering,
    ) {
        let kinds = parts.kinds(problem);
        renumbering.job.resize(problem.len().max(renumbering.job.len()), OUTSIDE);
        renumbering.ty.resize(parts.kind_count().max(renumbering.ty.len()), LocalType(NONE));
        self.types.clear();
        let members = parts.members(number);
        self.types.extend(members.iter().filter_map(|&kind| Parts::type_of_kind(problem, kind)));
        let alone = LocalType(self.types.len() as u32);
        members.iter().for_each(|kind| renumbering.ty[kind.to_index()] = alone);
        for (local, ty) in self.type_ids().zip(&self.types) {
            renumbering.ty[ty.index()] = local;
        }
        let Self { jobs, ty, operand_start, operands, repeats, written_out, .. } = self;
        repeats.clear();
        // All other entries are written before they are read.
        ty.resize(jobs.len(), LocalType(0));
        operand_start.resize(jobs.len() + 1, 0);
        let mut end = 0;
        for (local, (&job, (ty, start))) in
            (0..).map(LocalJob).zip(jobs.iter().zip(ty.iter_mut().zip(&mut *operand_start)))
        {
            renumbering.job[job.index()] = local;
            *ty = renumbering.ty[kinds[job.index()].to_index()];
            *start = end as u32;
            let named = problem.named_operands(job);
            // Without names of lists, the operands are jobs as they stand.
            let all = if !problem.lists().is_empty() && named.iter().any(|named| named.named().is_err()) {
                written_out.clear();
                written_out.extend(problem.operands(job));
                written_out.as_slice()
            } else {
                JobOperand::peel_slice(named)
            };
            ensure_len(operands, end + all.len());
            let mut last = OUTSIDE;
            for &operand in all {
                let operand = renumbering.job[operand.index()];
                let is_inside = operand != OUTSIDE;
                if is_inside && operand == last {
                    repeats.push((operand, local));
                    continue;
                }
                // The write has no branch: whether an operand is inside is close to random, so a branch would be slow.
                operands[end] = operand;
                end += usize::from(is_inside);
                last = operand;
            }
        }
        operand_start[jobs.len()] = end as u32;
        operands.truncate(end);
        jobs.iter().for_each(|&job| renumbering.job[job.index()] = OUTSIDE);
        self.count();
    }

    /// Extracts the whole problem as one part. Does not link consumers.
    pub(super) fn whole(&mut self, problem: &Problem<'_>) {
        self.jobs.clear();
        self.jobs.extend(problem.jobs());
        self.types.clear();
        self.types.extend((0..problem.types()).map(TypeIndex));
        // The whole problem has the same numbers as its only part.
        self.ty.clear();
        self.ty.extend(problem.ty().iter().map(|ty| LocalType(ty.0)));
        for &job in problem.alone() {
            self.ty[job.index()] = LocalType(problem.types());
        }
        self.operands.clear();
        self.repeats.clear();
        self.operand_start.clear();
        self.operand_start.push(0);
        for job in problem.jobs() {
            self.operands.extend(problem.operands(job).map(|operand| LocalJob(operand.0)));
            self.operand_start.push(self.operands.len() as u32);
        }
        self.count();
    }

    /// Builds the mirror image of `of`: job v becomes len - 1 - v, and operands become consumers. A sequence of types that
    /// schedules the mirror image schedules the original in reverse.
    pub(super) fn mirror(&mut self, of: &Self) {
        let mirrored = |job: LocalJob| LocalJob(of.len() as u32 - 1 - job.0);
        self.jobs.clear();
        self.jobs.extend(of.jobs.iter().rev());
        self.types.clone_from(&of.types);
        self.ty.clear();
        self.ty.extend(of.ty.iter().rev());
        self.operands.clear();
        self.operand_start.clear();
        self.operand_start.push(0);
        for job in of.ids().rev() {
            self.operands.extend(of.consumers(job).iter().map(|&consumer| mirrored(consumer)));
            self.operand_start.push(self.operands.len() as u32);
        }
        self.repeats.clear();
        let repeats = of.repeats.iter().map(|&(operand, consumer)| (mirrored(consumer), mirrored(operand)));
        self.repeats.extend(repeats);
        self.count();
        self.link();
        self.slot_of.clone_from(&of.slot_of);
        self.slots = of.slots;
    }

    fn count(&mut self) {
        self.population.clear();
        self.population.resize(self.types.len() + 1, 0);
        let population = self.population.as_mut_slice();
        self.ty.iter().for_each(|&ty| population[ty.index()] += 1);
        self.alone = self.population.pop().unwrap_or(0);
        self.slots = 0;
        self.slot_of.clear();
        self.slot_of.resize(self.types.len(), NONE);
    }

    /// Fills the consumer lists, ascending. A consumer occurs as often as it has the operand.
    pub(super) fn link(&mut self) {
        let Self { links, consumers, operands, operand_start, ty, .. } = self;
        links.clear();
        links.resize(ty.len() + 2, Link::default());
        for operand in &*operands {
            links[operand.index() + 2].consumers += 1;
        }
        for at in 2..links.len() {
            links[at].consumers += links[at - 1].consumers;
        }
        // Every entry is written.
        consumers.resize(operands.len(), LocalJob(0));
        let (links, consumers) = (links.as_mut_slice(), consumers.as_mut_slice());
        for (job, (&ty, operands)) in (0..).map(LocalJob).zip(ty.iter().zip(lists(operand_start, operands))) {
            links[job.index()].ty = ty;
            for operand in operands {
                let at = &mut links[operand.index() + 1].consumers;
                consumers[*at as usize] = job;
                *at += 1;
            }
        }
        self.links.pop();
    }

    /// Chooses the types with exact source counts: all if possible, else the most populous (ties by number), within
    /// [`MAX_TRACKED_TYPES`] and the memory limit. An untracked type counts every unfinished job as a source. That can only lower
    /// its ratio, so at a ratio of 1 it is still safe to run.
    pub(super) fn track(&mut self) {
        let room = (MAX_COUNTERS / self.len().max(1)).saturating_sub(1);
        self.slots = self.types.len().min(MAX_TRACKED_TYPES).min(room);
        self.slot_of.clear();
        if self.slots == self.types.len() {
            self.slot_of.extend(0..self.slots as u32);
            return;
        }
        self.slot_of.resize(self.types.len(), NONE);
        self.most_populous.clear();
        self.most_populous.extend((0..self.types.len() as u32).map(LocalType));
        self.most_populous.sort_unstable_by_key(|&ty| (std::cmp::Reverse(self.population[ty.index()]), ty));
        for (slot, &ty) in self.most_populous[..self.slots].iter().enumerate() {
            self.slot_of[ty.index()] = slot as u32;
        }
    }
}
