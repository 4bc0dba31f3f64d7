//! `Expression`: the values of `autobatch.dynet`, and its functions that programs call most.
//!
//! DyNet stores the elements of `{d0, d1}` column by column. That is the layout of `[d1, d0]` here, so the shape of a value is
//! DyNet's in reverse and no element moves. `{1}` is a scalar. A minibatch is one value with the batch as its outermost axis, so
//! an operation of a minibatch is one node.
//!
//! The class is native, because a step of a program emits thousands of expressions. The package `autobatch.dynet` adds the methods
//! that read elements. Objects hold values and arrays alone and form no cycles, so the collector of Python does not visit them.

mod batched;
mod elements;
mod operators;
mod products;
mod several;

use crate::error::EmitError;
use crate::graph::Shared;
use crate::module::PyParam;
use crate::train::PyTrainer;
use crate::value::{PyValue, own_value};
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::ir::{Graph, Param};
use batched::Batched;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A node of the current graph. `v` is the native value, `b` the batch size, and `array` holds the elements once they are computed.
#[pyclass(subclass, name = "Expression", module = "autobatch.dynet")]
pub(crate) struct PyExpression {
    /// `None` in a parameter, whose property `v` makes a node in each graph.
    value: Option<(Arc<Shared>, ValueKey)>,
    /// The batch size.
    #[pyo3(get)]
    b: usize,
    /// The elements, once they are computed.
    #[pyo3(get, set)]
    array: Option<Py<PyAny>>,
    /// The native parameter or table, once it is declared.
    #[pyo3(get, set)]
    handle: Option<Py<PyAny>>,
    /// Of a product with a parameter: the other factor, and the parameter. A bias that follows joins the product.
    factors: Option<(ValueKey, Param)>,
}

/// The error of a value that a fault replaced. The error of the fault comes first.
fn poison() -> PyErr {
    EmitError::new_err("the value is poison")
}

/// The value of an expression and its batch size.
struct Known {
    graph: Arc<Shared>,
    key: ValueKey,
    b: usize,
}

impl Known {
    /// Reads an expression.
    fn of(expression: &Bound<'_, PyExpression>) -> PyResult<Self> {
        let held = expression.borrow();
        let b = held.b;
        if let Some((graph, key)) = &held.value {
            return Ok(Self { graph: Arc::clone(graph), key: *key, b });
        }
        drop(held);
        let value = expression.getattr(intern!(expression.py(), "v"))?;
        let value = value.cast::<PyValue>()?.get();
        Ok(Self { graph: Arc::clone(value.owner()), key: value.key(), b })
    }

    fn get<'g>(&self, graph: &'g Graph) -> PyResult<Batched<'g>> {
        Ok(Batched::new(own_value(graph, self.key)?, self.b))
    }

    /// Emits an expression.
    fn emit(
        &self,
        py: Python<'_>,
        f: impl for<'g> FnOnce(&'g Graph, Batched<'g>) -> PyResult<Batched<'g>>,
    ) -> PyResult<PyExpression> {
        self.emit_some(py, |graph, x| f(graph, x).map(Some))?.ok_or_else(poison)
    }

    /// Emits an expression, or none.
    fn emit_some(
        &self,
        py: Python<'_>,
        f: impl for<'g> FnOnce(&'g Graph, Batched<'g>) -> PyResult<Option<Batched<'g>>>,
    ) -> PyResult<Option<PyExpression>> {
        let made = self.graph.emit(py, |graph| {
            let made = f(graph, self.get(graph)?)?;
            Ok(made.map(|made| (made.value.key(), made.b)))
        })?;
        let Some((key, b)) = made else { return Ok(None) };
        Ok(Some(PyExpression::made(Arc::clone(&self.graph), key.ok_or_else(poison)?, b)))
    }

    /// Looks at the value without emitting.
    fn read<R>(&self, f: impl FnOnce(Batched<'_>) -> PyResult<R>) -> PyResult<R> {
        self.graph.read(|graph| f(self.get(graph)?))
    }
}

impl PyExpression {
    fn made(graph: Arc<Shared>, key: ValueKey, b: usize) -> Self {
        Self { value: Some((graph, key)), b, array: None, handle: None, factors: None }
    }

    /// The native parameter that an expression stands for; `None` of any other expression.
    fn param(expression: &Bound<'_, Self>) -> PyResult<Option<Param>> {
        let held = expression.borrow();
        if held.value.is_some() {
            return Ok(None);
        }
        let handle = held.handle.as_ref().map(|handle| handle.bind(expression.py()).clone());
        drop(held);
        // The property declares the parameters that were added since.
        let handle = handle.map_or_else(|| expression.getattr(intern!(expression.py(), "native")), Ok)?;
        Ok(handle.cast::<PyParam>().ok().map(|param| param.get().param))
    }

    /// Emits an expression of this one.
    fn emit(
        slf: &Bound<'_, Self>,
        f: impl for<'g> FnOnce(&'g Graph, Batched<'g>) -> PyResult<Batched<'g>>,
    ) -> PyResult<Self> {
        Known::of(slf)?.emit(slf.py(), f)
    }

    /// Emits an op on the value of this one.
    fn apply(slf: &Bound<'_, Self>, f: impl for<'g> FnOnce(Value<'g>) -> Value<'g>) -> PyResult<Self> {
        Self::emit(slf, |_, x| Ok(Batched::new(f(x.value), x.b)))
    }
}

#[pymethods]
impl PyExpression {
    #[new]
    #[pyo3(signature = (v, b = 1))]
    fn new(v: Option<&PyValue>, b: usize) -> Self {
        let value = v.map(|v| (Arc::clone(v.owner()), v.key()));
        Self { value, b, array: None, handle: None, factors: None }
    }

    /// The native value; `None` in a class that computes it.
    #[getter]
    fn v(&self) -> Option<PyValue> {
        self.value.as_ref().map(|(graph, key)| PyValue::new(graph, *key))
    }

    /// Computes the elements, if that takes a few operations. Returns whether they are known.
    fn compute_small(slf: &Bound<'_, Self>, trainer: &PyTrainer) -> PyResult<bool> {
        let known = Known::of(slf)?;
        let array = trainer.small(slf.py(), &known.graph, known.key)?.map(Bound::unbind);
        let is_known = array.is_some();
        slf.borrow_mut().array = array;
        Ok(is_known)
    }

    /// The native shape without the batch.
    fn extents<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        Known::of(slf)?.read(|x| PyTuple::new(slf.py(), x.extents()))
    }

    /// The native value of a vector. A column `{n, 1}` counts as one, as it does in DyNet.
    fn vector(slf: &Bound<'_, Self>) -> PyResult<PyValue> {
        Self::emit(slf, |_, x| Ok(x.vector()))?.v().ok_or_else(poison)
    }

    /// The extents and the batch size.
    fn dim<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyTuple>, usize)> {
        Known::of(slf)?.read(|x| Ok((PyTuple::new(slf.py(), x.dims())?, x.b)))
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyExpression>()
}
