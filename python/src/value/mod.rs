//! `Value`: a result of a node, with operators and methods.

mod array;
mod awaited;
mod build;
mod compare;
mod elementwise;
mod losses;
mod operands;

use crate::error::{ClosedError, EmitError};
use crate::graph::Shared;
use crate::module::PyParam;
use crate::types::{PyType, dtype, shape};
pub(crate) use array::stacked;
use autobatch::ir::Graph;
use autobatch::ir::graph::{Arg, Value, ValueKey};
pub(crate) use awaited::Awaited;
pub(crate) use build::{Many, wrapped};
pub(crate) use operands::own_value;
pub(crate) use operands::{Index, floats, row_major};
use operands::{Operand, operand};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PySlice, PyTuple};
use std::sync::Arc;

/// A value of a graph. Operators and methods emit; nothing is computed before the session runs.
#[pyclass(frozen, name = "Value", module = "autobatch")]
pub(crate) struct PyValue {
    graph: Arc<Shared>,
    key: ValueKey,
}

impl PyValue {
    pub(crate) fn new(graph: &Arc<Shared>, key: ValueKey) -> Self {
        Self { graph: Arc::clone(graph), key }
    }

    pub(crate) fn key(&self) -> ValueKey {
        self.key
    }

    pub(crate) fn owner(&self) -> &Arc<Shared> {
        &self.graph
    }

    /// Returns the value in its graph.
    pub(crate) fn get<'g>(&self, graph: &'g Graph) -> PyResult<Value<'g>> {
        graph.value(self.key).ok_or_else(|| {
            EmitError::new_err(format!(
                "the value belongs to graph {}, it is used in graph {}; emit it into this graph again, or bind its \
                 elements: ab.input(array)",
                self.key.graph(),
                graph.number()
            ))
        })
    }

    /// Emits an op on this value.
    fn apply(&self, py: Python<'_>, f: impl for<'g> FnOnce(Value<'g>) -> Value<'g>) -> PyResult<Self> {
        self.graph.emit(py, |graph| Ok(f(self.get(graph)?).key())).and_then(|key| self.made(key))
    }

    /// Emits an op on this value and another operand.
    fn with(
        &self,
        other: &Bound<'_, PyAny>,
        f: impl for<'g> FnOnce(Value<'g>, Value<'g>) -> Value<'g>,
        number: impl for<'g> FnOnce(Value<'g>, f32) -> Value<'g>,
    ) -> PyResult<Self> {
        self.with_operand(other.py(), &operand(other)?, f, number)
    }

    fn with_operand(
        &self,
        py: Python<'_>,
        operand: &Operand,
        f: impl for<'g> FnOnce(Value<'g>, Value<'g>) -> Value<'g>,
        number: impl for<'g> FnOnce(Value<'g>, f32) -> Value<'g>,
    ) -> PyResult<Self> {
        let emitted = self.graph.emit(py, |graph| {
            let own = self.get(graph)?;
            Ok(match operand {
                Operand::Number(x) => number(own, *x),
                Operand::Value(key) => f(own, own_value(graph, *key)?),
                Operand::Array(dims, numbers) => f(own, graph.input_shaped(&dims[..], numbers)),
            }
            .key())
        });
        emitted.and_then(|key| self.made(key))
    }

    /// The outermost extent.
    fn len(&self) -> PyResult<u32> {
        let ty = self.graph.read(|graph| Ok(self.get(graph)?.ty()))?;
        match ty.shape.dims() {
            _ if ty.is_list => Err(PyTypeError::new_err("the length of a list is not known to its readers")),
            [] => Err(PyTypeError::new_err("a scalar has no elements to iterate over, pick or count")),
            [first, ..] => Ok(*first),
        }
    }

    fn made(&self, key: Option<ValueKey>) -> PyResult<Self> {
        key.map(|key| Self::new(&self.graph, key)).ok_or_else(|| EmitError::new_err("the value is poison"))
    }
}

/// The error of an index beyond the outermost extent.
fn out_of_range(index: i64, len: u32) -> PyErr {
    PyIndexError::new_err(format!("index {index} is out of range: the value has {len} elements or rows"))
}

