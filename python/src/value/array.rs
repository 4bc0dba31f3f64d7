//! Elements of values as arrays of numpy.

use crate::weights::extents;
use autobatch::ir::types::{DType, Type};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// The elements of values of one type as an array, one row a value. Words are given by their bits.
pub(crate) fn stacked<'py>(
    py: Python<'py>,
    count: usize,
    ty: Option<Type>,
    elements: Vec<f32>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(ty) = ty else { return Ok(PyArray1::<f32>::from_vec(py, elements).into_any()) };
    let mut dims = extents(ty.shape);
    dims.insert(0, count);
    let words = elements.iter().map(|element| element.to_bits());
    Ok(match ty.dtype {
        DType::U32 => PyArray1::from_iter(py, words.map(i64::from)).reshape(dims)?.into_any(),
        DType::I32 => {
            PyArray1::from_iter(py, words.map(|word| i64::from(word as i32))).reshape(dims)?.into_any()
        }
        DType::Bool => PyArray1::from_iter(py, words.map(|word| word != 0)).reshape(dims)?.into_any(),
        DType::F32 | DType::F16 | DType::BF16 => PyArray1::from_vec(py, elements).reshape(dims)?.into_any(),
    })
}
