//! `Value`: a result of a node, with operators and methods.

use crate::error::{ClosedError, EmitError};
use crate::graph::{Shared, current, wrap};
use crate::module::PyParam;
use crate::types::{PyType, dtype, shape};
use autobatch::ir::graph::{Arg, Value, ValueKey};
use autobatch::ir::{Graph, types::Type};
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::sync::Arc;

/// A value of a graph. Operators and methods emit; nothing is computed before the session runs.
#[pyclass(frozen, name = "Value", module = "autobatch")]
pub(crate) struct PyValue {
    graph: Arc<Shared>,
    key: ValueKey,
}

/// An operand of an operator.
enum Operand {
    Value(ValueKey),
    Number(f32),
    Array(Vec<usize>, Vec<f32>),
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
        let operand = operand(other)?;
        let emitted = self.graph.emit(other.py(), |graph| {
            let own = self.get(graph)?;
            Ok(match &operand {
                Operand::Number(x) => number(own, *x),
                Operand::Value(key) => f(own, own_value(graph, *key)?),
                Operand::Array(dims, numbers) => f(own, graph.input_shaped(&dims[..], numbers)),
            }
            .key())
        });
        emitted.and_then(|key| self.made(key))
    }

    fn made(&self, key: Option<ValueKey>) -> PyResult<Self> {
        key.map(|key| Self::new(&self.graph, key)).ok_or_else(|| EmitError::new_err("the value is poison"))
    }
}

fn own_value(graph: &Graph, key: ValueKey) -> PyResult<Value<'_>> {
    graph.value(key).ok_or_else(|| {
        EmitError::new_err(format!(
            "the value belongs to graph {}, it is used in graph {}",
            key.graph(),
            graph.number()
        ))
    })
}

fn operand(any: &Bound<'_, PyAny>) -> PyResult<Operand> {
    if let Ok(value) = any.cast::<PyValue>() {
        return Ok(Operand::Value(value.get().key));
    }
    if let Ok(param) = any.cast::<PyParam>() {
        return Ok(Operand::Value(param.get().value(any.py())?.key));
    }
    if let Ok(number) = any.extract::<f32>() {
        return Ok(Operand::Number(number));
    }
    let (dims, numbers) = floats(any)?;
    Ok(Operand::Array(dims, numbers))
}

/// Reads floats with their shape from an array, a sequence or a number.
pub(crate) fn floats(any: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<f32>)> {
    let py = any.py();
    // numpy would read a string as its number, and None as NaN.
    if any.is_none() || any.is_instance_of::<PyString>() || any.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "expected a value, a number or an array of numbers, found {any:?}"
        )));
    }
    let array: PyReadonlyArrayDyn<'_, f32> = match any.extract() {
        Ok(array) => array,
        Err(_) => {
            let as_array = py.import("numpy")?.getattr("asarray")?.call1((any, "float32"));
            let array = as_array.map_err(|error| {
                PyTypeError::new_err(format!(
                    "expected a value, a number or an array of numbers, found {any:?}: {error}"
                ))
            })?;
            array.extract()?
        }
    };
    let dims = array.shape().to_vec();
    let numbers = match array.as_slice() {
        Ok(numbers) => numbers.to_vec(),
        Err(_) => array.as_array().iter().copied().collect(),
    };
    Ok((dims, numbers))
}

/// Reads an argument that is a value or an index.
pub(crate) enum Index {
    Bound(u32),
    Value(ValueKey),
}

impl Index {
    pub(crate) fn of(any: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(value) = any.cast::<PyValue>() {
            return Ok(Self::Value(value.get().key));
        }
        any.extract().map(Self::Bound).map_err(|_| {
            PyTypeError::new_err(format!(
                "an index is an int from 0 up or a value of type u32, found {any:?}"
            ))
        })
    }

    pub(crate) fn arg<'g>(&self, graph: &'g Graph) -> PyResult<Arg<'g>> {
        Ok(match *self {
            Self::Bound(index) => Arg::Index(index),
            Self::Value(key) => Arg::Value(own_value(graph, key)?),
        })
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[pymethods]
        impl PyValue {
            $($(#[$doc])* fn $name(&self, py: Python<'_>) -> PyResult<Self> { self.apply(py, |x| x.$name()) })*
        }
    };
}

