//! `Paused`: a forward pass that waits for the gradients of its outputs.

use crate::error::{BusyError, raised};
use crate::session::{PySession, released};
use crate::value::{PyValue, floats, stacked};
use crate::weights::extents;
use autobatch::Paused;
use autobatch::ir::graph::ValueKey;
use autobatch::ir::types::Type;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// A forward pass. `Session.backward` computes its gradients once.
#[pyclass(frozen, name = "Paused", module = "autobatch")]
pub(crate) struct PyPaused {
    paused: Mutex<Paused>,
    /// The values of each group.
    groups: Vec<Vec<ValueKey>>,
    /// The inputs whose gradients were requested, with their shapes.
    inputs: Vec<(ValueKey, Vec<usize>)>,
}

#[pymethods]
impl PyPaused {
    fn __repr__(&self) -> String {
        format!("<autobatch.Paused of {} groups of outputs>", self.groups.len())
    }
}

fn type_of(value: &PyValue) -> PyResult<Type> {
    value.owner().read(|graph| Ok(value.get(graph)?.ty()))
}

#[pymethods]
impl PySession {
    /// Executes the forward part of a plan and pauses. Each group of outputs has one type and becomes one array, one
    /// row a value. `inputs` are values whose gradients are wanted besides those of the parameters.
    #[pyo3(signature = (groups, inputs = Vec::new()))]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        groups: Vec<Vec<Py<PyValue>>>,
        inputs: Vec<Py<PyValue>>,
    ) -> PyResult<(PyPaused, Bound<'py, PyList>)> {
        let Some(first) = groups.iter().flatten().next() else {
            return Err(PyValueError::new_err("no output is asked for; pass lists of values"));
        };
        let graph = Arc::clone(first.get().owner());
        let mut session = self.lock()?;
        let paused = graph.read(|graph| {
            let own = |value: &Py<PyValue>| value.get().get(graph);
            let outputs = groups.iter().flatten().map(own).collect::<PyResult<Vec<_>>>()?;
            let inputs = inputs.iter().map(own).collect::<PyResult<Vec<_>>>()?;
            released(py, || session.forward(graph, outputs, inputs)).map_err(raised)
        })?;
        let arrays = PyList::empty(py);
        for group in &groups {
            let Some(first) = group.first() else {
                arrays.append(PyArray1::<f32>::from_vec(py, Vec::new()))?;
                continue;
            };
            let ty = type_of(first.get())?;
            let mut elements = Vec::with_capacity(group.len() * ty.shape.elements() as usize);
            for value in group {
                let found = type_of(value.get())?;
                if found != ty {
                    return Err(PyValueError::new_err(format!(
                        "the values of a group have one type, found {ty} and {found}; return them as two groups"
                    )));
                }
                elements
                    .extend(paused.by_key(value.get().key()).into_iter().flat_map(|row| row.iter().copied()));
            }
            arrays.append(stacked(py, group.len(), Some(ty), elements)?)?;
        }
        let keys = |group: Vec<Py<PyValue>>| group.iter().map(|value| value.get().key()).collect();
        let inputs = inputs.iter().map(|value| Ok((value.get().key(), extents(type_of(value.get())?.shape))));
        let inputs = inputs.collect::<PyResult<_>>()?;
        let groups = groups.into_iter().map(keys).collect();
        Ok((PyPaused { paused: Mutex::new(paused), groups, inputs }, arrays))
    }

    /// Computes the gradients of a forward pass. `gradients` has an array of the shape of each group, or None for
    /// zeros. Returns the gradients of the parameters by name, and those of the inputs; None where no output depends on it.
    fn backward<'py>(
        &self,
        py: Python<'py>,
        paused: &PyPaused,
        gradients: Vec<Option<Bound<'py, PyAny>>>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyList>)> {
        if gradients.len() != paused.groups.len() {
            return Err(PyValueError::new_err(format!(
                "the forward pass has {} groups, found {} gradients; pass one each, or None",
                paused.groups.len(),
                gradients.len()
            )));
        }
        let mut arrays = Vec::new();
        for (group, gradient) in paused.groups.iter().zip(&gradients) {
            let Some(gradient) = gradient else { continue };
            let (dims, elements) = floats(gradient)?;
            if dims.first().copied() != Some(group.len()) {
                return Err(PyValueError::new_err(format!(
                    "a group has {} values, its gradient has the shape {dims:?}; pass one row each",
                    group.len()
                )));
            }
            arrays.push((group, elements));
        }
        let mut keyed = Vec::new();
        for (group, elements) in &arrays {
            let width = elements.len().checked_div(group.len()).unwrap_or(0).max(1);
            keyed.extend(group.iter().copied().zip(elements.chunks(width)));
        }
        let mut session = self.lock()?;
        let mut held = paused.paused.try_lock().ok_or_else(|| {
            BusyError::new_err("another thread differentiates this forward pass; call forward once a thread")
        })?;
        let made = released(py, || session.backward_by_key(&mut held, &keyed)).map_err(raised)?;
        let params = PyDict::new(py);
        let module = session.module();
        let inputs = PyList::empty(py);
        for (key, dims) in &paused.inputs {
            let row = made.of_key(*key).map(|row| row.to_vec());
            inputs.append(row.map(|row| row.into_pyarray(py).reshape(dims.clone())).transpose()?)?;
        }
        for (gradient, decl) in made.into_params().into_iter().zip(&module.params) {
            let dims = extents(decl.ty.shape);
            let elements = gradient.reached.then_some(gradient.elements);
            let array = elements.map(|elements| elements.into_pyarray(py).reshape(dims)).transpose()?;
            params.set_item(gradient.name, array)?;
        }
        Ok((params, inputs))
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPaused>()
}
