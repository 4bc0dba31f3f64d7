//! Calls that torch computes in the midst of a block.

use super::{Block, Lazy};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyNotImplemented, PyTuple};
use std::sync::Arc;

impl Block {
    /// Lets torch execute a function for all instances of `each` that wait for it.
    pub(super) fn execute_among_others<'py>(
        self: &Arc<Self>,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let wait = self.wait.lock().as_ref().map(|wait| wait.clone_ref(py));
        if let Some(wait) = wait {
            let made = wait.bind(py).call1((function, args, kwargs))?;
            if !made.is(PyNotImplemented::get(py)) {
                return Ok(made);
            }
        }
        self.execute_eagerly(function, args, kwargs)
    }

    /// Computes what was recorded, and calls a function of torch on tensors.
    pub(super) fn execute_eagerly<'py>(
        self: &Arc<Self>,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = computed(args.as_any())?.cast_into::<PyTuple>()?;
        let own = kwargs.map(|kwargs| {
            let own = PyDict::new(args.py());
            kwargs.iter().try_for_each(|(key, value)| own.set_item(key, computed(&value)?)).map(|()| own)
        });
        function.call(args, own.transpose()?.as_ref())
    }
}

/// An argument with its recorded tensors computed.
#[pyfunction]
pub(super) fn computed<'py>(any: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = any.py();
    if let Ok(lazy) = any.cast_exact::<Lazy>() {
        return Ok(lazy.get().computed(py)?.into_bound(py));
    }
    if let Ok(tuple) = any.cast_exact::<PyTuple>() {
        let items = tuple.iter().map(|item| computed(&item)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    if let Ok(list) = any.cast_exact::<PyList>() {
        let items = list.iter().map(|item| computed(&item)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    Ok(any.clone())
}