unary! {
    /// `|x|`
    abs,
    /// `e^x`
    exp,
    /// The natural logarithm.
    log,
    /// The square root.
    sqrt,
    /// `1 / sqrt(x)`
    rsqrt,
    /// `x * x`
    square,
    /// `1 / x`
    recip,
    /// The hyperbolic tangent.
    tanh,
    /// `1 / (1 + e^-x)`
    sigmoid,
    /// `max(x, 0)`
    relu,
    /// The Gaussian error linear unit.
    gelu,
    /// `x * sigmoid(x)`
    silu,
    /// `log(1 + e^x)`
    softplus,
    /// The sine.
    sin,
    /// The cosine.
    cos,
    /// The error function.
    erf,
    /// -1, 0 or 1.
    sign,
    /// `e^x / sum e^x` of each row.
    softmax,
    /// `log(softmax(x))` of each row.
    log_softmax,
    /// `log(sum e^x)` of each row.
    logsumexp,
    /// The Euclidean length of each row.
    norm,
    /// The index of the largest element of each row.
    argmax,
    /// The identity with derivative zero.
    stop_gradient,
    /// The sum of each row.
    sum_rows,
    /// The mean of each row.
    mean_rows,
    /// The largest element of each row.
    max_rows,
    /// The smallest element of each row.
    min_rows,
    /// The smallest element.
    min,
    /// The matrix with its axes swapped.
    t,
    /// The sum of all elements; of a list, the elementwise sum of its values.
    sum,
    /// The mean of all elements; of a list, the elementwise mean of its values.
    mean,
    /// The largest element; of a list, the elementwise maximum of its values.
    max,
    /// Declares that every batch that reads this value reads it in all its rows.
    shared,
    /// Makes the node of this value a batch of its own.
    alone,
}

