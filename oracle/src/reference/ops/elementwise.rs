//! Elementwise ops: constants, functions of one operand, arithmetic, comparisons, select, casts.
//!
//! Integers: `add`, `sub` and `mul` wrap; `min`, `max` and comparisons are signed for `i32`.
//!
//! Casts: a float becomes an integer by truncation towards zero, saturated, with 0 for NaN. An integer becomes the
//! nearest float, ties to even. `i32` and `u32` exchange bits. A nonzero number (also NaN) becomes `true`. A bool
//! becomes 0 or 1.

use super::{at, floats};
use crate::reference::datum::{Argument, Datum};
use crate::reference::error::{Checked, malformed};
use crate::reference::frame::Call;
use autobatch_ir::graph::{Binary, Compare};
use autobatch_ir::numeric::Real;
use autobatch_ir::plan::row_ops::{integer_binary, integer_compare};
use autobatch_ir::types::{DType, Type};
use autobatch_ir::with_binary;

/// A value whose elements all have these bits.
pub(super) fn fill<T: Real>(ty: Type, bits: u32) -> Checked<Vec<Datum<T>>> {
    let elements = ty.shape.elements();
    match ty.dtype {
        DType::F32 => Ok(floats(vec![T::from_f32(f32::from_bits(bits)); elements])),
        DType::I32 | DType::U32 | DType::Bool => Ok(vec![Datum::words(vec![bits; elements])]),
        DType::F16 | DType::BF16 => malformed("a constant cannot have a storage format"),
    }
}

pub(super) fn map<T: Real>(call: &Call<'_, T>, function: impl Fn(T) -> T) -> Checked<Vec<Datum<T>>> {
    Ok(floats(call.floats(0)?.iter().map(|&x| function(x)).collect()))
}

/// Applies a function to two operands, element by element.
fn zip_elements<N: Copy, R>(a: &[N], b: &[N], elements: usize, function: impl Fn(N, N) -> R) -> Vec<R> {
    (0..elements).map(|i| function(at(a, i), at(b, i))).collect()
}

pub(super) fn binary<T: Real>(binary: Binary, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let elements = call.results[0].shape.elements();
    match call.types[0].dtype {
        DType::F32 => {
            let (a, b) = (call.floats(0)?, call.floats(1)?);
            Ok(floats(with_binary!(binary, |f| zip_elements(a, b, elements, f))))
        }
        dtype => {
            if matches!(binary, Binary::Div | Binary::Pow) {
                return malformed("integers have no division and no power");
            }
            let function = |a, b| integer_binary(binary, dtype, a, b);
            let (a, b) = (&call.words(0)?, &call.words(1)?);
            Ok(vec![Datum::words(zip_elements(a, b, elements, function))])
        }
    }
}

/// Returns whether `min` or `max` returns its second operand: the first wins ties, and a NaN always wins.
pub(crate) fn takes_second<T: Real>(max: bool, a: T, b: T) -> bool {
    let better = if max { b > a } else { b < a };
    better || b.is_nan()
}

pub(super) fn compare<T: Real>(compare: Compare, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let elements = call.results[0].shape.elements();
    let words = match call.types[0].dtype {
        DType::F32 => {
            let function = match compare {
                Compare::Eq => Real::eq,
                Compare::Ne => Real::ne,
                Compare::Lt => Real::lt,
                Compare::Le => Real::le,
                Compare::Gt => Real::gt,
                Compare::Ge => Real::ge,
            };
            let flag = |a, b| u32::from(function(a, b) != T::ZERO);
            zip_elements(call.floats(0)?, call.floats(1)?, elements, flag)
        }
        dtype => {
            let flag = |a, b| integer_compare(compare, dtype, a, b);
            zip_elements(call.words(0)?, call.words(1)?, elements, flag)
        }
    };
    Ok(vec![Datum::words(words)])
}

/// The second operand where the condition holds, the third elsewhere.
pub(super) fn select<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let condition = &call.words(0)?;
    let elements = call.results[0].shape.elements();
    if call.types[1].dtype == DType::F32 {
        let (a, b) = (call.floats(1)?, call.floats(2)?);
        Ok(floats(choose(condition, a, b, elements)))
    } else {
        let (a, b) = (&call.words(1)?, &call.words(2)?);
        Ok(vec![Datum::words(choose(condition, a, b, elements))])
    }
}

fn choose<N: Copy>(condition: &[u32], a: &[N], b: &[N], elements: usize) -> Vec<N> {
    (0..elements).map(|i| if at(condition, i) != 0 { at(a, i) } else { at(b, i) }).collect()
}

pub(super) fn cast<T: Real>(to: DType, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let from = call.types[0].dtype;
    if from == DType::F32 {
        let function: fn(T) -> u32 = match to {
            DType::F32 => return Ok(vec![Datum::Floats(call.floats(0)?.clone())]),
            DType::I32 => |x| (x.to_f64() as i32) as u32,
            DType::U32 => |x| x.to_f64() as u32,
            DType::Bool => |x| u32::from(x != T::ZERO),
            DType::F16 | DType::BF16 => return malformed("a value cannot have a storage format"),
        };
        let words: Vec<u32> = call.floats(0)?.iter().map(|&x| function(x)).collect();
        return Ok(vec![Datum::words(words)]);
    }
    let words = &call.words(0)?;
    match to {
        DType::F32 if from == DType::I32 => {
            Ok(floats(words.iter().map(|&word| T::from_f64(f64::from(word as i32))).collect()))
        }
        DType::F32 => Ok(floats(words.iter().map(|&word| T::from_f64(f64::from(word))).collect())),
        DType::Bool => Ok(vec![Datum::words(words.iter().map(|&w| u32::from(w != 0)).collect::<Vec<_>>())]),
        DType::I32 | DType::U32 => match &call.args[0] {
            Argument::One(Datum::Words(words)) => Ok(vec![Datum::words(words.clone())]),
            _ => malformed("a list is not a value"),
        },
        DType::F16 | DType::BF16 => malformed("a value cannot have a storage format"),
    }
}
