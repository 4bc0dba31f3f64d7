//! Layers of the Rust crate, as `autobatch.nn` in Python. A layer declares its parameters when it is made and emits
//! when it is called.

use crate::error::EmitError;
use crate::graph::{Shared, current, wrap};
use crate::module::{PyModule_, PyParam};
use crate::value::{Index, Many, PyValue, wrapped};
use autobatch::ir::Graph;
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::nn::{
    Activation, AdditiveAttention, BiGru, BiLstm, BiRnn, ChildSumTreeLstm, Embedding, Gru, LayerNorm, Linear,
    Lstm, Mlp, MultiHeadAttention, Positions, RmsNorm, Rnn, TransformerEncoderLayer, TreeGru, TreeLstm,
    TreeRnn,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

/// Emits values with the current graph.
fn many<'py>(
    xs: &Bound<'py, PyAny>,
    f: impl for<'g> FnOnce(&'g Graph, Vec<Value<'g>>) -> Vec<Value<'g>>,
) -> PyResult<Bound<'py, PyList>> {
    let (py, xs) = (xs.py(), Many::of(xs)?);
    let keys = xs.graph.emit(py, |g| Ok(f(g, xs.get(g)?).into_iter().map(Value::key).collect::<Vec<_>>()))?;
    wrapped(py, &xs.graph, keys)
}

/// Emits one value from several.
fn one(
    xs: &Bound<'_, PyAny>,
    f: impl for<'g> FnOnce(&'g Graph, Vec<Value<'g>>) -> Value<'g>,
) -> PyResult<PyValue> {
    let (py, xs) = (xs.py(), Many::of(xs)?);
    xs.graph.emit(py, |g| wrap(&xs.graph, f(g, xs.get(g)?)))
}

/// Emits one value from one.
fn unary(x: &PyValue, py: Python<'_>, f: impl for<'g> FnOnce(Value<'g>) -> Value<'g>) -> PyResult<PyValue> {
    x.owner().emit(py, |g| wrap(x.owner(), f(x.get(g)?)))
}

/// Wraps the values of a state as a tuple.
fn tuple<'py>(
    py: Python<'py>,
    graph: &Arc<Shared>,
    keys: &[Option<ValueKey>],
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, wrapped(py, graph, keys.to_vec())?)
}

/// Reads exactly `N` values.
fn exactly<'g, const N: usize>(values: Vec<Value<'g>>, what: &str) -> PyResult<[Value<'g>; N]> {
    let found = values.len();
    values.try_into().map_err(|_| PyValueError::new_err(format!("{what} has {N} values, found {found}")))
}

/// `y = x · W + b`
#[pyclass(frozen, name = "Linear", module = "autobatch.nn")]
struct PyLinear {
    layer: Linear,
    name: String,
}

#[pymethods]
impl PyLinear {
    /// Declares `name.w` of `[inputs, outputs]` and, with a bias, `name.b`.
    #[new]
    #[pyo3(signature = (module, name, inputs, outputs, bias = true))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        inputs: usize,
        outputs: usize,
        bias: bool,
    ) -> PyResult<Self> {
        let layer = module.declare(py, |m| {
            Ok(if bias {
                Linear::new(m, name, inputs, outputs)
            } else {
                Linear::no_bias(m, name, inputs, outputs)
            })
        })?;
        Ok(Self { layer, name: name.to_owned() })
    }

    /// `x · W + b`. Several values stand for their concatenation, without copying it.
    #[pyo3(signature = (*parts))]
    fn __call__(&self, parts: &Bound<'_, PyTuple>) -> PyResult<PyValue> {
        one(parts.as_any(), |g, parts| self.layer.on_parts(g, parts))
    }

    /// The weight.
    #[getter]
    fn weight(&self) -> PyParam {
        PyParam::new(self.layer.weight(), format!("{}.w", self.name))
    }
}

/// A table of vectors, one a row.
#[pyclass(frozen, name = "Embedding", module = "autobatch.nn")]
struct PyEmbedding {
    layer: Embedding,
}

#[pymethods]
impl PyEmbedding {
    /// Declares the table `name` of `[rows, width]`.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, rows: usize, width: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(Embedding::new(m, name, rows, width)))? })
    }

    /// The row at an index, bound or computed.
    fn __call__(&self, index: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let by = Index::of(index)?;
        let graph = match index.cast::<PyValue>() {
            Ok(value) => Arc::clone(value.get().owner()),
            Err(_) => current()?,
        };
        graph.emit(index.py(), |g| wrap(&graph, self.layer.look(g, by.arg(g)?)))
    }

    /// The inner product of `x` with every row: scores of a tied output layer.
    fn scores(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.scores(x))
    }
}

