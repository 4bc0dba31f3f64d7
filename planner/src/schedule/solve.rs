//! Runs a search over the hard parts of a problem and assembles the order.
//!
//! Simple parts are solved by level (see `parts`). Each hard part is renumbered, linked and given to the search, which returns
//! the step of every job. The parts follow each other in topological order, and one counting sort turns batch numbers into
//! [`Batches`]. A part with more than [`MAX_SEARCHED_TYPES`] mutually dependent types is ordered by depth: a decision costs
//! O(types), and no policy helps where signatures are that fine.

use super::batches::{Batches, Spare, StopReason};
use super::bound::longest_paths;
use super::depth::{self, order_by_depth};
use super::part::Part;
use super::parts::{NONE, Parts};
use super::problem::Problem;
use super::scratch::{MAX_SEARCHED_TYPES, Scratch, Tools};
use crate::ids::Id;
use crate::lists::{Counts, by_key};

/// Schedules `problem`. `search` fills the steps of one hard part and returns why it stopped.
pub(super) fn solve(
    problem: &Problem<'_>,
    scratch: &mut Scratch,
    mut search: impl FnMut(&Part, &mut Tools) -> StopReason,
) -> Batches {
    scratch.parts.analyse(problem);
    scratch.group_hard_jobs(problem);
    let mut depth = scratch.take::<depth::PartMemory>();
    let Scratch { parts, part, renumbering, hard, tools, batch_of, base, spare, .. } = scratch;
    let (mut count, mut bound, mut reason) = (0u32, problem.alone().len() as u32, StopReason::BoundMet);
    // Jobs of hard parts get their batch from the search, all others from their level.
    batch_of.resize(problem.len(), 0);
    base.clear();
    base.resize(parts.kind_count(), NONE);
    for number in parts.ids() {
        if let &[kind] = parts.members(number) {
            base[kind.to_index()] = count;
            count += parts.levels[kind.to_index()];
            bound += Parts::type_of_kind(problem, kind).map_or(0, |_| parts.levels[kind.to_index()]);
            continue;
        }
        part.jobs.clear();
        part.jobs.extend_from_slice(hard.jobs(number));
        part.extract(problem, parts, number, renumbering);
        longest_paths(part, &mut tools.lanes, &mut tools.longest);
        let part_bound = tools.longest.iter().sum::<u32>();
        bound += part_bound;
        let why = if part.types.len() > MAX_SEARCHED_TYPES {
            order_by_depth(part, &mut tools.steps, &mut depth);
            StopReason::TooManyTypes { types: part.types.len() as u32 }
        } else {
            part.link();
            part.track();
            tools.bound = part_bound + part.alone;
            search(part, tools)
        };
        reason = graver(reason, why);
        for (&job, &step) in part.jobs.iter().zip(&tools.steps.of) {
            batch_of[job.index()] = count + step;
        }
        count += tools.steps.count;
    }
    let (base, Spare { mut start, mut items }) = (base.as_slice(), std::mem::take(spare));
    let mut counts = Counts::new(count as usize, &mut start);
    for ((batch, &kind), &level) in batch_of.iter_mut().zip(parts.kinds(problem)).zip(&parts.level) {
        let from = base[kind.to_index()];
        *batch = if from == NONE { *batch } else { from + level };
        counts.add(*batch as usize);
    }
    counts.group(by_key(batch_of.iter().map(|&batch| batch as usize)), &mut items);
    let why = if count == bound { StopReason::BoundMet } else { reason };
    scratch.put(depth);
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
