//! Folds over lists, from the first value to the last.

use super::floats;
use super::index::place_of;
use crate::reference::datum::Datum;
use crate::reference::error::{Checked, RunFault};
use crate::reference::frame::Call;
use autobatch_ir::graph::ListFold;
use autobatch_ir::numeric::{Real, graph_attention, list};
use autobatch_ir::types::DType;

/// A fold of the values of a list, element by element; zeros for an empty list.
pub(super) fn fold<T: Real>(fold: ListFold, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let mut result = vec![T::ZERO; call.results[0].shape.elements()];
    match fold {
        ListFold::Sum => list::sum(&call.rows(0)?, &mut result),
        ListFold::Mean => list::mean(&call.rows(0)?, &mut result),
        ListFold::Max => list::max(&call.rows(0)?, &mut result),
        ListFold::LogSumExp => list::logsumexp(&call.rows(0)?, &mut result),
        ListFold::ArgMax => {
            let mut winners = vec![0; result.len()];
            list::argmax(&call.rows(0)?, &mut winners);
            return Ok(vec![Datum::words(winners)]);
        }
    }
    Ok(floats(result))
}

/// The value of a list at an index. Zeros stand for a value of an empty list, if an index out of range is no error.
pub(super) fn pick<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let items = call.items(PICKED)?;
    if items.is_empty() && call.clamps {
        let (ty, elements) = (call.results[0], call.results[0].shape.elements());
        let is_float = ty.dtype == DType::F32;
        return Ok(vec![if is_float {
            Datum::floats(vec![T::ZERO; elements])
        } else {
            Datum::words(vec![0; elements])
        }]);
    }
    Ok(vec![items[place_of(call, 0, 0, items.len())?].clone()])
}

/// The operand of a pick that is the list.
pub(crate) const PICKED: usize = 1;

/// Checks that two lists have equal lengths.
fn check_lengths<T: Real>(a: &[&[T]], b: &[&[T]]) -> Checked<()> {
    let (expected, found) = (a.len(), b.len());
    if expected == found { Ok(()) } else { Err(RunFault::Lengths { expected, found }) }
}

/// `sum of score_i * value_i`, with the scores unchanged or after a softmax.
pub(super) fn weighted_sum<T: Real>(softmax: bool, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let (scores, values) = (call.rows(0)?, call.rows(1)?);
    check_lengths(&scores, &values)?;
    let mut result = vec![T::ZERO; call.results[0].shape.elements()];
    if softmax {
        list::softmax_weighted_sum(&scores, &values, &mut result);
    } else {
        list::weighted_sum(&scores, &values, &mut result);
    }
    Ok(floats(result))
}

/// Attention of a query over keys and values.
pub(super) fn attend<T: Real>(scale: T, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let (keys, values) = (call.rows(1)?, call.rows(2)?);
    check_lengths(&keys, &values)?;
    let mut result = vec![T::ZERO; call.results[0].shape.elements()];
    list::attend(call.floats(0)?, &keys, &values, scale, &mut result);
    Ok(floats(result))
}

/// Graph attention of a query over keys and values.
pub(super) fn graph_attend<T: Real>(slope: T, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let (keys, values) = (call.rows(1)?, call.rows(2)?);
    check_lengths(&keys, &values)?;
    let mut result = vec![T::ZERO; call.results[0].shape.elements()];
    graph_attention::attend(call.floats(0)?, &keys, &values, slope, &mut result);
    Ok(floats(result))
}
