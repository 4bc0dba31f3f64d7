//! `Held`: a value with a batch size and, once known, its elements. The expressions of `autobatch.dynet` derive from it.
//!
//! A Python class with slots of its own is tracked by the garbage collector, which then visits every expression of a
//! large graph again and again. A class that derives from this one without slots is not. Its objects hold values and
//! arrays alone, so they form no cycles.

use crate::error::EmitError;
use crate::graph::Shared;
use crate::value::{PyValue, own_value};
use autobatch::ir::Graph;
use autobatch::ir::graph::{Value, ValueKey};
use pyo3::intern;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::sync::Arc;

/// A value with a batch size and, once known, its elements.
#[pyclass(subclass, name = "Held", module = "autobatch")]
pub(crate) struct PyHeld {
    /// The value; `None` in a class that computes it.
    #[pyo3(get, set)]
    v: Option<Py<PyAny>>,
    /// The batch size.
    #[pyo3(get, set)]
    b: usize,
    /// The elements.
    #[pyo3(get, set)]
    array: Option<Py<PyAny>>,
}

#[pymethods]
impl PyHeld {
    #[new]
    #[pyo3(signature = (v, b = 1))]
    fn new(v: Option<Py<PyAny>>, b: usize) -> Self {
        Self { v, b, array: None }
    }
}

/// The values of several objects without a batch.
struct Unbatched {
    graph: Arc<Shared>,
    keys: SmallVec<[ValueKey; 8]>,
}

impl Unbatched {
    /// Reads a sequence of objects. `None` if it is empty, or if one is a minibatch or another object.
    fn of(items: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let (mut graph, mut keys) = (None, SmallVec::new());
        for item in items.try_iter()? {
            let item = item?;
            let Ok(held) = item.cast::<PyHeld>() else { return Ok(None) };
            let held = held.borrow();
            if held.b != 1 {
                return Ok(None);
            }
            let value = match &held.v {
                Some(value) => value.bind(item.py()).clone(),
                None => {
                    drop(held);
                    item.getattr(intern!(item.py(), "v"))?
                }
            };
            let Ok(value) = value.cast::<PyValue>() else { return Ok(None) };
            graph.get_or_insert_with(|| Arc::clone(value.get().owner()));
            keys.push(value.get().key());
        }
        Ok(graph.map(|graph| Self { graph, keys }))
    }

    /// Passes the values to `f`, which may emit one. `None` if it emits none.
    fn emit(
        &self,
        py: Python<'_>,
        f: impl for<'g> FnOnce(&'g Graph, SmallVec<[Value<'g>; 8]>) -> Option<Value<'g>>,
    ) -> PyResult<Option<PyValue>> {
        let emitted = self.graph.emit(py, |graph| {
            let values = self.keys.iter().map(|&key| own_value(graph, key)).collect::<PyResult<_>>()?;
            Ok(f(graph, values).map(Value::key))
        })?;
        match emitted {
            None => Ok(None),
            Some(Some(key)) => Ok(Some(PyValue::new(&self.graph, key))),
            Some(None) => Err(EmitError::new_err("the value is poison")),
        }
    }
}

/// The concatenation of vectors, or the vector of scalars, without a batch; `None` for anything else.
#[pyfunction]
fn join(items: &Bound<'_, PyAny>) -> PyResult<Option<PyValue>> {
    let Some(parts) = Unbatched::of(items)? else { return Ok(None) };
    parts.emit(items.py(), |g, values| {
        let rank = values.first()?.shape().rank();
        if rank > 1 || values.iter().any(|value| value.shape().rank() != rank) {
            return None;
        }
        Some(if rank == 0 { g.stack(values) } else { g.concat(values) })
    })
}

/// The sum of values of one shape without a batch; `None` for anything else.
#[pyfunction]
fn sum_of(items: &Bound<'_, PyAny>) -> PyResult<Option<PyValue>> {
    let Some(parts) = Unbatched::of(items)? else { return Ok(None) };
    parts.emit(items.py(), |g, values| {
        let shape = values.first()?.shape();
        let equal = values.iter().all(|value| value.shape() == shape);
        equal.then(|| if values.len() == 1 { values[0] } else { g.list(values).sum() })
    })
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyHeld>()?;
    m.add_function(wrap_pyfunction!(join, m)?)?;
    m.add_function(wrap_pyfunction!(sum_of, m)?)
}
