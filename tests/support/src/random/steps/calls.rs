//! Calls of cells, noise, and ops that affect gradients only.

use super::lists::{list_of_vectors, two_lists};
use super::{Results, index_value};
use crate::random::act::{Act, CellName};
use crate::random::kit::{CLASSES, ROWS};
use crate::random::recipe::Step;
use crate::random::stage::{LIMIT, Stage};
use autobatch_ir::{Arg, DType, INDEX, Type, Value};

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    match step.act {
        Act::Call(name) => call(stage, step, name).unwrap_or_default(),
        act => {
            let (x, bound) = stage.float(step, 0);
            let value = match act {
                Act::Dropout => x.dropout(if step.size.is_multiple_of(4) { 0.0 } else { 0.25 }),
                Act::StopGradient => x.stop_gradient(),
                Act::ScaleGradient => x.scale_gradient([0.5, -1.0, 0.0][step.size as usize % 3]),
                _ => unreachable!("not a call"),
            };
            vec![(value, 2.0 * bound)]
        }
    }
}

/// Calls a cell. Returns `None` if it does not exist, for example inside a body that is declared earlier.
fn call<'g>(stage: &mut Stage<'g, '_>, step: &Step, name: CellName) -> Option<Results<'g>> {
    let (g, kit) = (stage.g, stage.kit);
    let results = match name {
        CellName::Leaf => {
            let cell = kit.leaf?;
            let index = stage.index(step, ROWS);
            let results = match step.size % 5 {
                0 if !stage.in_body => g.call(cell, index_value(stage, index)),
                _ => g.call(cell, [index]),
            };
            results.to_vec()
        }
        CellName::Node => {
            let [a, b, c, d] = [0, 1, 2, 3].map(|slot| stage.vector(step, slot).0);
            g.call(kit.node?, [a, b, c, d]).to_vec()
        }
        CellName::Forward | CellName::Backward | CellName::Deep => {
            let cell = match name {
                CellName::Forward => kit.forward?,
                CellName::Backward => kit.backward?,
                _ => kit.deep?,
            };
            let [x, h] = [0, 1].map(|slot| stage.vector(step, slot).0);
            g.call(cell, [x, h]).to_vec()
        }
        CellName::Fold | CellName::Attend => {
            let cell = if name == CellName::Fold { kit.fold? } else { kit.attend? };
            let (list, _) = list_of_vectors(stage, step);
            let x = stage.vector(step, 0).0;
            g.call(cell, [x, list]).to_vec()
        }
        CellName::Both => {
            let cell = kit.both?;
            let [xs, ys] = two_lists(stage, step);
            g.call(cell, [xs, ys]).to_vec()
        }
        CellName::Drop | CellName::Twice => {
            let cell = if name == CellName::Drop { kit.drop? } else { kit.twice? };
            g.call(cell, stage.vector(step, 0).0).to_vec()
        }
        CellName::Head => {
            let cell = kit.head?;
            let x = stage.vector(step, 0).0;
            let label = stage.index(step, CLASSES);
            g.call(cell, (x, label)).to_vec()
        }
        CellName::Free => {
            let free = kit.free.get(step.size as usize % kit.free.len().max(1))?;
            let args: Vec<Arg<'g>> =
                (0..).zip(&free.ports).map(|(slot, &ty)| argument(stage, step, slot, ty)).collect();
            free.call(g, &args)
        }
    };
    let bound = |value: &Value<'g>| match value.ty().dtype {
        DType::F32 => LIMIT,
        words => stage.bound_of_words(words, f64::from(u32::MAX)),
    };
    Some(results.into_iter().map(|value| (value, bound(&value))).collect())
}

/// Returns an argument for one of the recipe's own cells. Half of the time all list ports get the same list.
fn argument<'g>(stage: &mut Stage<'g, '_>, step: &Step, slot: u32, ty: Type) -> Arg<'g> {
    match ty {
        INDEX => stage.index(step, CLASSES),
        ty if ty.is_list => {
            let again = if slot > 0 && (step.size / 64).is_multiple_of(2) {
                stage.existing_list(ty.element())
            } else {
                None
            };
            again.unwrap_or_else(|| list_of_vectors(stage, step)).0.into()
        }
        ty => stage.of_type(step, slot, ty).0.into(),
    }
}