#[pymethods]
impl PyValue {
    /// numpy leaves operators with a value to the value.
    #[classattr]
    fn __array_ufunc__() -> Option<u8> {
        None
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a + b, |a, b| a + b)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a - b, |a, b| a - b)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a * b, |a, b| a * b)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a / b, |a, b| a / b)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| b + a, |a, b| b + a)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| b - a, |a, b| b - a)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| b * a, |a, b| b * a)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| b / a, |a, b| b / a)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, |x| -x)
    }

    fn __pow__(&self, other: &Bound<'_, PyAny>, _modulo: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        self.with(other, |a, b| a.pow(b), |a, b| a.pow(b))
    }

    fn __rpow__(&self, base: f32, _modulo: Option<&Bound<'_, PyAny>>, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, |x| x.graph().fill([0_usize; 0], base).pow(x))
    }

    fn __hash__(&self) -> u64 {
        u64::from(self.key.graph()) << 32 | self.key.id().index() as u64
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "the value is not computed yet, so it has no truth; `await` it in a task, or use select(a, b)",
        ))
    }

    /// `x @ w`: the product with a parameter, or of two values.
    fn __matmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(weight) = other.cast::<PyParam>() {
            let weight = weight.get().param;
            return self.apply(other.py(), |x| x.affine(weight, None));
        }
        self.with(other, |a, b| a.matmul(b), |a, _| a)
    }

    /// `x · W (+ b)`. A matrix `x` gives one product per row.
    #[pyo3(signature = (weight, bias = None))]
    fn affine(&self, py: Python<'_>, weight: &PyParam, bias: Option<&PyParam>) -> PyResult<Self> {
        self.apply(py, |x| x.affine(weight.param, bias.map(|bias| bias.param)))
    }

    /// `x · Wᵀ (+ b)`, for a weight stored as `[outputs, inputs]`.
    #[pyo3(signature = (weight, bias = None))]
    fn affine_transposed(&self, py: Python<'_>, weight: &PyParam, bias: Option<&PyParam>) -> PyResult<Self> {
        self.apply(py, |x| x.affine_transposed(weight.param, bias.map(|bias| bias.param)))
    }

    /// The matrix product of two values.
    fn matmul(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.matmul(b), |a, _| a)
    }

    /// The inner product of two vectors.
    fn dot(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.dot(b), |a, _| a)
    }

    /// The outer product of two vectors.
    fn outer(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.outer(b), |a, _| a)
    }

    /// Equal parts along an axis; without an axis, along the innermost one.
    #[pyo3(signature = (parts, axis = None))]
    fn split<'py>(
        &self,
        py: Python<'py>,
        parts: usize,
        axis: Option<usize>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let keys = self.graph.emit(py, |graph| {
            let x = self.get(graph)?;
            let axis = axis.unwrap_or(x.shape().rank().saturating_sub(1));
            Ok(x.chunks(axis, parts).into_iter().map(Value::key).collect::<Vec<_>>())
        })?;
        let values = keys.into_iter().map(|key| self.made(key)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, values)
    }

    /// A range of an axis; without an axis, of the innermost one.
    #[pyo3(signature = (start, stop, axis = None))]
    fn slice(&self, py: Python<'_>, start: usize, stop: usize, axis: Option<usize>) -> PyResult<Self> {
        self.apply(py, |x| match axis {
            Some(axis) => x.slice_axis(axis, start..stop),
            None => x.slice(start..stop),
        })
    }

    /// The same elements in another shape.
    fn reshape(&self, py: Python<'_>, dims: &Bound<'_, PyAny>) -> PyResult<Self> {
        let shape = shape(dims)?;
        self.apply(py, |x| x.reshape(shape))
    }

    /// Repetition along axes of extent 1 and new outer axes.
    fn broadcast(&self, py: Python<'_>, dims: &Bound<'_, PyAny>) -> PyResult<Self> {
        let shape = shape(dims)?;
        self.apply(py, |x| x.broadcast(shape))
    }

    /// The element, or row of a matrix, at an index; of a list, the value there. An index of a value that is known is checked
    /// at once; any other index out of range fails the execution.
    fn pick(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let is_list = self.graph.read(|graph| Ok(self.get(graph)?.ty().is_list))?;
        if let (Ok(index), false) = (index.extract::<i64>(), is_list) {
            let len = self.len()?;
            if !(0..i64::from(len)).contains(&index) {
                return Err(out_of_range(index, len));
            }
        }
        self.indexed(index, |x, index| x.pick(index))
    }

    /// The outermost extent: the number of elements of a vector, or of rows of a matrix.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.len()? as usize)
    }

    /// The elements of a vector, or the rows of a matrix, in order.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let len = self.len()?;
        let keys = self.graph.emit(py, |graph| {
            let x = self.get(graph)?;
            Ok((0..len).map(|index| x.pick(index).key()).collect::<Vec<_>>())
        })?;
        let values = keys.into_iter().map(|key| self.made(key)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, values)?.try_iter()
    }

    /// numpy would otherwise read a value element by element.
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __array__(&self, _args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "the value is not computed yet, so it is no array; run the session, or `await` it in a task",
        ))
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(self.len()? as isize)?;
            if range.step != 1 {
                return Err(PyTypeError::new_err("a slice of a value has no step"));
            }
            let (start, stop) = (range.start as usize, range.stop as usize);
            return self.apply(index.py(), |x| x.slice_axis(0, start..stop));
        }
        if let Ok(number) = index.extract::<i64>() {
            let len = self.len()?;
            let from_start = if number < 0 { number + i64::from(len) } else { number };
            if !(0..i64::from(len)).contains(&from_start) {
                return Err(out_of_range(number, len));
            }
            return self.apply(index.py(), |x| x.pick(from_start as u32));
        }
        self.pick(index)
    }

    /// The `k` largest elements of each row, descending, and their indices.
    fn top_k(&self, py: Python<'_>, k: usize) -> PyResult<(Self, Self)> {
        let [a, b] = self.graph.emit(py, |graph| Ok(self.get(graph)?.top_k(k).map(Value::key)))?;
        Ok((self.made(a)?, self.made(b)?))
    }

    /// `x` where positive, `slope * x` elsewhere.
    fn leaky_relu(&self, py: Python<'_>, slope: f32) -> PyResult<Self> {
        self.apply(py, |x| x.leaky_relu(slope))
    }

    /// `x` where positive, `alpha * (e^x - 1)` elsewhere.
    #[pyo3(signature = (alpha = 1.0))]
    fn elu(&self, py: Python<'_>, alpha: f32) -> PyResult<Self> {
        self.apply(py, |x| x.elu(alpha))
    }

    /// `x` limited to `low..=high`.
    fn clamp(&self, py: Python<'_>, low: f32, high: f32) -> PyResult<Self> {
        self.apply(py, |x| x.clamp(low, high))
    }

    /// Each row minus its mean, divided by its deviation.
    #[pyo3(signature = (eps = 1e-5))]
    fn layer_norm(&self, py: Python<'_>, eps: f32) -> PyResult<Self> {
        self.apply(py, |x| x.layer_norm(eps))
    }

    /// In training, zero with probability `rate` and scaled up elsewhere; the identity otherwise.
    fn dropout(&self, py: Python<'_>, rate: f32) -> PyResult<Self> {
        self.apply(py, |x| x.dropout(rate))
    }

    /// The identity; it multiplies the gradient by `by`.
    fn scale_gradient(&self, py: Python<'_>, by: f32) -> PyResult<Self> {
        self.apply(py, |x| x.scale_gradient(by))
    }

    /// Elementwise choice: `a` where this condition is true, `b` elsewhere.
    fn select(&self, py: Python<'_>, a: &Self, b: &Self) -> PyResult<Self> {
        self.graph
            .emit(py, |graph| Ok(self.get(graph)?.select(a.get(graph)?, b.get(graph)?).key()))
            .and_then(|key| self.made(key))
    }

    /// Replaces elements by minus infinity where `legal` is false.
    fn mask(&self, py: Python<'_>, legal: Vec<bool>) -> PyResult<Self> {
        self.apply(py, |x| x.mask(&legal))
    }

    /// Conversion to another element type, by its name.
    fn cast(&self, py: Python<'_>, to: &str) -> PyResult<Self> {
        let to = dtype(to)?;
        self.apply(py, |x| x.cast(to))
    }

    /// The type of the value.
    #[getter(r#type)]
    fn ty(&self) -> PyResult<PyType> {
        self.graph.read(|graph| Ok(PyType { ty: self.get(graph)?.ty() }))
    }

    /// The extents of the value.
    #[getter(shape)]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let shape = self.graph.read(|graph| Ok(self.get(graph)?.shape()))?;
        PyTuple::new(py, shape.dims())
    }

    fn __repr__(&self) -> PyResult<String> {
        self.graph.read(|graph| {
            Ok(format!("<autobatch.Value {:?} of graph {}>", self.get(graph)?, self.key.graph()))
        })
    }

    /// Awaits the elements in a task: `scores = await value`.
    fn __await__(slf: Py<Self>) -> Awaited {
        Awaited { values: vec![slf], alone: true, sent: false }
    }
}

impl PyValue {
    fn indexed(
        &self,
        index: &Bound<'_, PyAny>,
        f: impl for<'g> FnOnce(Value<'g>, Arg<'g>) -> Value<'g>,
    ) -> PyResult<Self> {
        let by = Index::of(index)?;
        let emitted = self.graph.emit(index.py(), |graph| Ok(f(self.get(graph)?, by.arg(graph)?).key()));
        emitted.and_then(|key| self.made(key))
    }
}

#[pymethods]
impl PyValue {
    /// Computes the value with the session of its graph and returns its elements.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(session) = self.graph.session() else {
            return Err(ClosedError::new_err(
                "a port of a cell has no elements; call the cell and ask for its results",
            ));
        };
        let arrays = session.get().run_keys(py, &self.graph, &[self.key])?;
        arrays.into_iter().next().ok_or_else(|| EmitError::new_err("the run returned nothing"))
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyValue>()?;
    awaited::register(m)?;
    build::register(m)
}
