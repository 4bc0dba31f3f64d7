//! Policy `auto`: as much search as pays.
//!
//! **What.** The order with the least expected time of planning *and* executing, by a [`CostTable`]:
//! 1. The ratio orders every hard part. A part that meets its bound is done.
//! 2. Elsewhere the most that a search can save is known exactly, because the bound is a sum over types:
//!    `most = sum over types of (batches - bound of the type) * fixed cost of the type`. A beam of width `w` is expected to win
//!    `share(w) * most` of it each time the plan is executed ([`BeamGain`](super::BeamGain)), and to cost
//!    `2 * w * edges of the part * beam_ns` once. The width with the greatest difference is searched, if any is above zero, with
//!    `most / beam_ns` as its budget: a search never spends more than it could win. If none pays, the ratio's order stays and
//!    [`Why::SearchDoesNotPay`] says by how much.
//! 3. The whole is compared with running every job alone: batches save fixed costs, but operand rows are then read through
//!    tables. If alone is not slower, every job runs alone and [`Why::BatchingDoesNotPay`] says so.
//!
//! Costs are those of the problem's types ([`Problem::with_costs`]); without any, every type is taken to be
//! [`CostTable::typical`].
//!
//! **Needs** a checked problem. **Ensures** a valid order, never with more batches than the ratio's unless all run alone.
//! **Cost** the ratio's, and the beam's where it pays. **Refuses** nothing.

use super::part::Part;
use super::ratio::ratio_part;
use super::solve::{Tools, solve};
use super::{Batches, Beam, CostTable, Problem, Schedule, Scratch, StepCost, Unbatched, Why};

/// Chooses between ratio, beams and no batching.
#[derive(Clone, Debug, PartialEq)]
pub struct Auto {
    /// What steps and planning cost.
    pub costs: CostTable,
    /// How often a plan is expected to be executed. With 1, planning has to pay at once; with a cache of plans and few shapes,
    /// more search pays.
    pub executes: f64,
}

impl Default for Auto {
    /// The default costs, and plans that are executed once.
    fn default() -> Self {
        Self { costs: CostTable::default(), executes: 1.0 }
    }
}

impl Schedule for Auto {
    fn name(&self) -> &str {
        "auto"
    }

    fn options(&self) -> String {
        format!("{self:?}")
    }

    fn costs(&self) -> Option<&CostTable> {
        Some(&self.costs)
    }

    fn needs_check(&self) -> bool {
        false
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let typical = self.costs.typical();
        let costs = Costs { of_types: problem.costs(), typical };
        let mut memory = std::mem::take(&mut scratch.beam);
        let batches = solve(problem, scratch, |part, tools| {
            if ratio_part(part, tools) == Why::BoundMet || tools.steps.count == tools.bound {
                return Why::BoundMet;
            }
            let most = self.executes * most_saved(part, tools, costs);
            match self.width(part, most) {
                Ok(width) => {
                    let budget = (most / self.costs.planning.beam_ns) as u64;
                    Beam { width, budget }.improve(part, tools, &mut memory)
                }
                Err((saves, costs)) => Why::SearchDoesNotPay { saves, costs },
            }
        });
        scratch.beam = memory;
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
    fn of(self, ty: u32) -> StepCost {
        self.of_types.get(ty as usize).copied().unwrap_or(self.typical)
    }
}

/// What the batches above the bound cost, of the order that the steps hold.
fn most_saved(part: &Part, tools: &Tools<'_>, costs: Costs<'_>) -> f64 {
    let types = part.types.iter().zip(tools.longest.iter()).zip(&tools.steps.of_type);
    let excess = |((&ty, &least), &found): ((&u32, &u32), &u32)| {
        f64::from(found.saturating_sub(least)) * costs.of(ty).fixed
    };
    types.map(excess).sum()
}

impl Auto {
    /// The width that is expected to pay best for a saving of `most`; else the best one's saving and cost.
    fn width(&self, part: &Part, most: f64) -> Result<u32, (f64, f64)> {
        let planning = &self.costs.planning;
        let judged = planning.gains.iter().map(|gain| {
            let costs = 2.0 * f64::from(gain.width) * part.edges() as f64 * planning.beam_ns;
            (gain.width, gain.share * most, costs)
        });
        // The first of equals, so that a tie goes to the narrower.
        let best = judged.reduce(|best, next| if next.1 - next.2 > best.1 - best.2 { next } else { best });
        match best {
            Some((width, saves, costs)) if saves > costs => Ok(width),
            Some((_, saves, costs)) => Err((saves, costs)),
            None => Err((0.0, 0.0)),
        }
    }

    /// The batches, or every job alone if that takes no longer.
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
        let ty_of = |jobs: &[u32]| problem.ty()[jobs[0] as usize];
        batches.iter().for_each(|jobs| counts[ty_of(jobs) as usize] += jobs.len() as u32);
        // Rows cost the same either way; only what differs is added up.
        let alone: f64 = (0..).zip(&*counts).map(|(ty, &jobs)| f64::from(jobs) * costs.of(ty).fixed).sum();
        let fixed: f64 = batches.iter().map(|jobs| costs.of(ty_of(jobs)).fixed).sum();
        let batched = fixed + problem.operand_count() as f64 * self.costs.gathered_row_ns;
        if alone > batched {
            return batches;
        }
        let (why, bound) = (Why::BatchingDoesNotPay { alone, batched }, batches.bound);
        scratch.recycle(batches);
        Batches { why, bound, ..Unbatched.schedule(problem, scratch) }
    }
}