macro_rules! recurrent {
    ($($(#[$doc:meta])* $class:ident = $name:literal, $state:ident = $state_name:literal, $layer:ident, $size:literal;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "autobatch.nn")]
        struct $class {
            layer: $layer,
        }

        #[pymethods]
        impl $class {
            /// Declares the layer for inputs and hidden values of these widths.
            #[new]
            fn new(py: Python<'_>, module: &PyModule_, name: &str, input: usize, width: usize) -> PyResult<Self> {
                Ok(Self { layer: module.declare(py, |m| Ok($layer::new(m, name, input, width)))? })
            }

            /// The hidden value after each input.
            fn run<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
                many(xs, |g, xs| self.layer.run(g, xs))
            }

            /// The hidden value after the last input; zeros without inputs.
            fn last(&self, xs: &Bound<'_, PyAny>) -> PyResult<PyValue> {
                one(xs, |g, xs| self.layer.last(g, xs))
            }

            /// The state before the first input, or a given state.
            #[pyo3(signature = (values = None))]
            fn start(&self, py: Python<'_>, values: Option<&Bound<'_, PyAny>>) -> PyResult<$state> {
                let (graph, keys) = match values {
                    Some(values) => {
                        let values = Many::of(values)?;
                        let keys = values.graph.emit(py, |g| Ok(values.get(g)?.into_iter().map(Value::key).collect()))?;
                        (Arc::clone(&values.graph), keys)
                    }
                    None => {
                        let graph = current()?;
                        let keys = graph.emit(py, |g| Ok(self.layer.start(g).values().map(Value::key).to_vec()))?;
                        (graph, keys)
                    }
                };
                if keys.len() != $size {
                    return Err(PyValueError::new_err(format!("the state has {} values, found {}", $size, keys.len())));
                }
                Ok($state { layer: self.layer, graph, keys })
            }
        }

        /// The state of a layer after some inputs. It never changes: `push` returns the next one.
        #[pyclass(frozen, name = $state_name, module = "autobatch.nn")]
        struct $state {
            layer: $layer,
            graph: Arc<Shared>,
            keys: Vec<Option<ValueKey>>,
        }

        #[pymethods]
        impl $state {
            /// The state after one more input.
            fn push(&self, py: Python<'_>, x: &PyValue) -> PyResult<Self> {
                let keys = self.graph.emit(py, |g| {
                    let values = self.keys.iter().flatten().filter_map(|&key| g.value(key)).collect();
                    let values = exactly::<$size>(values, "the state")?;
                    Ok(self.layer.start_from(values).push(x.get(g)?).values().map(Value::key).to_vec())
                })?;
                Ok(Self { layer: self.layer, graph: Arc::clone(&self.graph), keys })
            }

            /// The hidden value.
            #[getter]
            fn h(&self) -> PyResult<PyValue> {
                let key = self.keys.first().copied().flatten();
                key.map(|key| PyValue::new(&self.graph, key)).ok_or_else(|| EmitError::new_err("the state is poison"))
            }

            /// All values of the state, the hidden one first.
            #[getter]
            fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                tuple(py, &self.graph, &self.keys)
            }
        }
    )*};
}

recurrent! {
    /// Long short-term memory.
    PyLstm = "LSTM", LstmState = "LSTMState", Lstm, 2;
    /// The gated recurrent unit.
    PyGru = "GRU", GruState = "GRUState", Gru, 1;
    /// The simple recurrent layer.
    PyRnn = "RNN", RnnState = "RNNState", Rnn, 1;
}

macro_rules! bidirectional {
    ($($(#[$doc:meta])* $class:ident = $name:literal, $layer:ident;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "autobatch.nn")]
        struct $class {
            layer: $layer,
        }

        #[pymethods]
        impl $class {
            /// Declares `name.fw` and `name.bw`; outputs have twice the width.
            #[new]
            fn new(py: Python<'_>, module: &PyModule_, name: &str, input: usize, width: usize) -> PyResult<Self> {
                Ok(Self { layer: module.declare(py, |m| Ok($layer::new(m, name, input, width)))? })
            }

            /// For each input, the concatenated outputs of both directions.
            fn run<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
                many(xs, |g, xs| self.layer.run(g, xs))
            }

            /// For each input, the outputs of both directions as a pair.
            fn run_pairs<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
                let flat = many(xs, |g, xs| self.layer.run_pairs(g, xs).into_iter().flatten().collect())?;
                let values: Vec<Bound<'py, PyAny>> = flat.iter().collect();
                let pairs = values.chunks(2).map(|pair| PyTuple::new(xs.py(), pair)).collect::<PyResult<Vec<_>>>()?;
                PyList::new(xs.py(), pairs)
            }

            /// The concatenated last outputs of both directions.
            fn last(&self, xs: &Bound<'_, PyAny>) -> PyResult<PyValue> {
                one(xs, |g, xs| self.layer.last(g, xs))
            }
        }
    )*};
}

