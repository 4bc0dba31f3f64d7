//! Policy `ratio`: fire the type with the largest share of its sources ready.
//!
//! **What.** ED-Batch's frontier ratio, without learning. G^t is the graph over the jobs of type t with an edge u -> w iff some
//! path from u to w passes through other types only. `ratio(t) = |Frontier_t(G)| / |Frontier(G^t)|`: of the t-jobs that no
//! unfinished t-job holds back, how many are ready now. Fire the type with the largest ratio; ties go to more ready jobs,
//! then to the smaller type number.
//!
//! **Safe rule.** At ratio 1 every t-source is ready; the first t-batch of any sequence holds only t-sources, so it can be moved
//! to the front and completed without loss: firing t now begins some optimal sequence.
//!
//! **Needs** a checked problem; **ensures** a valid order with the bound known. **How.** Parts first (firing part by part is the
//! safe rule seen from afar), then the counters of `front` inside each hard part.
//! **Cost** O(edges x tracked types of the part + batches x types of the part); simple parts cost one scan.
//! **Refuses** nothing; parts of more than a thousand mutually dependent types are ordered by depth.

use super::front::{Fired, Front};
use super::part::Part;
use super::solve::{Tools, solve};
use super::{Batches, Problem, Schedule, Scratch, Why};

/// Fires the type with the largest frontier ratio.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ratio;

impl Schedule for Ratio {
    fn name(&self) -> &str {
        "ratio"
    }

    fn options(&self) -> String {
        format!("{self:?}")
    }

    fn needs_check(&self) -> bool {
        false
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        solve(problem, scratch, ratio_part)
    }
}

/// Runs one part by ratio.
pub(super) fn ratio_part(part: &Part, tools: &mut Tools<'_>) -> Why {
    run_part(part, tools, best_ratio)
}

/// Runs one part to its end; `choose` names a ready type at every step.
pub(super) fn run_part(
    part: &Part,
    tools: &mut Tools<'_>,
    mut choose: impl FnMut(&Front) -> Option<u32>,
) -> Why {
    let Tools { front, fired, steps, .. } = tools;
    front.reset(part, fired);
    steps.reset(part);
    steps.push(fired);
    while let Some(ty) = choose(front) {
        front.fire(part, ty, fired);
        steps.push_type(ty, fired);
    }
    Why::Greedy
}

/// Runs a part by a given sequence of types, as early as it allows; types that have nothing ready are passed over.
///
/// Needs: the sequence is the type sequence of some valid order of the part, so that it runs every job.
pub(super) fn replay(
    part: &Part,
    front: &mut Front,
    fired: &mut Fired,
    sequence: &[u32],
    place: &mut super::solve::Steps,
) {
    front.reset(part, fired);
    place.reset(part);
    place.push(fired);
    for &ty in sequence {
        if front.ready.count(ty) > 0 {
            front.fire(part, ty, fired);
            place.push_type(ty, fired);
        }
    }
}

/// The ready type with the largest ratio; ties go to more ready jobs, then to the smaller number.
pub(super) fn best_ratio(front: &Front) -> Option<u32> {
    let mut best: Option<(u64, u64, u32)> = None;
    for ty in 0..front.ready.types() {
        let (ready, sources) = (u64::from(front.ready.count(ty)), u64::from(front.sources[ty as usize]));
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

/// The type with ratio 1 and most ready jobs, if any; ties go to the smaller number.
pub(super) fn safe_type(front: &Front) -> Option<u32> {
    let safe = |&ty: &u32| {
        let ready = front.ready.count(ty);
        ready > 0 && ready == front.sources[ty as usize]
    };
    let types = 0..front.ready.types();
    types.filter(safe).min_by_key(|&ty| (std::cmp::Reverse(front.ready.count(ty)), ty))
}