macro_rules! binary {
    ($($(#[$doc:meta])* $python:ident => $name:ident),* $(,)?) => {
        #[pymethods]
        impl PyValue {
            $($(#[$doc])* fn $python(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
                self.with(other, |a, b| a.$name(b), |a, b| a.$name(b))
            })*
        }
    };
}

binary! {
    /// `self ^ other`
    pow => pow,
    /// The smaller of the two, element by element.
    minimum => minimum,
    /// The larger of the two, element by element.
    maximum => maximum,
    /// Whether equal, element by element.
    equal => equal,
    /// Whether different, element by element.
    not_equal => not_equal,
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
        self.pow(other)
    }

    fn __lt__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.less(b), |a, b| a.less(b))
    }

    fn __le__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.less_equal(b), |a, b| a.less_equal(b))
    }

    fn __gt__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.greater(b), |a, b| a.greater(b))
    }

    fn __ge__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.greater_equal(b), |a, b| a.greater_equal(b))
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

    /// The element, or row of a matrix, at an index.
    fn pick(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.indexed(index, |x, index| x.pick(index))
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(slice) = index.cast::<pyo3::types::PySlice>() {
            let len =
                self.graph.read(|graph| Ok(self.get(graph)?.shape().dims().first().copied().unwrap_or(0)))?;
            let range = slice.indices(len as isize)?;
            if range.step != 1 {
                return Err(PyTypeError::new_err("a slice of a value has no step"));
            }
            let (start, stop) = (range.start as usize, range.stop as usize);
            return self.apply(index.py(), |x| x.slice_axis(0, start..stop));
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

    /// `-log_softmax(self)[label]` of each row.
    fn cross_entropy(&self, label: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.indexed(label, |x, label| x.cross_entropy(label))
    }

    /// `-sum target * log_softmax(self)`.
    fn cross_entropy_with(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.cross_entropy_with(b), |a, _| a)
    }

    /// `sum target * (log target - self)`, where `self` holds log-probabilities.
    fn kl_div(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.kl_div(b), |a, _| a)
    }

    /// The mean of the squared differences.
    fn mse(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.mse(b), |a, x| (a - x).square().mean())
    }

    /// The mean binary cross-entropy of these logits against targets in `0..=1`.
    fn bce(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.bce(b), |a, x| a.bce(a.graph().constant(x)))
    }

    /// The margin loss of each row.
    #[pyo3(signature = (label, margin = 1.0))]
    fn hinge(&self, label: &Bound<'_, PyAny>, margin: f32) -> PyResult<Self> {
        self.indexed(label, |x, label| x.hinge(label, margin))
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

/// The iterator of an `await`: it yields itself once, and its result is what the driver of the tasks sends.
#[pyclass(module = "autobatch")]
pub(crate) struct Awaited {
    pub(crate) values: Vec<Py<PyValue>>,
    /// Whether the result is one array instead of a list.
    pub(crate) alone: bool,
    sent: bool,
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

/// Bound floats of any shape: a number, a sequence or an array.
#[pyfunction]
fn input(array: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let (dims, numbers) = floats(array)?;
    let graph = current()?;
    graph.emit(array.py(), |g| wrap(&graph, g.input_shaped(&dims[..], &numbers)))
}

/// A bound index as a value, or a vector of them.
#[pyfunction]
fn indices(py: Python<'_>, indices: Vec<u32>) -> PyResult<PyValue> {
    let graph = current()?;
    graph.emit(py, |g| wrap(&graph, g.indices(&indices)))
}

/// A constant of any shape.
#[pyfunction]
fn fill(dims: &Bound<'_, PyAny>, number: f32) -> PyResult<PyValue> {
    let (graph, shape) = (current()?, shape(dims)?);
    graph.emit(dims.py(), |g| wrap(&graph, g.fill(shape, number)))
}

/// Zeros of any shape.
#[pyfunction]
fn zeros(dims: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    fill(dims, 0.0)
}

/// 1 at an index, 0 elsewhere.
#[pyfunction]
fn one_hot(index: &Bound<'_, PyAny>, width: usize) -> PyResult<PyValue> {
    let (graph, by) = (current()?, Index::of(index)?);
    graph.emit(index.py(), |g| wrap(&graph, g.one_hot(by.arg(g)?, width)))
}

/// Values of one graph.
pub(crate) struct Many {
    pub(crate) graph: Arc<Shared>,
    keys: Vec<ValueKey>,
}

impl Many {
    /// Reads values from an iterable. The graph is that of the first value, or the current one.
    pub(crate) fn of(values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (mut graph, mut keys) = (None, Vec::new());
        for value in values.try_iter()? {
            let value = value?;
            if let Ok(value) = value.cast::<PyValue>() {
                graph.get_or_insert_with(|| Arc::clone(&value.get().graph));
                keys.push(value.get().key);
            } else if let Ok(param) = value.cast::<PyParam>() {
                keys.push(param.get().value(values.py())?.key);
            } else {
                return Err(PyTypeError::new_err(format!(
                    "expected values, found {value:?}; bind numbers with ab.input"
                )));
            }
        }
        let graph = graph.map_or_else(current, Ok)?;
        Ok(Self { graph, keys })
    }

    pub(crate) fn get<'g>(&self, graph: &'g Graph) -> PyResult<Vec<Value<'g>>> {
        self.keys.iter().map(|&key| own_value(graph, key)).collect()
    }

    fn emit(
        &self,
        py: Python<'_>,
        f: impl for<'g> FnOnce(&'g Graph, Vec<Value<'g>>) -> Value<'g>,
    ) -> PyResult<PyValue> {
        self.graph.emit(py, |g| wrap(&self.graph, f(g, self.get(g)?)))
    }
}

/// `x · W (+ b)`, where `x` is the concatenation of the parts.
#[pyfunction]
#[pyo3(signature = (parts, weight, bias = None))]
fn affine(parts: &Bound<'_, PyAny>, weight: &PyParam, bias: Option<&PyParam>) -> PyResult<PyValue> {
    Many::of(parts)?.emit(parts.py(), |g, parts| g.affine(parts, weight.param, bias.map(|bias| bias.param)))
}

