//! Checks the values of bound words before a run: indices must be in range, truth values must be 0 or 1.
//!
//! An index is checked if it is used as it was bound: read from the bound words, or from a row that a source step
//! copied. Indices that a step computes are clamped to the last row at run time instead.

use super::prepared::PreparedSteps;
use autobatch_ir::plan::{BindError, Operand, Plan, Step, WordLimit, WordOrigins};
use autobatch_ir::types::DType;

/// Checks every bound word that is an index or a truth value.
pub(super) fn check_words(
    plan: &Plan,
    prepared: &PreparedSteps,
    words: &[u32],
    origins: &mut WordOrigins,
) -> Result<(), BindError> {
    if !any_reaches(words, prepared.least_limit) {
        return Ok(());
    }
    let max = words.iter().copied().max();
    let writes_indices =
        |step: &Step| plan.places(step).iter().any(|place| plan.field(place.field()).ty.dtype == DType::U32);
    let copies_indices = plan.steps.iter().any(|step| plan.kernel(step).source && writes_indices(step));
    origins.clear();
    for (number, step) in plan.steps.iter().enumerate() {
        for limit in &prepared.program(number).word_limits {
            if max.is_some_and(|max| max >= limit.below) {
                check_view(plan, number, limit, words, origins)?;
            }
        }
        if copies_indices {
            origins.record(plan, step);
        }
    }
    Ok(())
}

/// Returns whether any word is at least `least`. Four streams hide the latency of memory.
pub(super) fn any_reaches(words: &[u32], least: u32) -> bool {
    let (half, other) = words.split_at(words.len() / 2);
    let (a, b) = half.split_at(half.len() / 2);
    let (c, d) = other.split_at(half.len() / 2);
    let streams = a.iter().zip(b).zip(c).zip(d);
    let reaches = streams.fold(false, |any, (((&a, &b), &c), &d)| {
        any | (a >= least) | (b >= least) | (c >= least) | (d >= least)
    });
    // The rest of the longer streams: at most three words.
    let rest = b[a.len()..].iter().chain(&d[a.len()..]);
    rest.fold(reaches, |any, &word| any | (word >= least))
}

/// Checks the bound words of one view of a step.
fn check_view(
    plan: &Plan,
    number: usize,
    limit: &WordLimit,
    words: &[u32],
    origins: &WordOrigins,
) -> Result<(), BindError> {
    let step = &plan.steps[number];
    let kernel = plan.kernel(step);
    let WordLimit { view, below, .. } = *limit;
    let operand = plan.operands(step)[view.reg as usize];
    let single = kernel.whole(view.reg).width == 1;
    if single && largest(plan, step, operand, words).is_some_and(|word| word < below) {
        return Ok(());
    }
    for lane in 0..step.rows {
        let Some(first) = origins.bound_word(plan, operand, lane) else { continue };
        let first = (first + view.start) as usize;
        let found = &words[first..first + view.width as usize];
        if let Some(at) = found.iter().position(|&word| word >= below) {
            return Err(limit.misfit(first + at, number, kernel, found[at]));
        }
    }
    Ok(())
}

/// The largest of the bound words that the lanes of a step read, one word per lane.
fn largest(plan: &Plan, step: &Step, operand: Operand, words: &[u32]) -> Option<u32> {
    let rows = step.rows as usize;
    match operand {
        Operand::Words { start, stride: 1 } => words[start as usize..][..rows].iter().copied().max(),
        Operand::WordTable { at } => {
            plan.tables[at as usize..][..rows].iter().map(|&word| words[word as usize]).max()
        }
        _ => None,
    }
}
