//! Functions that make values from numbers and from several values.

use super::PyValue;
use super::operands::{Index, floats, own_value};
use crate::error::EmitError;
use crate::graph::{Shared, current, wrap};
use crate::module::PyParam;
use crate::types::{PyType, shape};
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::ir::{Graph, types::Type};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

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

    /// Emits several values.
    pub(crate) fn emit_many<'py>(
        &self,
        py: Python<'py>,
        f: impl for<'g> FnOnce(&'g Graph, Vec<Value<'g>>) -> Vec<Value<'g>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = self.graph.emit(py, |g| Ok(f(g, self.get(g)?).into_iter().map(Value::key).collect()))?;
        wrapped(py, &self.graph, keys)
    }
}

/// `x · W (+ b)`, where `x` is the concatenation of the parts.
#[pyfunction]
#[pyo3(signature = (parts, weight, bias = None))]
fn affine(parts: &Bound<'_, PyAny>, weight: &PyParam, bias: Option<&PyParam>) -> PyResult<PyValue> {
    Many::of(parts)?.emit(parts.py(), |g, parts| g.affine(parts, weight.param, bias.map(|bias| bias.param)))
}

/// `b + x1 · W1 + x2 · W2 + ...`: a bias, then weights and values by turns.
#[pyfunction]
#[pyo3(signature = (bias, *pairs))]
fn affine_sum(bias: &PyParam, pairs: &Bound<'_, PyTuple>) -> PyResult<PyValue> {
    let weight =
        |number: usize| Ok::<_, PyErr>(pairs.get_borrowed_item(number)?.cast::<PyParam>()?.get().param);
    let operand =
        |number: usize| Ok::<_, PyErr>(pairs.get_borrowed_item(number)?.cast::<PyValue>()?.get().key);
    let graph = Arc::clone(&pairs.get_borrowed_item(1)?.cast::<PyValue>()?.get().graph);
    graph.emit(pairs.py(), |g| {
        let mut sum = own_value(g, operand(1)?)?.affine(weight(0)?, Some(bias.param));
        for number in (2..pairs.len()).step_by(2) {
            sum = sum + own_value(g, operand(number + 1)?)?.affine(weight(number)?, None);
        }
        wrap(&graph, sum)
    })
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

/// A new list: `values` with one further item at its end. `values` itself stays as it is.
///
/// A list that grows item by item shares its items with all lists that it grew from.
#[pyfunction]
fn append(py: Python<'_>, values: &PyValue, item: &PyValue) -> PyResult<PyValue> {
    values.graph.emit(py, |g| wrap(&values.graph, values.get(g)?.append(item.get(g)?)))
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

/// The logarithm of the softmax over values of one type, element by element: each minus the `logsumexp` of all.
#[pyfunction]
fn log_softmax_of<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    Many::of(values)?.emit_many(values.py(), |g, values| g.log_softmax_of(values))
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

/// Attention of a node over its neighbours: the sum of `softmax(leaky_relu(query + key)) * value` over lists of keys and values. The
/// query and the keys have one number for each head, and a value has one group of elements for each head.
#[pyfunction]
#[pyo3(signature = (query, keys, values, slope = 0.2))]
fn graph_attend(
    py: Python<'_>,
    query: &PyValue,
    keys: &PyValue,
    values: &PyValue,
    slope: f32,
) -> PyResult<PyValue> {
    let graph = &query.graph;
    graph.emit(py, |g| wrap(graph, g.graph_attend(query.get(g)?, keys.get(g)?, values.get(g)?, slope)))
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

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(input, m)?)?;
    m.add_function(wrap_pyfunction!(indices, m)?)?;
    m.add_function(wrap_pyfunction!(fill, m)?)?;
    m.add_function(wrap_pyfunction!(zeros, m)?)?;
    m.add_function(wrap_pyfunction!(one_hot, m)?)?;
    m.add_function(wrap_pyfunction!(affine, m)?)?;
    m.add_function(wrap_pyfunction!(affine_sum, m)?)?;
    m.add_function(wrap_pyfunction!(concat, m)?)?;
    m.add_function(wrap_pyfunction!(stack, m)?)?;
    m.add_function(wrap_pyfunction!(list_, m)?)?;
    m.add_function(wrap_pyfunction!(append, m)?)?;
    m.add_function(wrap_pyfunction!(weighted_sum, m)?)?;
    m.add_function(wrap_pyfunction!(softmax_sum, m)?)?;
    m.add_function(wrap_pyfunction!(log_softmax_of, m)?)?;
    m.add_function(wrap_pyfunction!(attend, m)?)?;
    m.add_function(wrap_pyfunction!(graph_attend, m)?)?;
    m.add_function(wrap_pyfunction!(total, m)?)
}
