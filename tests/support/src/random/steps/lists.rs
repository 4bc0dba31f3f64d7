//! Actions on lists of any length, and one value with many readers.

use super::Results;
use crate::random::act::Act;
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, ELEMENTS, LONGEST, Stage};
use autobatch_ir::graph::ListFold;
use autobatch_ir::{DType, Type, Value, f32};

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    let result = match step.act {
        Act::FanOut => fan_out(stage, step),
        Act::ListFold(fold) => {
            let element = element(stage, step);
            let (list, bound) = list(stage, step, element);
            let longest = f64::from(LONGEST);
            let bound = match fold {
                ListFold::Sum => longest * bound,
                ListFold::Mean | ListFold::Max => bound,
                ListFold::LogSumExp => bound + longest.ln(),
                ListFold::ArgMax => longest,
            };
            (folded(fold, list), bound)
        }
        Act::ListPick => pick(stage, step),
        Act::WeightedSum { softmax } => weighted_sum(stage, step, softmax),
        Act::Attend => attend(stage, step),
        _ => unreachable!("not an action on lists"),
    };
    vec![result]
}

/// Chooses the element type of a list: usually a vector, otherwise floats of any shape.
fn element(stage: &mut Stage<'_, '_>, step: &Step) -> Type {
    let vector = stage.vector_type();
    let fits = |ty: Type| ty.dtype == DType::F32 && ty != vector && ty.shape.elements() * 8 <= ELEMENTS;
    match step.size / 1024 % 3 {
        1 => stage.find(step, 60, fits).map_or(f32([]), |found| found.0.ty()),
        _ => vector,
    }
}

/// Returns a list of values of this type: sometimes an existing list, or one that grew from it, otherwise a new one, which may
/// be empty.
fn list<'g>(stage: &mut Stage<'g, '_>, step: &Step, element: Type) -> Bounded<'g> {
    let existing = match step.size / 4096 % 3 {
        1 => stage.existing_list(element),
        2 if !stage.in_body => stage.lists(element).nth(step.size as usize / 16384 % 3),
        _ => None,
    };
    match existing {
        Some(existing) if step.size / 4096 % 3 == 1 => existing,
        Some(existing) => {
            let items = stage.items(step, element);
            grown(stage, existing, &items)
        }
        None => {
            let items = stage.items(step, element);
            new_list(stage, element, &items)
        }
    }
}

/// Appends items one by one and keeps every list on the way, so that later steps read lists that begin alike.
fn grown<'g>(
    stage: &mut Stage<'g, '_>,
    (mut list, mut bound): Bounded<'g>,
    items: &[Bounded<'g>],
) -> Bounded<'g> {
    for item in items {
        (list, bound) = (list.append(item.0), bound.max(item.1));
        stage.keep_list(list, bound);
    }
    (list, bound)
}

/// As `list`, for vectors of the usual width.
pub(super) fn list_of_vectors<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    list(stage, step, stage.vector_type())
}

/// Returns two lists of vectors of equal length. Half of the time both are the same list.
pub(super) fn two_lists<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> [Value<'g>; 2] {
    let vector = stage.vector_type();
    let items = stage.items(step, vector);
    let (xs, _) = new_list(stage, vector, &items);
    if (step.size / 64).is_multiple_of(2) {
        return [xs, xs];
    }
    let reversed: Vec<Bounded<'g>> = items.into_iter().rev().collect();
    [xs, new_list(stage, vector, &reversed).0]
}

fn new_list<'g>(stage: &mut Stage<'g, '_>, element: Type, items: &[Bounded<'g>]) -> Bounded<'g> {
    if !stage.in_body && items.len() % 4 == 3 {
        let (first, rest) = items.split_at(items.len() / 2);
        let first = new_list(stage, element, first);
        return grown(stage, first, rest);
    }
    let list = match items {
        [] => stage.g.empty_list(element),
        _ => stage.g.list(items.iter().map(|item| item.0)),
    };
    let bound = items.iter().map(|item| item.1).fold(0.0, f64::max);
    stage.keep_list(list, bound);
    (list, bound)
}

/// Applies a list fold.
pub(crate) fn folded<'g>(fold: ListFold, list: Value<'g>) -> Value<'g> {
    match fold {
        ListFold::Sum => list.sum(),
        ListFold::Mean => list.mean(),
        ListFold::Max => list.max(),
        ListFold::LogSumExp => list.logsumexp(),
        ListFold::ArgMax => list.argmax(),
    }
}

