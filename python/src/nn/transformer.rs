//! Transformers over sequences of any length.

use super::{activation, many};
use crate::error::EmitError;
use crate::graph::{Shared, current};
use crate::module::PyModule_;
use crate::value::{Many, PyValue, wrapped};
use autobatch::ir::Graph;
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::nn::{
    DetachedState, TransformerDecoder, TransformerEncoder, TransformerEncoderLayer, TransformerOptions,
    TransformerState,
};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

/// The options of a layer from the keywords of its class.
fn options(
    feed_forward: Option<usize>,
    activation: &str,
    norm_first: bool,
    dropout: f32,
    bias: bool,
) -> PyResult<TransformerOptions> {
    let activation = self::activation(activation)?;
    Ok(TransformerOptions {
        feed_forward,
        activation,
        norm_first,
        dropout,
        bias,
        ..TransformerOptions::default()
    })
}

/// A layer of a transformer encoder. Sequences of any lengths share its batches, without padding.
#[pyclass(frozen, name = "TransformerEncoderLayer", module = "autobatch.nn")]
struct PyEncoderLayer {
    layer: TransformerEncoderLayer,
}

#[pymethods]
impl PyEncoderLayer {
    /// Declares the layer; `heads` must divide `width`. The inner width of its feed-forward part is four times the width
    /// unless it is given.
    #[new]
    #[pyo3(signature = (module, name, width, heads, *, feed_forward = None, activation = "relu", norm_first = false, dropout = 0.0, bias = true))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        width: usize,
        heads: usize,
        feed_forward: Option<usize>,
        activation: &str,
        norm_first: bool,
        dropout: f32,
        bias: bool,
    ) -> PyResult<Self> {
        let options = options(feed_forward, activation, norm_first, dropout, bias)?;
        let layer = module
            .declare(py, |m| Ok(TransformerEncoderLayer::with_options(m, name, width, heads, &options)))?;
        Ok(Self { layer })
    }

    /// The output at each position, given all positions; with `causal`, given itself and earlier ones.
    #[pyo3(signature = (xs, causal = false))]
    fn __call__<'py>(&self, xs: &Bound<'py, PyAny>, causal: bool) -> PyResult<Bound<'py, PyList>> {
        many(xs, |g, xs| if causal { self.layer.run_causal(g, xs) } else { self.layer.run(g, xs) })
    }
}

/// A stack of encoder layers, with a final norm if norms come first. Sequences of any lengths share its batches, without padding.
#[pyclass(frozen, name = "TransformerEncoder", module = "autobatch.nn")]
struct PyEncoder {
    stack: TransformerEncoder,
}

#[pymethods]
impl PyEncoder {
    /// Declares `name.layers.0`, `name.layers.1` and so on; `heads` must divide `width`. The inner width of the feed-forward
    /// parts is four times the width unless it is given.
    #[new]
    #[pyo3(signature = (module, name, width, heads, layers, *, feed_forward = None, activation = "relu", norm_first = false, dropout = 0.0, bias = true))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        width: usize,
        heads: usize,
        layers: usize,
        feed_forward: Option<usize>,
        activation: &str,
        norm_first: bool,
        dropout: f32,
        bias: bool,
    ) -> PyResult<Self> {
        let options = options(feed_forward, activation, norm_first, dropout, bias)?;
        let stack = module
            .declare(py, |m| Ok(TransformerEncoder::with_options(m, name, width, heads, layers, &options)))?;
        Ok(Self { stack })
    }

    /// The output at each position, given all positions; with `causal`, given itself and earlier ones.
    #[pyo3(signature = (xs, causal = false))]
    fn __call__<'py>(&self, xs: &Bound<'py, PyAny>, causal: bool) -> PyResult<Bound<'py, PyList>> {
        many(xs, |g, xs| if causal { self.stack.run_causal(g, xs) } else { self.stack.run(g, xs) })
    }

    /// The state before the first position, for positions that arrive one by one. The outputs equal those of a causal call bit
    /// for bit.
    fn start(&self, py: Python<'_>) -> PyResult<PyState> {
        let graph = current()?;
        let state = graph.emit(py, |g| Ok(self.stack.start(g).detach()))?;
        Ok(PyState { graph, state, output: None })
    }
}

