//! Attention over sequences of any length, and their positions.

use super::many;
use crate::graph::wrap;
use crate::module::{PyModule_, init};
use crate::value::{Many, PyValue, wrapped};
use autobatch::ir::graph::Value;
use autobatch::nn::{AdditiveAttention, DotAttention, MultiHeadAttention, MultiHeadOptions, Positions};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Attention with several heads.
#[pyclass(frozen, name = "MultiHeadAttention", module = "autobatch.nn")]
struct PyMultiHead {
    layer: MultiHeadAttention,
}

#[pymethods]
impl PyMultiHead {
    /// Declares the layer; `heads` must divide `width`. `key` and `value` are the widths of keys and values that differ from it.
    #[new]
    #[pyo3(signature = (module, name, width, heads, *, bias = true, key = None, value = None, init = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        width: usize,
        heads: usize,
        bias: bool,
        key: Option<usize>,
        value: Option<usize>,
        init: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let options = MultiHeadOptions { bias, key, value, init: self::init(init)? };
        let declare = |m: &mut _| Ok(MultiHeadAttention::with_options(m, name, width, heads, &options));
        Ok(Self { layer: module.declare(py, declare)? })
    }

    /// The attention of each position over all positions; with `causal`, over itself and earlier ones.
    #[pyo3(signature = (xs, causal = false))]
    fn __call__<'py>(&self, xs: &Bound<'py, PyAny>, causal: bool) -> PyResult<Bound<'py, PyList>> {
        many(xs, |g, xs| if causal { self.layer.run_causal(g, xs) } else { self.layer.run(g, xs) })
    }

    /// The attention of each query over keys and values of another sequence.
    fn cross<'py>(
        &self,
        queries: &Bound<'py, PyAny>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, queries) = (queries.py(), Many::of(queries)?);
        let (keys, values) = (Many::of(keys)?, Many::of(values)?);
        let read = queries.graph.emit(py, |g| {
            let memory = self.layer.memory(g, keys.get(g)?, values.get(g)?);
            Ok(queries
                .get(g)?
                .into_iter()
                .map(|query| self.layer.read(query, &memory).key())
                .collect::<Vec<_>>())
        })?;
        wrapped(py, &queries.graph, read)
    }
}

/// Additive attention of a query over keys and values.
#[pyclass(frozen, name = "AdditiveAttention", module = "autobatch.nn")]
struct PyAdditive {
    layer: AdditiveAttention,
}

#[pymethods]
impl PyAdditive {
    /// Declares the layer for queries and keys of these widths.
    #[new]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        query: usize,
        key: usize,
        width: usize,
    ) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(AdditiveAttention::new(m, name, query, key, width)))? })
    }

    /// The projected keys, for any number of queries.
    fn keys<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        many(keys, |g, keys| self.layer.keys(g, keys))
    }

    /// The scores of projected keys, before the softmax.
    fn scores<'py>(&self, query: &PyValue, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (py, keys) = (keys.py(), Many::of(keys)?);
        let scores = keys.graph.emit(py, |g| {
            let scores = self.layer.scores(g, query.get(g)?, &keys.get(g)?);
            Ok(scores.into_iter().map(Value::key).collect::<Vec<_>>())
        })?;
        wrapped(py, &keys.graph, scores)
    }

    /// The attention of the query over values, one for each projected key and at least one.
    fn read(&self, query: &PyValue, keys: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let (py, keys, values) = (keys.py(), Many::of(keys)?, Many::of(values)?);
        let graph = query.owner();
        graph.emit(py, |g| wrap(graph, self.layer.read(g, query.get(g)?, &keys.get(g)?, values.get(g)?)))
    }
}

/// Scaled dot-product attention, which has no parameters.
#[pyclass(frozen, name = "DotAttention", module = "autobatch.nn")]
struct PyDotAttention {
    layer: DotAttention,
}

#[pymethods]
impl PyDotAttention {
    /// The layer with factor `1 / sqrt(width)`, for queries and keys of this width, or with the given factor.
    #[new]
    #[pyo3(signature = (width, scale = None))]
    fn new(width: usize, scale: Option<f32>) -> Self {
        Self { layer: scale.map_or_else(|| DotAttention::scaled(width), |scale| DotAttention { scale }) }
    }

    /// The attention of the query over values, one for each key and at least one.
    fn read(&self, query: &PyValue, keys: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let (py, keys, values) = (keys.py(), Many::of(keys)?, Many::of(values)?);
        let graph = query.owner();
        graph.emit(py, |g| wrap(graph, self.layer.read(g, query.get(g)?, keys.get(g)?, values.get(g)?)))
    }
}

/// Vectors that tell positions apart, to add to inputs.
#[pyclass(frozen, name = "Positions", module = "autobatch.nn")]
struct PyPositions {
    layer: Positions,
}

#[pymethods]
impl PyPositions {
    /// Sines and cosines.
    #[staticmethod]
    fn sinusoidal(width: usize) -> Self {
        Self { layer: Positions::sinusoidal(width) }
    }

    /// A learned table.
    #[staticmethod]
    fn learned(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        longest: usize,
        width: usize,
    ) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(Positions::learned(m, name, longest, width)))? })
    }

    /// An input plus the vector of position `place`, counted from 0.
    fn at(&self, x: &PyValue, py: Python<'_>, place: usize) -> PyResult<PyValue> {
        x.owner().emit(py, |g| wrap(x.owner(), self.layer.add_at(g, x.get(g)?, place)))
    }

    /// Each input plus the vector of its position.
    fn __call__<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        many(xs, |g, xs| self.layer.add(g, xs))
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyMultiHead>()?;
    m.add_class::<PyAdditive>()?;
    m.add_class::<PyDotAttention>()?;
    m.add_class::<PyPositions>()
}
