//! Calls that torch computes in the midst of a block.

use super::ops::Named;
use super::{Block, Lazy};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyNotImplemented, PyTuple};
use std::sync::Arc;

impl Block {
    /// Whether a call has an argument that waits to be computed. While a method is traced, all do.
    pub(super) fn waits_for(
        self: &Arc<Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        let kwargs = kwargs.is_some_and(|kwargs| kwargs.iter().any(|(_, value)| waits(&value)));
        Ok(kwargs || waits(args.as_any()) || self.lock()?.trace.is_open())
    }

    /// The function of torch that computes an op of a method or an operator.
    pub(super) fn function_of<'py>(
        &self,
        op: Named,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (args.py(), op.name());
        if args.get_item(0)?.is_exact_instance_of::<Lazy>() {
            return self.torch.tensor.bind(py).getattr(name);
        }
        // Such as `1 - x`.
        py.import("operator")?.getattr(if name == "div" { "truediv" } else { &*name })
    }

    /// Lets torch execute an op none of whose tensors waits.
    pub(super) fn call_known<'py>(
        &self,
        op: Named,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let flag = kwargs.map(|kwargs| kwargs.get_item("inplace")).transpose()?.flatten();
        if (op.in_place || flag.is_some_and(|flag| flag.is_truthy().unwrap_or(true)))
            && let Ok(first) = args.get_item(0)?.cast_exact::<Lazy>()
            && let Some(tensor) = first.get().known(py)?
            && tensor.getattr(py, "requires_grad")?.is_truthy(py)?
        {
            // Results of one flush are views of one tensor, which torch lets no one change.
            return Err(self.error(py, &op.name(), "it changes a computed tensor with gradients in place"));
        }
        call(function, args, kwargs)
    }

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
        call(function, args, kwargs)
    }
}

/// Calls a function of torch on tensors, after what was recorded of them is computed.
pub(super) fn call<'py>(
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

/// Whether an argument has a tensor that waits to be computed.
#[pyfunction]
pub(super) fn waits(any: &Bound<'_, PyAny>) -> bool {
    if let Ok(lazy) = any.cast_exact::<Lazy>() {
        return lazy.get().pending().is_some();
    }
    if let Ok(tuple) = any.cast_exact::<PyTuple>() {
        return tuple.iter_borrowed().any(|item| waits(&item));
    }
    any.cast_exact::<PyList>().is_ok_and(|list| list.iter().any(|item| waits(&item)))
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