/// A stack of decoder layers, with a final norm if norms come first. A position attends to itself, to earlier positions, and to an
/// encoded sequence.
#[pyclass(frozen, name = "TransformerDecoder", module = "autobatch.nn")]
struct PyDecoder {
    stack: TransformerDecoder,
}

impl PyDecoder {
    fn started<'g>(&self, g: &'g Graph, encoded: &Many) -> PyResult<TransformerState<'g>> {
        Ok(self.stack.start(g, &self.stack.memory(g, encoded.get(g)?)))
    }
}

#[pymethods]
impl PyDecoder {
    /// Declares `name.layers.0`, `name.layers.1` and so on; `heads` must divide `width`. The inner width of the feed-forward
    /// parts is four times the width unless it is given.
    #[new]
    #[pyo3(signature = (module, name, width, heads, layers, *, feed_forward = None, activation = "relu", norm_first = false, dropout = 0.0, bias = true))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        width: usize,
        heads: usize,
        layers: usize,
        feed_forward: Option<usize>,
        activation: &str,
        norm_first: bool,
        dropout: f32,
        bias: bool,
    ) -> PyResult<Self> {
        let options = options(feed_forward, activation, norm_first, dropout, bias)?;
        let stack = module
            .declare(py, |m| Ok(TransformerDecoder::with_options(m, name, width, heads, layers, &options)))?;
        Ok(Self { stack })
    }

    /// The output at each position, given itself, earlier positions, and the encoded sequence.
    fn __call__<'py>(
        &self,
        xs: &Bound<'py, PyAny>,
        encoded: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, xs, encoded) = (xs.py(), Many::of(xs)?, Many::of(encoded)?);
        let read: Vec<Option<ValueKey>> = encoded.graph.emit(py, |g| {
            let mut state = self.started(g, &encoded)?;
            Ok(xs.get(g)?.into_iter().map(|x| state.push(x).key()).collect())
        })?;
        wrapped(py, &encoded.graph, read)
    }

    /// The state before the first position, for positions that arrive one by one. The outputs equal those of a call bit for bit.
    fn start(&self, encoded: &Bound<'_, PyAny>) -> PyResult<PyState> {
        let (py, encoded) = (encoded.py(), Many::of(encoded)?);
        let state = encoded.graph.emit(py, |g| Ok(self.started(g, &encoded)?.detach()))?;
        Ok(PyState { graph: Arc::clone(&encoded.graph), state, output: None })
    }
}

/// The state of an encoder or a decoder after some positions. It never changes: `push` returns the next one, so a search
/// may go on from one state in several ways.
#[pyclass(frozen, name = "TransformerState", module = "autobatch.nn")]
struct PyState {
    graph: Arc<Shared>,
    state: DetachedState,
    output: Option<ValueKey>,
}

#[pymethods]
impl PyState {
    /// The state after one more position.
    fn push(&self, py: Python<'_>, x: &PyValue) -> PyResult<Self> {
        let (state, output) = self.graph.emit(py, |g| {
            let state = self.state.attach(g);
            let mut state = state.ok_or_else(|| EmitError::new_err("the state is poison"))?;
            let output = state.push(x.get(g)?);
            Ok((state.detach(), Value::key(output)))
        })?;
        Ok(Self { graph: Arc::clone(&self.graph), state, output })
    }

    /// The output at the last position.
    #[getter]
    fn output(&self) -> PyResult<PyValue> {
        let none = || PyIndexError::new_err("the state has no position yet; push one");
        self.output.map(|key| PyValue::new(&self.graph, key)).ok_or_else(none)
    }

    /// The number of positions so far, which is the index of the next one.
    fn __len__(&self) -> usize {
        self.state.len()
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyEncoderLayer>()?;
    m.add_class::<PyEncoder>()?;
    m.add_class::<PyDecoder>()?;
    m.add_class::<PyState>()
}
