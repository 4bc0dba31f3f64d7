//! The working memory of policies.

use super::batches::{Batches, Spare};
use super::front::{Fired, Front};
use super::part::{Part, Renumbering};
use super::parts::{NONE, Parts};
use super::problem::Problem;
use crate::ids::{ComponentId, Id, JobId, KindId, LocalType};
use crate::lists::group;
use std::any::{Any, TypeId};
use std::collections::HashMap;

/// Largest number of mutually dependent types in a searched part.
pub(super) const MAX_SEARCHED_TYPES: usize = 1024;

/// Buffers of all policies. With one scratch, a second problem of the same size allocates only its result, and nothing if the
/// first result was [recycled](Scratch::recycle).
#[derive(Default)]
pub struct Scratch {
    pub(super) parts: Parts,
    pub(super) part: Part,
    pub(super) renumbering: Renumbering,
    pub(super) hard: HardJobs,
    pub(super) tools: Tools,
    pub(super) per_type: Vec<u32>,
    pub(super) batch_of: Vec<u32>,
    pub(super) base: Vec<u32>,
    pub(super) keys: Vec<u32>,
    pub(super) counts: Vec<u32>,
    pub(super) spare: Spare,
    /// The memory of single policies, by its type.
    own: HashMap<TypeId, Box<dyn Any + Send>>,
}

/// The step of every job of a part.
#[derive(Default)]
pub(super) struct Steps {
    pub(super) of: Vec<u32>,
    /// Number of steps. Each runs one type, or one alone job.
    pub(super) count: u32,
    /// Number of steps of every type.
    pub(super) of_type: Vec<u32>,
}

impl Steps {
    pub(super) fn reset(&mut self, part: &Part) {
        self.of.clear();
        self.of.resize(part.len(), NONE);
        self.count = 0;
        self.of_type.clear();
        self.of_type.resize(part.types.len(), 0);
    }

    /// Appends a step of a type, and one step for each alone job after it.
    pub(super) fn push_type(&mut self, ty: LocalType, fired: &Fired) {
        self.of_type[ty.index()] += 1;
        self.push(fired);
    }

    /// Appends a step for the batch in `fired`, if any, and one step for each alone job after it.
    pub(super) fn push(&mut self, fired: &Fired) {
        for &job in &fired.batch {
            self.of[job.index()] = self.count;
        }
        self.count += u32::from(!fired.batch.is_empty());
        for &job in &fired.alone {
            self.of[job.index()] = self.count;
            self.count += 1;
        }
    }
}

/// The working memory of a search.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) front: Front,
    pub(super) fired: Fired,
    pub(super) lanes: Vec<i32>,
    pub(super) longest: Vec<u32>,
    pub(super) mirror: Part,
    /// The result of the search.
    pub(super) steps: Steps,
    /// The path-sum bound of the part, alone jobs included.
    pub(super) bound: u32,
}

/// Jobs of the hard parts, grouped by part, ascending.
#[derive(Default)]
pub(super) struct HardJobs {
    start: Vec<u32>,
    items: Vec<JobId>,
    /// Part of every kind that belongs to a hard part, else [`NONE`].
    part_of: Vec<u32>,
}

impl HardJobs {
    pub(super) fn jobs(&self, part: ComponentId) -> &[JobId] {
        let part = part.index();
        &self.items[self.start[part] as usize..self.start[part + 1] as usize]
    }

    /// Collects the jobs of the only hard part, without branches: the order of kinds is not predictable.
    fn pick(&mut self, kinds: &[KindId], only: ComponentId) {
        let Self { start, items, part_of } = self;
        // At least as long as the result.
        items.resize(kinds.len(), JobId(0));
        let mut end = 0;
        for (job, &kind) in (0..).map(JobId).zip(kinds) {
            items[end] = job;
            end += usize::from(part_of[kind.to_index()] != NONE);
        }
        start[only.index() + 1..].fill(end as u32);
    }

    /// Collects the jobs of several hard parts.
    fn sort(&mut self, kinds: &[KindId], parts: usize) {
        let Self { start, items, part_of } = self;
        let all = kinds.iter().zip((0..).map(JobId)).map(|(&kind, job)| (part_of[kind.to_index()], job));
        let hard = all.filter(|&(part, _)| part != NONE).map(|(part, job)| (part as usize, job));
        group(parts, hard, start, items);
    }
}

impl Scratch {
    /// Takes the memory of this type that a policy [put](Self::put) here after the problem before, or new memory.
    #[must_use]
    pub fn take<T: Default + Send + 'static>(&mut self) -> Box<T> {
        let known =
            self.own.remove(&TypeId::of::<T>()).and_then(|memory| (memory as Box<dyn Any>).downcast().ok());
        known.unwrap_or_default()
    }

    /// Keeps memory for the next problem.
    pub fn put<T: Send + 'static>(&mut self, memory: Box<T>) {
        self.own.insert(TypeId::of::<T>(), memory);
    }

    /// Recycles batches: the next problem reuses their memory.
    pub fn recycle(&mut self, batches: Batches) {
        self.spare = Spare { start: batches.start, items: batches.items };
    }

    /// Groups the jobs of hard parts. Needs the analysis of `problem`.
    pub(super) fn group_hard_jobs(&mut self, problem: &Problem<'_>) {
        let Self { parts, hard, .. } = self;
        hard.start.clear();
        hard.start.resize(parts.len() + 1, 0);
        let kinds = parts.kinds(problem);
        hard.part_of.clear();
        hard.part_of.resize(parts.kind_count(), NONE);
        let (mut parts_found, mut only) = (0, ComponentId(0));
        for part in parts.ids().filter(|&part| parts.members(part).len() > 1) {
            parts.members(part).iter().for_each(|&kind| hard.part_of[kind.to_index()] = part.0);
            (parts_found, only) = (parts_found + 1, part);
        }
        match parts_found {
            0 => {}
            1 => hard.pick(kinds, only),
            _ => hard.sort(kinds, parts.len()),
        }
    }
}