bidirectional! {
    /// An LSTM in each direction.
    PyBiLstm = "BiLSTM", BiLstm;
    /// A GRU in each direction.
    PyBiGru = "BiGRU", BiGru;
    /// A simple recurrent layer in each direction.
    PyBiRnn = "BiRNN", BiRnn;
}

macro_rules! norms {
    ($($(#[$doc:meta])* $class:ident = $name:literal, |$m:ident, $n:ident, $w:ident, $eps:ident| $make:expr, $layer:ident;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "autobatch.nn")]
        struct $class {
            layer: $layer,
        }

        #[pymethods]
        impl $class {
            /// Declares the gain of this width, and a bias if the layer has one.
            #[new]
            #[pyo3(signature = (module, name, width, eps = 1e-5))]
            fn new(py: Python<'_>, module: &PyModule_, name: &str, width: usize, eps: f32) -> PyResult<Self> {
                let ($n, $w, $eps) = (name, width, eps);
                Ok(Self { layer: module.declare(py, |$m| Ok($make))? })
            }

            /// Each row, normalised.
            fn __call__(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
                unary(x, py, |x| self.layer.on(x))
            }
        }
    )*};
}

norms! {
    /// Layer normalisation with a gain and a bias.
    PyLayerNorm = "LayerNorm", |m, name, width, eps| LayerNorm::with(m, name, width, eps, true), LayerNorm;
    /// Normalisation by the root of the mean square.
    PyRmsNorm = "RMSNorm", |m, name, width, eps| RmsNorm::new(m, name, width, eps), RmsNorm;
}

/// Linear layers with an activation between them, as one cell.
#[pyclass(frozen, name = "MLP", module = "autobatch.nn")]
struct PyMlp {
    layer: Mlp,
}

fn activation(word: &str) -> PyResult<Activation> {
    Ok(match word {
        "identity" => Activation::Identity,
        "tanh" => Activation::Tanh,
        "sigmoid" => Activation::Sigmoid,
        "relu" => Activation::Relu,
        "gelu" => Activation::Gelu,
        "silu" => Activation::Silu,
        "softplus" => Activation::Softplus,
        "mish" => Activation::Mish,
        "selu" => Activation::Selu,
        _ => {
            return Err(PyValueError::new_err(format!(
                "no activation is called {word:?}; choose identity, tanh, sigmoid, relu, gelu, silu, softplus, mish or selu"
            )));
        }
    })
}

#[pymethods]
impl PyMlp {
    /// Declares layers between these widths, the input width first.
    #[new]
    #[pyo3(signature = (module, name, widths, activation = "relu", dropout = 0.0))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        widths: Vec<usize>,
        activation: &str,
        dropout: f32,
    ) -> PyResult<Self> {
        let activation = self::activation(activation)?;
        Ok(Self { layer: module.declare(py, |m| Ok(Mlp::with(m, name, &widths, activation, dropout)))? })
    }

    /// The output of the last layer.
    fn __call__(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.on(x))
    }
}

/// The binary Tree-LSTM.
#[pyclass(frozen, name = "TreeLSTM", module = "autobatch.nn")]
struct PyTreeLstm {
    layer: TreeLstm<2>,
}

#[pymethods]
impl PyTreeLstm {
    /// Declares the layer for states of this width.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, width: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(TreeLstm::new(m, name, width)))? })
    }

    /// The state `(h, c)` of a node over two children `(h, c)`.
    fn node<'py>(
        &self,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (py, left, right) = (left.py(), Many::of(left)?, Many::of(right)?);
        let keys = left.graph.emit(py, |g| {
            let children = [exactly::<2>(left.get(g)?, "a state")?, exactly::<2>(right.get(g)?, "a state")?];
            Ok(self.layer.node(g, children).map(Value::key))
        })?;
        tuple(py, &left.graph, &keys)
    }

    /// A leaf with a given vector: `(x, 0)`.
    fn leaf<'py>(&self, py: Python<'py>, x: &PyValue) -> PyResult<Bound<'py, PyTuple>> {
        let keys = x.owner().emit(py, |g| Ok(self.layer.leaf(x.get(g)?).map(Value::key)))?;
        tuple(py, x.owner(), &keys)
    }
}

