//! Layers of the Rust crate, as `autobatch.nn` in Python. A layer declares its parameters when it is made and emits
//! when it is called.

mod attention;
mod features;
mod graphs;
mod recurrent;
mod transformer;
mod trees;
mod vocabulary;

use crate::graph::{Shared, current, wrap};
use crate::module::{PyModule_, PyParam, init};
use crate::value::{Index, Many, PyValue, wrapped};
use autobatch::ir::Graph;
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::ir::module::Init;
use autobatch::nn::{Activation, Embedding, LayerNorm, Linear, Mlp, RmsNorm};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

/// Emits values with the current graph.
fn many<'py>(
    xs: &Bound<'py, PyAny>,
    f: impl for<'g> FnOnce(&'g Graph, Vec<Value<'g>>) -> Vec<Value<'g>>,
) -> PyResult<Bound<'py, PyList>> {
    Many::of(xs)?.emit_many(xs.py(), f)
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

/// An option of a layer as Rust takes it.
trait Given {
    type Of;
    fn given(self) -> PyResult<Self::Of>;
}

macro_rules! given {
    ($($ty:ty),*) => {$(
        impl Given for $ty {
            type Of = Self;
            fn given(self) -> PyResult<Self> {
                Ok(self)
            }
        }
    )*};
}

given! { bool, f32, Option<usize> }

impl Given for &str {
    type Of = Activation;
    fn given(self) -> PyResult<Activation> {
        activation(self)
    }
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
    #[pyo3(signature = (module, name, inputs, outputs, bias = true, *, init = None))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        inputs: usize,
        outputs: usize,
        bias: bool,
        init: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (weight, bias) = (self::init(init)?, bias.then_some(Init::ZEROS));
        let declare = |m: &mut _| Ok(Linear::with_options(m, name, inputs, outputs, weight, bias));
        let layer = module.declare(py, declare)?;
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
    /// Declares the table `name` of `[rows, width]`. `init` may be an array of pretrained vectors. The row `padding` reads as zeros
    /// and is never trained.
    #[new]
    #[pyo3(signature = (module, name, rows, width, *, init = None, padding = None))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        rows: usize,
        width: usize,
        init: Option<&Bound<'_, PyAny>>,
        padding: Option<u32>,
    ) -> PyResult<Self> {
        let layer = match init {
            Some(_) => {
                let init = self::init(init)?;
                module.declare(py, |m| Ok(Embedding::with_options(m, name, rows, width, init)))?
            }
            None => module.declare(py, |m| Ok(Embedding::new(m, name, rows, width)))?,
        };
        Ok(Self { layer: padding.map_or(layer, |index| layer.padding(index)) })
    }

    /// The row at an index, bound or computed.
    fn __call__(&self, index: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let by = Index::of(index)?;
        let graph = match index.cast::<PyValue>() {
            Ok(value) => Arc::clone(value.get().owner()),
            Err(_) => current()?,
        };
        graph.emit(index.py(), |g| wrap(&graph, self.layer.lookup(g, by.arg(g)?)))
    }

    /// The loss of a row under the scores of all rows, without a score in memory: for a tied output layer of many rows.
    fn label_loss(&self, py: Python<'_>, x: &PyValue, label: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let (graph, label) = (x.owner(), Index::of(label)?);
        graph.emit(py, |g| wrap(graph, self.layer.label_loss(x.get(g)?, label.arg(g)?)))
    }

    /// The inner product of `x` with every row: scores of a tied output layer.
    fn scores(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.scores(x))
    }
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
    PyLayerNorm = "LayerNorm", |m, name, width, eps| LayerNorm::with_options(m, name, width, eps, true), LayerNorm;
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
        "leaky_relu" => Activation::LeakyRelu(0.01),
        "elu" => Activation::Elu(1.0),
        "relu6" => Activation::Clamp(0.0, 6.0),
        "hardtanh" => Activation::Clamp(-1.0, 1.0),
        "gelu_tanh" => Activation::GeluTanh,
        "gelu" => Activation::Gelu,
        "silu" => Activation::Silu,
        "softplus" => Activation::Softplus,
        "mish" => Activation::Mish,
        "selu" => Activation::Selu,
        _ => {
            return Err(PyValueError::new_err(format!(
                "no activation is called {word:?}; choose identity, tanh, sigmoid, relu, leaky_relu, elu, \
                 relu6, hardtanh, gelu, gelu_tanh, silu, softplus, mish or selu"
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
        Ok(Self {
            layer: module.declare(py, |m| Ok(Mlp::with_options(m, name, &widths, activation, dropout)))?,
        })
    }

    /// The output of the last layer.
    fn __call__(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.on(x))
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLinear>()?;
    m.add_class::<PyEmbedding>()?;
    m.add_class::<PyLayerNorm>()?;
    m.add_class::<PyRmsNorm>()?;
    m.add_class::<PyMlp>()?;
    features::register(m)?;
    recurrent::register(m)?;
    trees::register(m)?;
    attention::register(m)?;
    graphs::register(m)?;
    vocabulary::register(m)?;
    transformer::register(m)
}
