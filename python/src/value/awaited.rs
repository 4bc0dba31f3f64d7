//! Values that tasks await.

use super::PyValue;
use crate::error::EmitError;
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;

/// The iterator of an `await`: it yields itself once, and its result is what the driver of the tasks sends.
#[pyclass(module = "autobatch")]
pub(crate) struct Awaited {
    pub(crate) values: Vec<Py<PyValue>>,
    /// Whether the result is one array instead of a list.
    pub(crate) alone: bool,
    pub(super) sent: bool,
}

#[pymethods]
impl Awaited {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        let mut awaited = slf.borrow_mut(py);
        if awaited.sent {
            return Err(EmitError::new_err(
                "a value is awaited outside of tasks; pass the async function to Session.tasks or Trainer.step_tasks",
            ));
        }
        awaited.sent = true;
        drop(awaited);
        Ok(slf)
    }

    fn send(slf: Py<Self>, py: Python<'_>, answer: Py<PyAny>) -> PyResult<Py<Self>> {
        if answer.is_none(py) {
            return Self::__next__(slf, py);
        }
        Err(PyStopIteration::new_err((answer,)))
    }
}

/// Awaits several values in one round: `a, b = await ab.gather(x, y)`.
#[pyfunction]
#[pyo3(signature = (*values))]
fn gather(values: Vec<Py<PyValue>>) -> Awaited {
    Awaited { values, alone: false, sent: false }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Awaited>()?;
    m.add_function(wrap_pyfunction!(gather, m)?)
}