/// The concatenation of values along an axis; without one, along the innermost.
#[pyfunction]
#[pyo3(signature = (values, axis = None))]
fn concat(values: &Bound<'_, PyAny>, axis: Option<usize>) -> PyResult<PyValue> {
    Many::of(values)?.emit(values.py(), |g, values| match axis {
        Some(axis) => g.concat_axis(axis, values),
        None => g.concat(values),
    })
}

/// Values of one type stacked along a new outermost axis.
#[pyfunction]
fn stack(values: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    Many::of(values)?.emit(values.py(), |g, values| g.stack(values))
}

/// A list of any number of values of one type. An empty list needs the type of its elements.
#[pyfunction]
#[pyo3(name = "list", signature = (values, element = None))]
fn list_(values: &Bound<'_, PyAny>, element: Option<&PyType>) -> PyResult<PyValue> {
    let element: Option<Type> = element.map(|element| element.ty);
    Many::of(values)?.emit(values.py(), |g, values| match element {
        Some(element) if values.is_empty() => g.empty_list(element),
        _ => g.list(values),
    })
}

/// `sum of score_i * value_i` over two lists of equal length.
#[pyfunction]
fn weighted_sum(py: Python<'_>, scores: &PyValue, values: &PyValue) -> PyResult<PyValue> {
    scores.graph.emit(py, |g| wrap(&scores.graph, g.weighted_sum(scores.get(g)?, values.get(g)?)))
}

/// `weighted_sum` with the softmax of the scores over the list as weights.
#[pyfunction]
fn softmax_sum(py: Python<'_>, scores: &PyValue, values: &PyValue) -> PyResult<PyValue> {
    scores.graph.emit(py, |g| wrap(&scores.graph, g.softmax_sum(scores.get(g)?, values.get(g)?)))
}

/// Dot-product attention of a query over lists of keys and values.
#[pyfunction]
#[pyo3(signature = (query, keys, values, scale = 1.0))]
fn attend(
    py: Python<'_>,
    query: &PyValue,
    keys: &PyValue,
    values: &PyValue,
    scale: f32,
) -> PyResult<PyValue> {
    let graph = &query.graph;
    graph.emit(py, |g| wrap(graph, g.attend(query.get(g)?, keys.get(g)?, values.get(g)?, scale)))
}

/// The sum of values, in their order.
#[pyfunction]
fn total(values: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    Many::of(values)?
        .emit(values.py(), |g, values| if values.len() == 1 { values[0] } else { g.list(values).sum() })
}

/// Wraps many values as a Python list.
pub(crate) fn wrapped<'py>(
    py: Python<'py>,
    graph: &Arc<Shared>,
    keys: Vec<Option<ValueKey>>,
) -> PyResult<Bound<'py, PyList>> {
    let values = keys.into_iter().map(|key| {
        key.map(|key| PyValue::new(graph, key)).ok_or_else(|| EmitError::new_err("the value is poison"))
    });
    PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
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
    m.add_class::<Awaited>()?;
    m.add_function(wrap_pyfunction!(gather, m)?)?;
    m.add_function(wrap_pyfunction!(input, m)?)?;
    m.add_function(wrap_pyfunction!(indices, m)?)?;
    m.add_function(wrap_pyfunction!(fill, m)?)?;
    m.add_function(wrap_pyfunction!(zeros, m)?)?;
    m.add_function(wrap_pyfunction!(one_hot, m)?)?;
    m.add_function(wrap_pyfunction!(affine, m)?)?;
    m.add_function(wrap_pyfunction!(concat, m)?)?;
    m.add_function(wrap_pyfunction!(stack, m)?)?;
    m.add_function(wrap_pyfunction!(list_, m)?)?;
    m.add_function(wrap_pyfunction!(weighted_sum, m)?)?;
    m.add_function(wrap_pyfunction!(softmax_sum, m)?)?;
    m.add_function(wrap_pyfunction!(attend, m)?)?;
    m.add_function(wrap_pyfunction!(total, m)?)
}