macro_rules! trees {
    ($($(#[$doc:meta])* $class:ident = $name:literal, $layer:ident;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "autobatch.nn")]
        struct $class {
            layer: $layer<2>,
        }

        #[pymethods]
        impl $class {
            /// Declares the layer for values of this width.
            #[new]
            fn new(py: Python<'_>, module: &PyModule_, name: &str, width: usize) -> PyResult<Self> {
                Ok(Self { layer: module.declare(py, |m| Ok($layer::new(m, name, width)))? })
            }

            /// The value of a node over two children.
            fn node(&self, py: Python<'_>, left: &PyValue, right: &PyValue) -> PyResult<PyValue> {
                let graph = left.owner();
                graph.emit(py, |g| wrap(graph, self.layer.node(g, [left.get(g)?, right.get(g)?])))
            }
        }
    )*};
}

trees! {
    /// The binary gated recurrent tree layer.
    PyTreeGru = "TreeGRU", TreeGru;
    /// The binary recursive layer.
    PyTreeRnn = "TreeRNN", TreeRnn;
}

/// The child-sum Tree-LSTM, for nodes with any number of children.
#[pyclass(frozen, name = "ChildSumTreeLSTM", module = "autobatch.nn")]
struct PyChildSum {
    layer: ChildSumTreeLstm,
}

#[pymethods]
impl PyChildSum {
    /// Declares the layer for inputs and states of these widths.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, input: usize, width: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(ChildSumTreeLstm::new(m, name, input, width)))? })
    }

    /// The state `(h, c)` of a node with an input over a sequence of children `(h, c)`.
    fn node<'py>(
        &self,
        py: Python<'py>,
        x: &PyValue,
        children: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let children = children.try_iter()?.map(|child| Many::of(&child?)).collect::<PyResult<Vec<_>>>()?;
        let keys = x.owner().emit(py, |g| {
            let children = children
                .iter()
                .map(|child| exactly::<2>(child.get(g)?, "a state"))
                .collect::<PyResult<Vec<_>>>()?;
            Ok(self.layer.node(g, x.get(g)?, &children).map(Value::key))
        })?;
        tuple(py, x.owner(), &keys)
    }
}

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

/// A layer of a transformer encoder. Sequences of any lengths share its batches, without padding.
#[pyclass(frozen, name = "TransformerEncoderLayer", module = "autobatch.nn")]
struct PyEncoderLayer {
    layer: TransformerEncoderLayer,
}

#[pymethods]
impl PyEncoderLayer {
    /// Declares the layer; `heads` must divide `width`.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, width: usize, heads: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(TransformerEncoderLayer::new(m, name, width, heads)))? })
    }

    /// The output at each position, given all positions; with `causal`, given itself and earlier ones.
    #[pyo3(signature = (xs, causal = false))]
    fn __call__<'py>(&self, xs: &Bound<'py, PyAny>, causal: bool) -> PyResult<Bound<'py, PyList>> {
        many(xs, |g, xs| if causal { self.layer.run_causal(g, xs) } else { self.layer.run(g, xs) })
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

    /// Each input plus the vector of its position.
    fn __call__<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        many(xs, |g, xs| self.layer.add(g, xs))
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLinear>()?;
    m.add_class::<PyEmbedding>()?;
    m.add_class::<PyLstm>()?;
    m.add_class::<LstmState>()?;
    m.add_class::<PyGru>()?;
    m.add_class::<GruState>()?;
    m.add_class::<PyRnn>()?;
    m.add_class::<RnnState>()?;
    m.add_class::<PyBiLstm>()?;
    m.add_class::<PyBiGru>()?;
    m.add_class::<PyBiRnn>()?;
    m.add_class::<PyLayerNorm>()?;
    m.add_class::<PyRmsNorm>()?;
    m.add_class::<PyMlp>()?;
    m.add_class::<PyTreeLstm>()?;
    m.add_class::<PyTreeGru>()?;
    m.add_class::<PyTreeRnn>()?;
    m.add_class::<PyChildSum>()?;
    m.add_class::<PyMultiHead>()?;
    m.add_class::<PyAdditive>()?;
    m.add_class::<PyEncoderLayer>()?;
    m.add_class::<PyPositions>()
}
