//! Runs a search over the hard parts of a problem and assembles the order.
//!
//! Simple parts are solved by level (see `parts`). Each hard part is renumbered, linked and given to the search, which returns
//! the step of every job. The parts follow each other in topological order, and one counting sort turns batch numbers into
//! [`Batches`]. A part with more than [`MAX_SEARCHED_TYPES`] mutually dependent types is ordered by depth: a decision costs
//! O(types), and no policy helps where signatures are that fine.

use super::batches::Spare;
use super::bound::longest_paths;
use super::depth::order_by_depth;
use super::front::{Fired, Front};
use super::part::{Part, Renumbering};
use super::parts::{NONE, Parts};
use super::{Batches, Problem, StopReason};
use crate::lists::{Counts, by_key, group};

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
    /// Names of ready types.
    pub(super) names: Vec<u64>,
    pub(super) counts: Vec<u32>,
    pub(super) depth: super::depth::Memory,
    pub(super) spare: Spare,
    pub(super) beam: super::beam::Memory,
    pub(super) agenda: super::agenda::Memory,
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
    pub(super) fn push_type(&mut self, ty: u32, fired: &Fired) {
        self.of_type[ty as usize] += 1;
        self.push(fired);
    }

    /// Appends a step for the batch in `fired`, if any, and one step for each alone job after it.
    pub(super) fn push(&mut self, fired: &Fired) {
        for &job in &fired.batch {
            self.of[job as usize] = self.count;
        }
        self.count += u32::from(!fired.batch.is_empty());
        for &job in &fired.alone {
            self.of[job as usize] = self.count;
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
    items: Vec<u32>,
    /// Part of every kind that belongs to a hard part, else [`NONE`].
    part_of: Vec<u32>,
}

impl HardJobs {
    pub(super) fn jobs(&self, part: usize) -> &[u32] {
        &self.items[self.start[part] as usize..self.start[part + 1] as usize]
    }

    /// Collects the jobs of the only hard part, without branches: the order of kinds is not predictable.
    fn pick(&mut self, kinds: &[u32], only: usize) {
        let Self { start, items, part_of } = self;
        // At least as long as the result.
        items.resize(kinds.len(), 0);
        let mut end = 0;
        for (job, &kind) in kinds.iter().enumerate() {
            items[end] = job as u32;
            end += usize::from(part_of[kind as usize] != NONE);
        }
        start[only + 1..].fill(end as u32);
    }

    /// Collects the jobs of several hard parts.
    fn sort(&mut self, kinds: &[u32], parts: usize) {
        let Self { start, items, part_of } = self;
        let all = kinds.iter().zip(0..).map(|(&kind, job)| (part_of[kind as usize], job));
        let hard = all.filter(|&(part, _)| part != NONE).map(|(part, job)| (part as usize, job));
        group(parts, hard, start, items);
    }
}

impl Scratch {
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
        let (mut parts_found, mut only) = (0, 0);
        for part in (0..parts.len()).filter(|&part| parts.members(part).len() > 1) {
            parts.members(part).iter().for_each(|&kind| hard.part_of[kind as usize] = part as u32);
            (parts_found, only) = (parts_found + 1, part);
        }
        match parts_found {
            0 => {}
            1 => hard.pick(kinds, only),
            _ => hard.sort(kinds, parts.len()),
        }
    }
}

/// Schedules `problem`. `search` fills the steps of one hard part and returns why it stopped.
pub(super) fn solve(
    problem: &Problem<'_>,
    scratch: &mut Scratch,
    mut search: impl FnMut(&Part, &mut Tools) -> StopReason,
) -> Batches {
    scratch.parts.analyse(problem);
    scratch.group_hard_jobs(problem);
    let Scratch { parts, part, renumbering, hard, tools, batch_of, base, depth, spare, .. } = scratch;
    let (mut count, mut bound, mut reason) = (0u32, problem.alone().len() as u32, StopReason::BoundMet);
    // Jobs of hard parts get their batch from the search, all others from their level.
    batch_of.resize(problem.len(), 0);
    base.clear();
    base.resize(parts.kind_count(), NONE);
    for number in 0..parts.len() {
        if let &[kind] = parts.members(number) {
            base[kind as usize] = count;
            count += parts.levels[kind as usize];
            bound += if kind < problem.types() { parts.levels[kind as usize] } else { 0 };
            continue;
        }
        part.jobs.clear();
        part.jobs.extend_from_slice(hard.jobs(number));
        part.extract(problem, parts, number, renumbering);
        longest_paths(part, &mut tools.lanes, &mut tools.longest);
        let part_bound = tools.longest.iter().sum::<u32>();
        bound += part_bound;
        let why = if part.types.len() > MAX_SEARCHED_TYPES {
            order_by_depth(part, &mut tools.steps, depth);
            StopReason::TooManyTypes { types: part.types.len() as u32 }
        } else {
            part.link();
            part.track();
            tools.bound = part_bound + part.alone;
            search(part, tools)
        };
        reason = graver(reason, why);
        for (&job, &step) in part.jobs.iter().zip(&tools.steps.of) {
            batch_of[job as usize] = count + step;
        }
        count += tools.steps.count;
    }
    let (base, Spare { mut start, mut items }) = (base.as_slice(), std::mem::take(spare));
    let mut counts = Counts::new(count as usize, &mut start);
    for ((batch, &kind), &level) in batch_of.iter_mut().zip(parts.kinds(problem)).zip(&parts.level) {
        let from = base[kind as usize];
        *batch = if from == NONE { *batch } else { from + level };
        counts.add(*batch as usize);
    }
    counts.group(by_key(batch_of), &mut items);
    let why = if count == bound { StopReason::BoundMet } else { reason };
    Batches { start, items, bound: Some(bound), why }
}

/// The more important of the reasons of two parts, the first of equals.
fn graver(one: StopReason, other: StopReason) -> StopReason {
    let weight = |why: &StopReason| match why {
        StopReason::BoundMet => 0,
        StopReason::TooManyTypes { .. } => 3,
        StopReason::BudgetSpent { .. } => 2,
        _ => 1,
    };
    if weight(&other) > weight(&one) { other } else { one }
}
