//! What is checked before a plan is executed beside sizes: that bound indices are in range, and bound truth values 0 or 1.
//!
//! An index is bound where it is used as it was bound: read from the words directly, or from a row
//! that a source step brought in. Indices that a step computes are cut to the last instead.

use super::ready::Ready;
use autobatch_ir::plan::{BindError, Operand, Place, Plan, Step, WordLimit};
use autobatch_ir::types::DType;

/// No bound word.
const COMPUTED: u32 = u32::MAX;

/// Per field of indices, the bound word that each row is; other fields stay empty.
pub(super) type Origins = Vec<Vec<u32>>;

/// Checks every bound word that is an index or a truth value.
pub(super) fn check_words(
    plan: &Plan,
    ready: &Ready,
    words: &[u32],
    origins: &mut Origins,
) -> Result<(), BindError> {
    if !any_reaches(words, ready.least_limit()) {
        return Ok(());
    }
    let most = words.iter().copied().max();
    let brings_indices = plan.steps.iter().any(|step| plan.kernel(step).source && writes_indices(plan, step));
    if brings_indices && origins.len() < plan.fields.len() {
        origins.resize(plan.fields.len(), Vec::new());
    }
    origins.iter_mut().for_each(Vec::clear);
    for (number, step) in plan.steps.iter().enumerate() {
        for limit in &ready.program(number).word_limits {
            if most.is_none_or(|most| most < limit.below) {
                continue;
            }
            check_view(plan, (number, step), limit, words, origins)?;
        }
        if brings_indices && writes_indices(plan, step) {
            remember(plan, step, origins);
        }
    }
    Ok(())
}

/// Whether a word is `least` or more: what no bound word reaches needs no closer look. Words lie side by side, so asking all at once is quick;
/// they were bound long ago, so they come from far, and four streams of them come sooner than one.
fn any_reaches(words: &[u32], least: u32) -> bool {
    let (half, other) = words.split_at(words.len() / 2);
    let (a, b) = half.split_at(half.len() / 2);
    let (c, d) = other.split_at(half.len() / 2);
    let streams = a.iter().zip(b).zip(c).zip(d);
    let reaches = streams.fold(false, |any, (((&a, &b), &c), &d)| {
        any | (a >= least) | (b >= least) | (c >= least) | (d >= least)
    });
    // What is left of the longer streams: some three words.
    let left = b[a.len()..].iter().chain(&d[a.len()..]);
    left.fold(reaches, |any, &word| any | (word >= least))
}

fn writes_indices(plan: &Plan, step: &Step) -> bool {
    plan.places(step).iter().any(|place| plan.field(place.field()).ty.dtype == DType::U32)
}

fn check_view(
    plan: &Plan,
    (number, step): (usize, &Step),
    limit: &WordLimit,
    words: &[u32],
    origins: &[Vec<u32>],
) -> Result<(), BindError> {
    let kernel = plan.kernel(step);
    let WordLimit { view, below, .. } = *limit;
    let operand = plan.operands(step)[view.reg as usize];
    let single = kernel.whole(view.reg).width == 1;
    if single && largest(plan, step, operand, words).is_some_and(|word| word < below) {
        return Ok(());
    }
    for lane in 0..step.rows as usize {
        let Some(first) = bound_word(plan, operand, lane, origins) else { continue };
        let first = first + view.start as usize;
        let found = &words[first..first + view.width as usize];
        if let Some(place) = found.iter().position(|&word| word >= below) {
            return Err(limit.misfit(first + place, number, kernel, found[place]));
        }
    }
    Ok(())
}

/// The largest of the single words that the lanes of a step read where they were bound: many at once, so that the fault is
/// looked for only where there is one.
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

/// The first bound word that a lane's operand is, if it is bound.
fn bound_word(plan: &Plan, operand: Operand, lane: usize, origins: &[Vec<u32>]) -> Option<usize> {
    let row = match operand {
        Operand::Words { start, stride } => return Some(start as usize + lane * stride as usize),
        Operand::WordTable { at } => return Some(plan.tables[at as usize + lane] as usize),
        Operand::Rows { field, start, stride } => (field, start as usize + lane * stride as usize),
        Operand::Table { field, at } => (field, plan.tables[at as usize + lane] as usize),
        Operand::Segments { .. } | Operand::Floats { .. } | Operand::FloatTable { .. } => return None,
    };
    let word = origins.get(row.0.index()).and_then(|rows| rows.get(row.1)).copied().unwrap_or(COMPUTED);
    (word != COMPUTED).then_some(word as usize)
}

/// Notes which rows of indices a step wrote, and from which words.
fn remember(plan: &Plan, step: &Step, origins: &mut [Vec<u32>]) {
    let source = plan.kernel(step).source;
    for place in plan.places(step) {
        let field = plan.field(place.field());
        if field.ty.dtype != DType::U32 {
            continue;
        }
        let rows = &mut origins[place.field().index()];
        rows.resize(plan.slabs[field.slab.index()].rows as usize, COMPUTED);
        for lane in 0..step.rows as usize {
            let row = match *place {
                Place::Rows { start, .. } => start as usize + lane,
                Place::Table { at, .. } => plan.tables[at as usize + lane] as usize,
                Place::Edges { .. } => continue,
            };
            let word = plan.operands(step).first().filter(|_| source);
            let word = word.and_then(|&operand| bound_word(plan, operand, lane, &[]));
            rows[row] = word.map_or(COMPUTED, |word| word as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::any_reaches;

    #[test]
    fn a_word_that_reaches_the_limit_is_found_wherever_it_stands() {
        for len in 0..70 {
            let mut words = vec![6; len];
            assert!(!any_reaches(&words, 7) && (len == 0 || any_reaches(&words, 6)));
            for at in 0..len {
                words[at] = 7 + at as u32;
                assert!(any_reaches(&words, 7), "word {at} of {len}");
                words[at] = 6;
            }
        }
    }
}
