//! The second operand of a method: a value, a parameter, a number, an array or an index.

use super::PyValue;
use crate::error::EmitError;
use crate::module::PyParam;
use autobatch::ir::Graph;
use autobatch::ir::graph::{Arg, Value, ValueKey};
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::borrow::Cow;

/// An operand of an operator.
pub(super) enum Operand {
    Value(ValueKey),
    Number(f32),
    Array(Vec<usize>, Vec<f32>),
}

pub(crate) fn own_value(graph: &Graph, key: ValueKey) -> PyResult<Value<'_>> {
    graph.value(key).ok_or_else(|| {
        EmitError::new_err(format!(
            "the value belongs to graph {}, it is used in graph {}",
            key.graph(),
            graph.number()
        ))
    })
}

/// Reads an operand of an operator.
pub(super) fn operand(any: &Bound<'_, PyAny>) -> PyResult<Operand> {
    if let Ok(value) = any.cast::<PyValue>() {
        return Ok(Operand::Value(value.get().key()));
    }
    if let Ok(param) = any.cast::<PyParam>() {
        return Ok(Operand::Value(param.get().value(any.py())?.key()));
    }
    if let Ok(number) = any.extract::<f32>() {
        return Ok(Operand::Number(number));
    }
    let (dims, numbers) = floats(any)?;
    Ok(Operand::Array(dims, numbers))
}

/// Reads floats with their shape from an array, a sequence or a number.
pub(crate) fn floats(any: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<f32>)> {
    // numpy would read a string as its number, and None as NaN.
    if any.is_none() || any.is_instance_of::<PyString>() || any.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "expected a value, a number or an array of numbers, found {any:?}"
        )));
    }
    let array: PyReadonlyArrayDyn<'_, f32> = match any.extract() {
        Ok(array) => array,
        Err(_) => {
            let array = as_array(any).map_err(|error| {
                PyTypeError::new_err(format!(
                    "expected a value, a number or an array of numbers, found {any:?}: {error}"
                ))
            })?;
            array.extract()?
        }
    };
    Ok((array.shape().to_vec(), row_major(&array).into_owned()))
}

/// An array of floats with the numbers of any object that numpy can read, or that lends its memory by DLPack.
fn as_array<'py>(any: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = any.py().import("numpy")?;
    let is_lent = any.hasattr("__dlpack__")? && !any.hasattr("__array__")?;
    let lent = is_lent.then(|| numpy.getattr("from_dlpack")?.call1((any,))).transpose()?;
    numpy.getattr("asarray")?.call1((lent.as_ref().unwrap_or(any), "float32"))
}

/// The elements of an array row by row. An array that lies column by column, such as a transpose, is copied.
pub(crate) fn row_major<'a>(array: &'a PyReadonlyArrayDyn<'_, f32>) -> Cow<'a, [f32]> {
    match array.as_slice() {
        // The slice of an array that lies column by column has its elements in that order.
        Ok(elements) if array.is_c_contiguous() => Cow::Borrowed(elements),
        _ => Cow::Owned(array.as_array().iter().copied().collect()),
    }
}

/// Reads an argument that is a value or an index.
pub(crate) enum Index {
    Bound(u32),
    Value(ValueKey),
}

impl Index {
    pub(crate) fn of(any: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(value) = any.cast::<PyValue>() {
            return Ok(Self::Value(value.get().key()));
        }
        any.extract().map(Self::Bound).map_err(|_| {
            PyTypeError::new_err(format!(
                "an index is an int from 0 up or a value of type u32, found {any:?}"
            ))
        })
    }

    pub(crate) fn arg<'g>(&self, graph: &'g Graph) -> PyResult<Arg<'g>> {
        Ok(match *self {
            Self::Bound(index) => Arg::Index(index),
            Self::Value(key) => Arg::Value(own_value(graph, key)?),
        })
    }
}
