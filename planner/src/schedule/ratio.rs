//! Policy `ratio`: run the type with the largest share of its sources ready.
//!
//! **Rule.** The frontier ratio of ED-Batch, without learning. The *sources* of type t (not those of a graph) are the
//! unfinished t-jobs that wait for no other unfinished t-job. The ratio of t is the share of its sources that is ready
//! now. The type with the largest ratio runs; ties go to more ready jobs, then to the smaller type number. In the terms
//! of ED-Batch: G^t is the graph over the t-jobs with an edge u -> w iff some path from u to w passes only through
//! other types, and `ratio(t) = |Frontier_t(G)| / |Frontier(G^t)|`.
//!
//! **Safe rule.** At ratio 1 every source of t is ready. The first t-batch of any order contains sources of t only. It
//! can move to the front and take all sources without adding a batch. So some optimal order begins with type t.
//!
//! **Needs** a checked problem. **Ensures** a valid order with a known bound. **How.** The problem splits into parts
//! (see `parts`). Running one part after another applies the safe rule to whole groups of types. Inside a hard part the
//! counters of `front` give the ratios. **Cost** O(edges x tracked types of the part + batches x types of the part).
//! Simple parts cost one scan. Parts of more than 1024 mutually dependent types are ordered by depth.

use super::front::{Fired, Front};
use super::part::Part;
use super::scratch::{Steps, Tools};
use super::solve::solve;
use super::{Batches, Problem, Schedule, Scratch, StopReason, builtin};
use crate::ids::LocalType;

/// Runs the type with the largest frontier ratio.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ratio;

impl Schedule for Ratio {
    builtin!("ratio");

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        solve(problem, scratch, ratio_part)
    }
}

/// Runs one part by ratio.
pub(super) fn ratio_part(part: &Part, tools: &mut Tools) -> StopReason {
    run_part(part, tools, best_ratio)
}

/// Runs one part to its end. `choose` returns a ready type at every step.
pub(super) fn run_part(
    part: &Part,
    tools: &mut Tools,
    mut choose: impl FnMut(&Front) -> Option<LocalType>,
) -> StopReason {
    let Tools { front, fired, steps, .. } = tools;
    front.reset(part, fired);
    steps.reset(part);
    steps.push(fired);
    while let Some(ty) = choose(front) {
        front.fire(part, ty, fired);
        steps.push_type(ty, fired);
    }
    StopReason::Greedy
}

/// Runs a part by a sequence of types and skips types without ready jobs.
///
/// Needs: the sequence is the type sequence of some valid order of the part, so that it runs every job.
pub(super) fn replay(
    part: &Part,
    front: &mut Front,
    fired: &mut Fired,
    sequence: &[LocalType],
    steps: &mut Steps,
) {
    front.reset(part, fired);
    steps.reset(part);
    steps.push(fired);
    for &ty in sequence {
        if front.ready.count(ty) > 0 {
            front.fire(part, ty, fired);
            steps.push_type(ty, fired);
        }
    }
}

/// The ready type with the largest ratio. Ties go to more ready jobs, then to the smaller number.
pub(super) fn best_ratio(front: &Front) -> Option<LocalType> {
    let mut best: Option<(u64, u64, LocalType)> = None;
    for ty in front.ready.types() {
        let (ready, sources) = (u64::from(front.ready.count(ty)), u64::from(front.sources[ty.index()]));
        if ready == 0 {
            continue;
        }
        let better = best.is_none_or(|(most, of, _)| {
            let (mine, theirs) = (ready * of, most * sources);
            mine > theirs || (mine == theirs && ready > most)
        });
        if better {
            best = Some((ready, sources, ty));
        }
    }
    best.map(|(_, _, ty)| ty)
}

/// The type with ratio 1 and the most ready jobs, if any. Ties go to the smaller number.
pub(super) fn safe_type(front: &Front) -> Option<LocalType> {
    let safe = |&ty: &LocalType| {
        let ready = front.ready.count(ty);
        ready > 0 && ready == front.sources[ty.index()]
    };
    front.ready.types().filter(safe).min_by_key(|&ty| (std::cmp::Reverse(front.ready.count(ty)), ty))
}
