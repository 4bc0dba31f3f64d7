//! Attention over sequences of any length, and their positions.

use super::many;
use crate::graph::wrap;
use crate::module::PyModule_;
use crate::value::{Many, PyValue, wrapped};
use autobatch::ir::graph::Value;
use autobatch::nn::{AdditiveAttention, MultiHeadAttention, Positions};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Attention with several heads.
#[pyclass(frozen, name = "MultiHeadAttention", module = "autobatch.nn")]
struct PyMultiHead {
    layer: MultiHeadAttention,
}

#[pymethods]
impl PyMultiHead {
    /// Declares the layer; `heads` must divide `width`.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, width: usize, heads: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(MultiHeadAttention::new(m, name, width, heads)))? })
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
    m.add_class::<PyPositions>()
}
