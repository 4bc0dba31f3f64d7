//! Recurrent layers and their states.

use super::{exactly, many, one, tuple};
use crate::error::EmitError;
use crate::graph::{Shared, current};
use crate::module::PyModule_;
use crate::value::{Many, PyValue};
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::nn::{BiGru, BiLstm, BiRnn, Gru, Lstm, Rnn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

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

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLstm>()?;
    m.add_class::<LstmState>()?;
    m.add_class::<PyGru>()?;
    m.add_class::<GruState>()?;
    m.add_class::<PyRnn>()?;
    m.add_class::<RnnState>()?;
    m.add_class::<PyBiLstm>()?;
    m.add_class::<PyBiGru>()?;
    m.add_class::<PyBiRnn>()
}
