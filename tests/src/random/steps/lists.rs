//! Acts on lists of any length, and one value with many readers.

use super::Results;
use crate::random::act::Act;
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, Stage};
use autobatch_ir::Value;
use autobatch_ir::graph::ListFold;

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    if step.act == Act::FanOut {
        return vec![fan_out(stage, step)];
    }
    let items = stage.items(step);
    let bound = items.iter().map(|item| item.1).fold(0.0, f64::max);
    let count = items.len() as f64;
    let values = list_of(stage, &items);
    let result = match step.act {
        Act::ListFold(fold) => {
            let bound = if fold == ListFold::Sum { count * bound } else { bound };
            (folded(fold, values), bound)
        }
        Act::WeightedSum { softmax } => {
            let scores = scores(stage, step, &items);
            match softmax {
                true => (stage.g.softmax_sum(scores, values), bound),
                false => (stage.g.weighted_sum(scores, values), count * bound * bound.max(1.0)),
            }
        }
        Act::Attend => {
            let query = stage.vector(step, 40).0;
            let keys: Vec<Bounded<'g>> = items.iter().rev().copied().collect();
            let keys = if step.twin { values } else { list_of(stage, &keys) };
            (stage.g.attend(query, keys, values, 0.5), bound)
        }
        _ => unreachable!("not an act on lists"),
    };
    vec![result]
}

/// The list of these values, which may be none.
pub(super) fn list_of<'g>(stage: &Stage<'g, '_>, items: &[Bounded<'g>]) -> Value<'g> {
    match items {
        [] => stage.g.empty_list(stage.vector_type()),
        _ => stage.g.list(items.iter().map(|item| item.0)),
    }
}

/// The fold of each member.
pub(crate) fn folded<'g>(fold: ListFold, list: Value<'g>) -> Value<'g> {
    match fold {
        ListFold::Sum => list.sum(),
        ListFold::Mean => list.mean(),
        ListFold::Max => list.max(),
    }
}

/// One score a value: a scalar, a vector of one element, or as wide as the value.
fn scores<'g>(stage: &Stage<'g, '_>, step: &Step, items: &[Bounded<'g>]) -> Value<'g> {
    let form = step.size / 64 % 3;
    let score = |item: &Bounded<'g>| match form {
        0 => item.0.mean(),
        1 => item.0.slice(0..1),
        _ => item.0.tanh(),
    };
    match (items, form) {
        ([], 0) => stage.g.empty_list(autobatch_ir::f32([])),
        ([], 1) => stage.g.empty_list(autobatch_ir::f32([1])),
        ([], _) => stage.g.empty_list(stage.vector_type()),
        _ => stage.g.list(items.iter().map(score)),
    }
}

fn fan_out<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let (x, bound) = stage.vector(step, 0);
    let readers = [x.tanh(), x.sigmoid(), -x, x * x, x.sin(), x + 1.0];
    let count = 4 + step.size as usize % 3;
    (stage.g.list(&readers[..count]).sum(), 5.0 * (bound * bound + 1.0))
}