/// Emits a pick of a new list, because the length of an existing one is unknown.
fn pick<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let element = element(stage, step);
    let mut items = stage.items(step, element);
    if items.is_empty() {
        items.push(stage.of_type(step, 20, element));
    }
    let (list, bound) = new_list(stage, element, &items);
    (list.pick(stage.index(step, items.len())), bound)
}

/// Emits a weighted sum. An existing list serves as its own scores, because a body does not know its length.
fn weighted_sum<'g>(stage: &mut Stage<'g, '_>, step: &Step, softmax: bool) -> Bounded<'g> {
    let element = element(stage, step);
    let existing = if step.size / 4096 % 3 == 1 { stage.existing_list(element) } else { None };
    let (scores, (values, bound)) = match existing {
        Some(values) => (values.0, values),
        None => {
            let items = stage.items(step, element);
            (scores(stage, step, element, &items), new_list(stage, element, &items))
        }
    };
    match softmax {
        true => (stage.g.softmax_sum(scores, values), bound),
        false => (stage.g.weighted_sum(scores, values), f64::from(LONGEST) * bound * bound.max(1.0)),
    }
}

/// Emits one score per value: a scalar, a single element of higher rank, or a score of the value's shape.
fn scores<'g>(stage: &Stage<'g, '_>, step: &Step, element: Type, items: &[Bounded<'g>]) -> Value<'g> {
    let form = if element.shape.rank() == 0 { 2 } else { step.size / 64 % 3 };
    let score = |item: &Bounded<'g>| match form {
        0 => item.0.mean(),
        1 => item.0.mean().reshape([1]),
        _ => item.0.tanh(),
    };
    match (items, form) {
        ([], 0) => stage.g.empty_list(f32([])),
        ([], 1) => stage.g.empty_list(f32([1])),
        ([], _) => stage.g.empty_list(element),
        _ => stage.g.list(items.iter().map(score)),
    }
}

/// Emits attention. Query and keys are vectors; values are vectors or have any shape.
fn attend<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    if step.size / 512 % 2 == 1 {
        return graph_attend(stage, step);
    }
    let (query, scale) = (stage.vector(step, 40).0, [0.5, -1.0, 0.0][step.size as usize / 64 % 3]);
    let (vector, element) = (stage.vector_type(), element(stage, step));
    let existing = if step.size / 4096 % 3 == 1 { stage.existing_list(vector) } else { None };
    let (keys, (values, bound)) = match existing {
        Some(values) => (values.0, values),
        None => {
            let items = stage.items(step, element);
            let values = new_list(stage, element, &items);
            let keys = if step.twin && element == vector {
                values.0
            } else {
                let keys = stage.items(&Step { pick: !step.pick, ..*step }, vector);
                new_list(stage, vector, &keys).0
            };
            (keys, values)
        }
    };
    (stage.g.attend(query, keys, values, scale), bound)
}

/// Emits graph attention: with a head for each element of a vector, or with one head and values of any shape.
fn graph_attend<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let (query, slope) = (stage.vector(step, 40).0, [0.25, -1.0, 0.0][step.size as usize / 64 % 3]);
    let vector = stage.vector_type();
    if step.size / 1024 % 2 == 1 {
        let existing = if step.size / 4096 % 2 == 1 { stage.existing_list(vector) } else { None };
        let (values, bound) = match existing {
            Some(values) => values,
            None => {
                let items = stage.items(step, vector);
                new_list(stage, vector, &items)
            }
        };
        return (stage.g.graph_attend(query, values, values, slope), bound);
    }
    let element = element(stage, step);
    let items = stage.items(step, element);
    let (values, bound) = new_list(stage, element, &items);
    let number = |x: Value<'g>| match x.shape().rank() {
        0 => x.reshape([1]),
        _ => x.mean().reshape([1]),
    };
    let keys = match items.is_empty() {
        true => stage.g.empty_list(f32([1])),
        false => stage.g.list(items.iter().map(|item| number(item.0))),
    };
    (stage.g.graph_attend(number(query), keys, values, slope), bound)
}

fn fan_out<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let (x, bound) = stage.vector(step, 0);
    let readers = [x.tanh(), x.sigmoid(), -x, x * x, x.sin(), x + 1.0];
    let count = 4 + step.size as usize % 3;
    (stage.g.list(&readers[..count]).sum(), 5.0 * (bound * bound + 1.0))
}
