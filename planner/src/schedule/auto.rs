//! Policy `auto`: as much search as pays.
//!
//! **Rule.** The order with the least expected time of planning and of all [executions](Problem::executions), by a [`CostTable`]:
//! 1. The ratio orders every hard part. A part that meets its bound is done.
//! 2. For the other parts the largest possible saving is known, because the bound is a sum over types:
//!    `most = executions * sum over types of (batches - bound of the type) * fixed cost of the type`. A beam of width `w` is
//!    expected to save `share(w) * most` ([`BeamGain`](super::BeamGain)), and costs `2 * w * edges of the part * beam_ns` once.
//!    The width with the largest difference is searched, if a difference is positive. Its budget is `most / beam_ns`, so a search
//!    never costs more than it can save. Otherwise the order of the ratio stays, with [`StopReason::SearchDoesNotPay`].
//! 3. The result is compared with running every job alone. Batches save fixed costs, but they read operand rows through tables.
//!    If single jobs are not slower, every job runs alone, with [`StopReason::BatchingDoesNotPay`].
//!
//! The costs are those of [`Problem::with_costs`]; a type without a cost has [`CostTable::typical`].
//!
//! **Needs** a checked problem. **Ensures** a valid order, with at most as many batches as the ratio unless all jobs run alone.
//! **Cost** as the ratio, plus the beams that pay.

use super::part::Part;
use super::ratio::ratio_part;
use super::scratch::Tools;
use super::solve::solve;
use super::{Batches, Beam, CostTable, Problem, Schedule, Scratch, StepCost, StopReason, Unbatched, builtin};
use crate::ids::{JobId, TypeIndex};

/// Chooses between ratio, beams and no batching.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Auto {
    /// The costs of steps and of planning.
    pub costs: CostTable,
}

impl Schedule for Auto {
    builtin!("auto");

    fn costs(&self) -> Option<&CostTable> {
        Some(&self.costs)
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let typical = self.costs.typical();
        let costs = Costs { of_types: problem.costs(), typical };
        let mut memory = scratch.take::<super::beam::Memory>();
        let batches = solve(problem, scratch, |part, tools| {
            if ratio_part(part, tools) == StopReason::BoundMet || tools.steps.count == tools.bound {
                return StopReason::BoundMet;
            }
            let most = problem.executions() * most_saved(part, tools, costs);
            match self.width(part, most) {
                Ok(width) => {
                    let budget = (most / self.costs.planning.beam_ns) as u64;
                    Beam { width, budget }.improve(part, tools, &mut memory)
                }
                Err((saves, costs)) => StopReason::SearchDoesNotPay { saves, costs },
            }
        });
        scratch.put(memory);
        self.unless_alone_is_as_fast(problem, batches, costs, scratch)
    }
}

/// The cost of every type.
#[derive(Clone, Copy)]
struct Costs<'a> {
    of_types: &'a [StepCost],
    typical: StepCost,
}

impl Costs<'_> {
    fn of(self, ty: TypeIndex) -> StepCost {
        self.of_types.get(ty.index()).copied().unwrap_or(self.typical)
    }
}

/// The fixed cost of the batches above the bound, for the order in `tools.steps`.
fn most_saved(part: &Part, tools: &Tools, costs: Costs<'_>) -> f64 {
    let types = part.types.iter().zip(tools.longest.iter()).zip(&tools.steps.of_type);
    let excess = |((&ty, &least), &found): ((&TypeIndex, &u32), &u32)| {
        f64::from(found.saturating_sub(least)) * costs.of(ty).fixed
    };
    types.map(excess).sum()
}

impl Auto {
    /// The width with the largest expected gain for a saving of at most `most`. If none gains, the saving and cost of the best.
    fn width(&self, part: &Part, most: f64) -> Result<u32, (f64, f64)> {
        let planning = &self.costs.planning;
        let judged = planning.gains.iter().map(|gain| {
            let costs = 2.0 * f64::from(gain.width) * part.edges() as f64 * planning.beam_ns;
            (gain.width, gain.share * most, costs)
        });
        // The first of equals wins, which is the narrower.
        let best = judged.reduce(|best, next| if next.1 - next.2 > best.1 - best.2 { next } else { best });
        match best {
            Some((width, saves, costs)) if saves > costs => Ok(width),
            Some((_, saves, costs)) => Err((saves, costs)),
            None => Err((0.0, 0.0)),
        }
    }

    /// Returns the batches, or every job alone if that takes no longer.
    fn unless_alone_is_as_fast(
        &self,
        problem: &Problem<'_>,
        batches: Batches,
        costs: Costs<'_>,
        scratch: &mut Scratch,
    ) -> Batches {
        if batches.len() == problem.len() {
            return batches;
        }
        let Scratch { counts, .. } = scratch;
        counts.clear();
        counts.resize(problem.types() as usize, 0);
        let ty_of = |jobs: &[JobId]| problem.ty_of(jobs[0]);
        batches.iter().for_each(|jobs| counts[ty_of(jobs).index()] += jobs.len() as u32);
        // The cost per row is equal on both sides and left out.
        let alone: f64 =
            (0..).map(TypeIndex).zip(&*counts).map(|(ty, &jobs)| f64::from(jobs) * costs.of(ty).fixed).sum();
        let fixed: f64 = batches.iter().map(|jobs| costs.of(ty_of(jobs)).fixed).sum();
        // Single jobs gather the items of a list too, so long lists are left out as well.
        let batched = fixed + problem.named_operand_count() as f64 * self.costs.gathered_row_ns;
        if alone > batched {
            return batches;
        }
        let (why, bound) = (StopReason::BatchingDoesNotPay { alone, batched }, batches.bound);
        scratch.recycle(batches);
        Batches { why, bound, ..Unbatched.schedule(problem, scratch) }
    }
}
