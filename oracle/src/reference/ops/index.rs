//! Ops that read indices and noise keys.

use super::floats;
use crate::reference::Noise;
use crate::reference::datum::Datum;
use crate::reference::error::{Checked, RunFault, malformed};
use crate::reference::frame::Call;
use autobatch_ir::hash::noise_key;
use autobatch_ir::numeric::Real;
use autobatch_ir::numeric::noise::{self, Stream};

/// An index, which must be below `bound`: an element of an operand.
pub(crate) fn place_of<T: Real>(
    call: &Call<'_, T>,
    operand: usize,
    element: usize,
    bound: usize,
) -> Checked<usize> {
    match call.words(operand)?.get(element) {
        Some(&index) if (index as usize) < bound => Ok(index as usize),
        Some(_) if call.clamps => Ok(bound - 1),
        Some(&index) => Err(RunFault::Index { index, bound }),
        None => malformed("an index is missing"),
    }
}

/// The table row of a lookup.
pub(crate) fn row_of<T: Real>(call: &Call<'_, T>) -> Checked<usize> {
    place_of(call, 0, 0, call.params[0].ty.shape.rows())
}

/// The label of a row of scores.
pub(crate) fn label<T: Real>(call: &Call<'_, T>, row: usize) -> Checked<usize> {
    place_of(call, 1, row, call.width(0))
}

/// The label among the rows of the parameter.
pub(super) fn label_of_row<T: Real>(call: &Call<'_, T>) -> Checked<usize> {
    place_of(call, 1, 0, call.params[0].ty.shape.rows())
}

pub(super) fn lookup<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let width = call.params[0].ty.shape.width();
    Ok(vec![Datum::floats(&call.params[0].values[row_of(call)? * width..][..width])])
}

/// 1 at an index, and 0 elsewhere.
pub(super) fn one_hot<T: Real>(width: usize, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let hot = place_of(call, 0, 0, width)?;
    Ok(floats((0..width).map(|index| if index == hot { T::ONE } else { T::ZERO }).collect()))
}

/// The noise key derived from the operands `low` and `low + 1`.
fn forked<T: Real>(call: &Call<'_, T>, low: usize, ordinal: u32) -> Checked<[u32; 2]> {
    match (&**call.words(low)?, &**call.words(low + 1)?) {
        (&[low], &[high]) => Ok(noise_key([low, high], ordinal)),
        _ => malformed("a noise key must consist of two words"),
    }
}

/// A noise key derived from another.
pub(super) fn fork_noise<T: Real>(ordinal: u32, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    Ok(forked(call, 0, ordinal)?.map(|word| Datum::words(vec![word])).into())
}

/// Applies the mask and scale of a dropout; the derivative uses it too. In inference it is the identity.
pub(crate) fn mask<T: Real>(rate: f32, ordinal: u32, call: &Call<'_, T>, elements: &[T]) -> Checked<Vec<T>> {
    match call.noise {
        Noise::Off => Ok(elements.to_vec()),
        Noise::On { seed, step } => {
            let [low, high] = forked(call, 1, ordinal)?;
            let stream = Stream::new(seed, step, u64::from(high) << 32 | u64::from(low));
            let mut result = vec![T::ZERO; elements.len()];
            noise::dropout(elements, rate, stream, &mut result);
            Ok(result)
        }
    }
}

/// Dropout of all elements as one row.
pub(super) fn dropout<T: Real>(rate: f32, ordinal: u32, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    Ok(floats(mask(rate, ordinal, call, call.floats(0)?)?))
}
