//! Checks before a run: bindings and stores fit the plan, bound indices are in range, and bound booleans are 0 or 1.
//! Templates clamp indices that a kernel computes.

use crate::error::GpuError;
use autobatch_ir::plan::{Bound, Operand, Place, Plan, Step, Stores, WordLimit};
use autobatch_ir::types::DType;

/// Marks a row that is not a bound word.
const COMPUTED: u32 = u32::MAX;

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

/// For each field and row the bound word that was copied there.
#[derive(Default)]
pub(crate) struct WordOrigins(Vec<Vec<u32>>);

/// Finds the bound words that steps from `first` on read as indices or booleans. `origins` knows earlier steps.
pub(crate) fn word_checks(plan: &Plan, first: usize, WordOrigins(origins): &mut WordOrigins) -> WordChecks {
    let mut runs: Vec<Run> = Vec::new();
    let limits: Vec<Vec<WordLimit>> = plan.kernels.iter().map(|kernel| kernel.word_limits()).collect();
    origins.resize(plan.fields.len(), Vec::new());
    for (number, step) in plan.steps.iter().enumerate().skip(first) {
        for &limit in &limits[step.kernel.index()] {
            let operand = plan.operands(step)[limit.view.reg as usize];
            for lane in 0..step.rows {
                let Some(first) = bound_word(plan, operand, lane, origins) else { continue };
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
        remember(plan, step, origins);
    }
    WordChecks(runs)
}

/// The bound word that a lane's operand starts with, if it is bound.
fn bound_word(plan: &Plan, operand: Operand, lane: u32, origins: &[Vec<u32>]) -> Option<u32> {
    let (field, row) = match operand {
        Operand::Words { start, stride } => return Some(start + lane * stride),
        Operand::WordTable { at } => return Some(plan.tables[(at + lane) as usize]),
        Operand::Rows { field, start, stride } => (field, start + lane * stride),
        Operand::Table { field, at } => (field, plan.tables[(at + lane) as usize]),
        Operand::Segments { .. } | Operand::Floats { .. } | Operand::FloatTable { .. } => return None,
    };
    let origin = *origins.get(field.index())?.get(row as usize)?;
    (origin != COMPUTED).then_some(origin)
}

/// Notes the rows that a step filled with bound words.
fn remember(plan: &Plan, step: &Step, origins: &mut [Vec<u32>]) {
    let source = plan.kernel(step).source;
    for place in plan.places(step) {
        let field = plan.field(place.field());
        let known = !origins[place.field().index()].is_empty();
        if field.ty.dtype != DType::U32 || !(source || known) {
            continue;
        }
        let rows = &mut origins[place.field().index()];
        rows.resize(plan.slabs[field.slab.index()].rows as usize, COMPUTED);
        for lane in 0..step.rows {
            let row = match *place {
                Place::Rows { start, .. } => start + lane,
                Place::Table { at, .. } => plan.tables[(at + lane) as usize],
                Place::Edges { .. } => continue,
            };
            let operand = plan.operands(step).first().filter(|_| source);
            let word = operand.and_then(|&operand| bound_word(plan, operand, lane, &[]));
            rows[row as usize] = word.unwrap_or(COMPUTED);
        }
    }
}
