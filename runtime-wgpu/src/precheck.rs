//! Checks before a run: bindings and stores fit the plan, bound indices are in range, and bound booleans are 0 or 1.
//! Templates clamp indices that a kernel computes.

use crate::error::GpuError;
use autobatch_ir::plan::{Bound, Plan, Stores, WordLimit, WordOrigins};

/// Bound words below a limit.
struct Run {
    first: u32,
    width: u32,
    limit: WordLimit,
    step: u32,
}

/// The bound words of a plan that are indices or booleans.
pub(crate) struct WordChecks(Vec<Run>);

impl WordChecks {
    /// Checks all of them.
    pub(crate) fn check(&self, plan: &Plan, words: &[u32]) -> Result<(), GpuError> {
        for run in &self.0 {
            let first = run.first as usize;
            let found = &words[first..first + run.width as usize];
            if let Some(place) = found.iter().position(|&word| word >= run.limit.below) {
                let step = run.step as usize;
                let kernel = plan.kernel(&plan.steps[step]);
                return Err(run.limit.misfit(first + place, step, kernel, found[place]).into());
            }
        }
        Ok(())
    }
}

/// Checks that bindings and stores fit a plan that computes values.
pub(crate) fn check(plan: &Plan, stores: &dyn Stores, bound: Bound<'_>) -> Result<(), GpuError> {
    Ok(bound.check(plan, stores)?)
}

/// Finds the bound words that steps from `first` on read as indices or booleans. `origins` knows earlier steps.
pub(crate) fn word_checks(plan: &Plan, first: usize, origins: &mut WordOrigins) -> WordChecks {
    let mut runs: Vec<Run> = Vec::new();
    let limits: Vec<Vec<WordLimit>> = plan.kernels.iter().map(|kernel| kernel.word_limits()).collect();
    for (number, step) in plan.steps.iter().enumerate().skip(first) {
        for &limit in &limits[step.kernel.index()] {
            let operand = plan.operands(step)[limit.view.reg as usize];
            for lane in 0..step.rows {
                let Some(first) = origins.bound_word(plan, operand, lane) else { continue };
                let (first, width) = (first + limit.view.start, limit.view.width);
                match runs.last_mut() {
                    // Adjacent words form one run.
                    Some(run)
                        if run.first + run.width == first
                            && (run.limit.below, run.limit.of, run.step)
                                == (limit.below, limit.of, number as u32) =>
                    {
                        run.width += width;
                    }
                    _ => runs.push(Run { first, width, limit, step: number as u32 }),
                }
            }
        }
        origins.record(plan, step);
    }
    WordChecks(runs)
}
