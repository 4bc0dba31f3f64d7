//! Weights as dicts of arrays.

use crate::error::raised;
use crate::value::floats;
use autobatch::ir::types::Shape;
use autobatch::ir::{Module, Weights};
use autobatch::nn::pytorch::{self, StateArray};
use autobatch::train::CheckpointError;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use std::collections::{BTreeMap, HashMap};

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

/// Returns weights with the arrays of a state dict of PyTorch, and a dict that says which.
pub(crate) fn imported<'py>(
    weights: &Weights,
    state: &Bound<'py, PyMapping>,
    names: &HashMap<String, String>,
) -> PyResult<(Weights, Bound<'py, PyDict>)> {
    let mut arrays = BTreeMap::new();
    for item in state.items()? {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let (shape, values) = floats(&value)?;
        arrays.insert(name, StateArray { shape, values });
    }
    let mut weights = weights.clone();
    let names: Vec<(&str, &str)> = names.iter().map(|(of, to)| (of.as_str(), to.as_str())).collect();
    let report = pytorch::import(arrays, &mut weights, &names)
        .map_err(|error| raised(CheckpointError::PyTorch(error).into()))?;
    let found = PyDict::new(state.py());
    found.set_item("read", report.read)?;
    found.set_item("missing", report.missing)?;
    found.set_item("unexpected", report.unexpected)?;
    found.set_item("joint_biases", report.joint_biases)?;
    Ok((weights, found))
}
