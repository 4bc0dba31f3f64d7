//! Weights as dicts of arrays.

use crate::error::raised;
use crate::value::floats;
use autobatch::ir::types::Shape;
use autobatch::ir::{Module, Weights};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns the values of all parameters by name.
pub(crate) fn weights_dict<'py>(py: Python<'py>, weights: &Weights) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for param in weights.iter() {
        let values = PyArray1::from_slice(py, param.values());
        all.set_item(param.name(), values.reshape(extents(param.ty().shape))?)?;
    }
    Ok(all)
}

/// The extents of a shape, as numpy takes them.
pub(crate) fn extents(shape: Shape) -> Vec<usize> {
    shape.dims().iter().map(|&extent| extent as usize).collect()
}

/// Returns weights with some values replaced.
pub(crate) fn replaced(module: &Module, weights: &Weights, values: &Bound<'_, PyDict>) -> PyResult<Weights> {
    let mut weights = weights.clone();
    for (name, value) in values {
        let name: String = name.extract()?;
        let id = weights.id(&name).map_err(|error| raised(error.into()))?;
        let (dims, numbers) = floats(&value)?;
        let expected = extents(module.params[id.index()].ty.shape);
        if dims != expected {
            let help = match (dims.as_slice(), expected.as_slice()) {
                ([a, b], [c, d]) if (a, b) == (d, c) => "; transpose it: PyTorch stores [outputs, inputs]",
                _ => "",
            };
            return Err(crate::error::WeightsError::new_err(format!(
                "@{name} has the shape {expected:?}, found {dims:?}{help}"
            )));
        }
        weights.set(id, &numbers).map_err(|error| raised(error.into()))?;
    }
    Ok(weights)
}
