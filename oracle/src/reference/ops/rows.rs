//! Reductions within a value, row by row, over 16 virtual lanes.

use super::floats;
use crate::reference::datum::Datum;
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use autobatch_ir::graph::{Fold, Over};
use autobatch_ir::numeric::{Real, row};

pub(super) fn fold_rows<T: Real>(call: &Call<'_, T>, fold: impl Fn(&[T]) -> T) -> Checked<Vec<Datum<T>>> {
    Ok(floats(call.floats(0)?.chunks_exact(call.width(0)).map(fold).collect()))
}

pub(super) fn map_rows<T: Real>(call: &Call<'_, T>, map: impl Fn(&[T], &mut [T])) -> Checked<Vec<Datum<T>>> {
    let elements = call.floats(0)?;
    let mut result = vec![T::ZERO; elements.len()];
    for (out, row) in result.chunks_exact_mut(call.width(0)).zip(elements.chunks_exact(call.width(0))) {
        map(row, out);
    }
    Ok(floats(result))
}

/// A fold of each row, or of all elements as one row.
pub(super) fn reduce<T: Real>(fold: Fold, over: Over, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let function = match fold {
        Fold::Sum => row::sum,
        Fold::Mean => row::mean,
        Fold::Max => row::max,
        Fold::Min => row::min,
    };
    match over {
        Over::Last => fold_rows(call, function),
        Over::All => Ok(floats(vec![function(call.floats(0)?)])),
    }
}

/// The index of the largest element of each row.
pub(super) fn argmax<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let rows = call.floats(0)?.chunks_exact(call.width(0));
    Ok(vec![Datum::words(rows.map(row::argmax).collect::<Vec<_>>())])
}

/// The largest elements of each row, and their indices.
pub(super) fn top_k<T: Real>(k: usize, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let rows = call.floats(0)?.chunks_exact(call.width(0));
    let mut indices = vec![0; call.results[1].shape.elements()];
    let mut values = Vec::with_capacity(indices.len());
    for (out, row) in indices.chunks_exact_mut(k).zip(rows) {
        row::top_k(row, out);
        values.extend(out.iter().map(|&index| row[index as usize]));
    }
    Ok(vec![Datum::floats(values), Datum::words(indices)])
}
