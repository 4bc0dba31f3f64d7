//! The phases of a training step: forward, backward and update, one by one.

use crate::error::{BusyError, raised};
use crate::graph::{PyGraph, Shared};
use crate::optim::PyOptimizer;
use crate::session::{array, released};
use crate::train::PyTrainer;
use crate::value::{PyValue, floats, own_value};
use crate::weights::extents;
use autobatch::ir::Graph;
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::{Growing, Row, SetAside};
use numpy::{PyArray1, PyArrayMethods};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::HashSet;

/// An optimiser with its states that a trainer does not use now.
#[pyclass(frozen, name = "SetAside", module = "autobatch")]
struct PySetAside {
    state: Mutex<SetAside>,
}

/// Returns the values of a graph with these keys, and an error for a value of another graph.
fn values<'g>(graph: &'g Graph, values: &[Py<PyValue>]) -> PyResult<Vec<Value<'g>>> {
    values.iter().map(|value| value.get().get(graph)).collect()
}

/// Elements as an array of the shape of a parameter.
fn shaped<'py>(
    py: Python<'py>,
    trainer: &autobatch::Trainer,
    name: &str,
    elements: &[f32],
) -> PyResult<Bound<'py, PyAny>> {
    let id = trainer.weights().id(name).map_err(|error| raised(error.into()))?;
    let shape = trainer.module().params[id.index()].ty.shape;
    let dims = extents(shape);
    Ok(PyArray1::from_slice(py, elements).reshape(dims)?.into_any())
}

/// The elements of a value as an array.
fn as_array<'py>(py: Python<'py>, value: Value<'_>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
    array(py, row, value.ty().dtype, value.shape())
}

impl PyTrainer {
    /// Passes the incremental execution of a graph to `f`.
    fn grow<R>(
        &self,
        graph: &Shared,
        f: impl for<'g> FnOnce(&mut Growing<'_, 'g>) -> PyResult<R>,
    ) -> PyResult<R> {
        let mut trainer = self.lock()?;
        graph.read(|graph| {
            let mut suspended = self.suspended.lock();
            let mut growing = trainer.resume(graph, std::mem::take(&mut *suspended));
            let outcome = f(&mut growing);
            *suspended = growing.suspend();
            outcome
        })
    }

    /// The elements of a value that an earlier call computed, or that takes a few operations. `None` for any other, which is not
    /// computed.
    pub(crate) fn small<'py>(
        &self,
        py: Python<'py>,
        graph: &Shared,
        key: ValueKey,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.grow(graph, |growing| {
            let value = own_value(growing.graph(), key)?;
            if growing.computed(value).is_none() {
                growing.evaluate_small([value]).map_err(raised)?;
            }
            growing.computed(value).map(|row| as_array(py, value, row)).transpose()
        })
    }
}

#[pymethods]
impl PyTrainer {
    /// An empty graph for `evaluate` and `backward`. Its nodes name no lines.
    fn graph(&self) -> PyGraph {
        PyGraph { shared: Shared::without_lines(Graph::new(&self.module)) }
    }

    /// Computes values of a graph and returns their arrays. Values that an earlier call computed are not computed again.
    /// With `ahead` it also computes every value that no node reads, for later calls.
    #[pyo3(signature = (values, ahead = false))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        values: Vec<Py<PyValue>>,
        ahead: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let Some(first) = values.first() else { return Ok(PyList::empty(py)) };
        self.grow(first.get().owner(), |growing| {
            let values = &self::values(growing.graph(), &values)?;
            let run = released(py, || if ahead { growing.run_ahead(values) } else { growing.run(values) });
            let run = run.map_err(raised)?;
            let arrays = values.iter().map(|&value| as_array(py, value, &run[value]));
            PyList::new(py, arrays.collect::<PyResult<Vec<_>>>()?)
        })
    }

    /// Executes a graph forward and in reverse, and adds the gradients of a scalar to the ones waiting for `update`.
    /// Returns the scalar, and the gradients of the requested values.
    #[pyo3(signature = (loss, values = Vec::new()))]
    fn backward<'py>(
        &self,
        py: Python<'py>,
        loss: &PyValue,
        values: Vec<Py<PyValue>>,
    ) -> PyResult<(f32, Bound<'py, PyList>)> {
        let mut trainer = self.lock()?;
        loss.owner().read(|graph| {
            let (loss, values) = (loss.get(graph)?, self::values(graph, &values)?);
            let backward = released(py, || trainer.backward(graph, loss, &values)).map_err(raised)?;
            let gradient = |(row, value): (&Option<autobatch::RowBuf>, &Value<'_>)| match row {
                Some(row) => array(py, row, value.ty().dtype, value.shape()),
                None => Ok(py.None().into_bound(py)),
            };
            let gradients = backward.1.iter().zip(&values).map(gradient).collect::<PyResult<Vec<_>>>()?;
            Ok((backward.0, PyList::new(py, gradients)?))
        })
    }

    /// Updates the parameters with the waiting gradients.
    fn update(&self, py: Python<'_>) -> PyResult<()> {
        let mut trainer = self.lock()?;
        released(py, || trainer.update()).map_err(raised)
    }

    /// Replaces the numbers of an input of a graph. `evaluate` computes all values of the graph again.
    fn rebind(&self, value: &PyValue, elements: &Bound<'_, PyAny>) -> PyResult<()> {
        let (_, elements) = floats(elements)?;
        *self.suspended.lock() = autobatch::SuspendedGrowth::default();
        value.owner().read(|graph| match graph.rebind(value.get(graph)?, &elements) {
            true => Ok(()),
            false => Err(PyValueError::new_err(format!(
                "only an input can get other numbers, as many as it has; found {} numbers",
                elements.len()
            ))),
        })
    }

    /// Discards the waiting gradients.
    fn discard_gradients(&self) -> PyResult<()> {
        self.lock()?.discard_gradients();
        Ok(())
    }

    /// The waiting gradient of a parameter.
    fn gradient<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let mut trainer = self.lock()?;
        let gradient = trainer.gradient(name).map_err(raised)?;
        shaped(py, &trainer, name, &gradient)
    }

    /// The value of a parameter.
    fn weight<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let trainer = self.lock()?;
        let weight = trainer.weights().by_name(name).map_err(|error| raised(error.into()))?;
        shaped(py, &trainer, name, weight)
    }

    /// An optimiser for some parameters, with fresh states, for `exchange`.
    fn set_aside(&self, optimizer: &PyOptimizer, names: HashSet<String>) -> PyResult<PySetAside> {
        let optimizer = optimizer.optimizer.clone();
        let aside = self.lock()?.set_aside(optimizer, |param| names.contains(&param.name)).map_err(raised)?;
        Ok(PySetAside { state: Mutex::new(aside) })
    }

    /// Exchanges the optimiser with its states for another one.
    fn exchange(&self, other: &PySetAside) -> PyResult<()> {
        let mut state = other
            .state
            .try_lock()
            .ok_or_else(|| BusyError::new_err("another thread exchanges this optimiser"))?;
        self.lock()?.exchange(&mut state).map_err(raised)
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySetAside>()
}
