//! Recurrent layers, several on top of each other, and their states.

use super::{Given, many, one, tuple};
use crate::error::EmitError;
use crate::graph::{Shared, current};
use crate::module::{PyModule_, init};
use crate::value::{Many, PyValue};
use autobatch::ir::Graph;
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::ir::module::ModuleBuilder;
use autobatch::nn::{
    BiGru, BiLstm, BiRnn, Gru, GruOptions, Hoist, Lstm, LstmOptions, Recurrent, Rnn, RnnOptions, Sequence,
    State,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

/// Layers of one kind. Each reads the outputs of the one below, with dropout between them.
#[derive(Clone)]
struct Stack<R> {
    layers: SmallVec<[R; 1]>,
    between: f32,
}

/// The name and the extents of a stack.
struct Extents<'a> {
    name: &'a str,
    input: usize,
    width: usize,
    layers: usize,
}

impl<R: Sequence> Stack<R> {
    /// Declares the layers: one is called `name`, several are called `name.0`, `name.1` and so on.
    fn declare(
        m: &mut ModuleBuilder,
        extents: &Extents<'_>,
        options: &R::Options,
        between: f32,
    ) -> PyResult<Self> {
        let &Extents { name, input, width, layers } = extents;
        if layers == 0 {
            return Err(PyValueError::new_err("a recurrent layer needs layers of at least 1, found 0"));
        }
        let mut stack = Self { layers: SmallVec::new(), between };
        for number in 0..layers {
            let own = if layers == 1 { name.to_owned() } else { format!("{name}.{number}") };
            let input = stack.layers.last().map_or(input, Sequence::output_width);
            stack.layers.push(R::build(m, &own, input, width, options));
        }
        Ok(stack)
    }

    fn dropped<'g>(&self, x: Value<'g>) -> Value<'g> {
        if self.between == 0.0 { x } else { x.dropout(self.between) }
    }

    /// The top layer and its inputs.
    fn top<'g>(&self, g: &'g Graph, mut xs: Vec<Value<'g>>) -> (&R, Vec<Value<'g>>) {
        let (top, below) = self.layers.split_last().expect("a stack has a layer");
        for layer in below {
            xs = layer.outputs(g, &xs).into_iter().map(|x| self.dropped(x)).collect();
        }
        (top, xs)
    }

    fn run<'g>(&self, g: &'g Graph, xs: Vec<Value<'g>>) -> Vec<Value<'g>> {
        let (top, xs) = self.top(g, xs);
        top.outputs(g, &xs)
    }

    fn last<'g>(&self, g: &'g Graph, xs: Vec<Value<'g>>) -> Value<'g> {
        let (top, xs) = self.top(g, xs);
        top.summary(g, &xs)
    }
}

/// The state of one layer without the lifetime of its graph.
#[derive(Clone, Copy)]
struct Detached<const S: usize> {
    values: [Option<ValueKey>; S],
    masks: [Option<ValueKey>; 2],
}

/// The states of the layers of a stack, lowest first.
type States<const S: usize> = SmallVec<[Detached<S>; 1]>;

impl<const S: usize> Detached<S> {
    fn of<K: Copy>(state: &State<'_, K, S>) -> Self {
        Self {
            values: state.values().map(Value::key),
            masks: state.masks().map(|mask| mask.and_then(Value::key)),
        }
    }

    fn attach<'g, K: Copy>(&self, g: &'g Graph, layer: &Recurrent<K, S>) -> PyResult<State<'g, K, S>> {
        let poison = || EmitError::new_err("the state is poison: an op that made it failed");
        let found = self.values.map(|key| key.and_then(|key| g.value(key)));
        let mut values = [found[0].ok_or_else(poison)?; S];
        for (value, found) in values.iter_mut().zip(found) {
            *value = found.ok_or_else(poison)?;
        }
        Ok(layer.state_of(values, self.masks.map(|mask| mask.and_then(|key| g.value(key)))))
    }
}

impl<K: Copy, const S: usize> Stack<Recurrent<K, S>>
where
    Recurrent<K, S>: Sequence,
{
    fn start(&self, g: &Graph) -> States<S> {
        self.layers.iter().map(|layer| Detached::of(&layer.start(g))).collect()
    }

    /// The states with these values: those of the lowest layer first.
    fn start_from<'g>(&self, values: &[Value<'g>]) -> PyResult<States<S>> {
        let expected = S * self.layers.len();
        if values.len() != expected {
            return Err(PyValueError::new_err(format!(
                "the state has {expected} values, found {}",
                values.len()
            )));
        }
        let own = values.as_chunks::<S>().0;
        Ok(self.layers.iter().zip(own).map(|(layer, own)| Detached::of(&layer.start_from(*own))).collect())
    }

    fn push<'g>(&self, g: &'g Graph, states: &States<S>, mut x: Value<'g>) -> PyResult<States<S>> {
        let mut next = States::new();
        for (number, (layer, state)) in self.layers.iter().zip(states).enumerate() {
            if number > 0 {
                x = self.dropped(x);
            }
            let state = state.attach(g, layer)?.push(x);
            x = state.h();
            next.push(Detached::of(&state));
        }
        Ok(next)
    }
}

/// The constructor of a class of layers, with the options of its kind.
macro_rules! constructor {
    ($class:ident, $layer:ident, $options:ident, ($($option:ident: $ty:ty = $default:tt),*)) => {
        #[pymethods]
        impl $class {
            /// Declares layers for inputs and hidden values of these widths, with `dropout` between layers. `input_dropout` and
            /// `hidden_dropout` drop the same elements at all steps of a sequence. With `hoist`, the inputs of a sequence are
            /// multiplied by their weight before the first step.
            #[new]
            #[pyo3(signature = (module, name, input, width, *, layers = 1, dropout = 0.0, $($option = $default,)*
                layer_norm = false, input_dropout = 0.0, hidden_dropout = 0.0, hoist = false, init = None))]
            #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
            fn new(
                py: Python<'_>,
                module: &PyModule_,
                name: &str,
                input: usize,
                width: usize,
                layers: usize,
                dropout: f32,
                $($option: $ty,)*
                layer_norm: bool,
                input_dropout: f32,
                hidden_dropout: f32,
                hoist: bool,
                init: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let hoist = if hoist { Hoist::Yes } else { Hoist::No };
                let init = self::init(init)?;
                $(let $option = $option.given()?;)*
                let options = $options { hoist, layer_norm, input_dropout, hidden_dropout, init, $($option),* };
                let extents = Extents { name, input, width, layers };
                let declare = |m: &mut _| Stack::<$layer>::declare(m, &extents, &options, dropout);
                Ok(Self { stack: module.declare(py, declare)? })
            }
        }
    };
}

macro_rules! recurrent {
    ($($(#[$doc:meta])* $class:ident = $name:literal, $state:ident = $state_name:literal, $layer:ident, $options:ident, $size:literal,
        $both:ident = $both_name:literal, $pair:ident, ($($option:ident: $ty:ty = $default:tt),*);)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "autobatch.nn")]
        struct $class {
            stack: Stack<$layer>,
        }

        constructor! { $class, $layer, $options, ($($option: $ty = $default),*) }

        #[pymethods]
        impl $class {
            /// The hidden value after each input.
            fn run<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
                many(xs, |g, xs| self.stack.run(g, xs))
            }

            /// The hidden value after the last input; zeros without inputs.
            fn last(&self, xs: &Bound<'_, PyAny>) -> PyResult<PyValue> {
                one(xs, |g, xs| self.stack.last(g, xs))
            }

            /// The state before the first input, or a given state: the values of all layers, lowest first.
            #[pyo3(signature = (values = None))]
            fn start(&self, py: Python<'_>, values: Option<&Bound<'_, PyAny>>) -> PyResult<$state> {
                let (graph, states) = match values {
                    Some(values) => {
                        let values = Many::of(values)?;
                        let states = values.graph.emit(py, |g| self.stack.start_from(&values.get(g)?))?;
                        (values.graph, states)
                    }
                    None => {
                        let graph = current()?;
                        let states = graph.emit(py, |g| Ok(self.stack.start(g)))?;
                        (graph, states)
                    }
                };
                Ok($state { stack: self.stack.clone(), graph, states })
            }
        }

        /// The state of a layer after some inputs. It never changes: `push` returns the next one.
        #[pyclass(frozen, name = $state_name, module = "autobatch.nn")]
        struct $state {
            stack: Stack<$layer>,
            graph: Arc<Shared>,
            states: States<$size>,
        }

        #[pymethods]
        impl $state {
            /// The state after one more input.
            fn push(&self, py: Python<'_>, x: &PyValue) -> PyResult<Self> {
                let states = self.graph.emit(py, |g| self.stack.push(g, &self.states, x.get(g)?))?;
                Ok(Self { stack: self.stack.clone(), graph: Arc::clone(&self.graph), states })
            }

            /// The hidden value of the top layer.
            #[getter]
            fn h(&self) -> PyResult<PyValue> {
                let key = self.states.last().and_then(|state| state.values[0]);
                key.map(|key| PyValue::new(&self.graph, key)).ok_or_else(|| EmitError::new_err("the state is poison"))
            }

            /// All values of the state: for each layer from the lowest on, the hidden value first.
            #[getter]
            fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                let keys: Vec<_> = self.states.iter().flat_map(|state| state.values).collect();
                tuple(py, &self.graph, &keys)
            }
        }

        /// The layer in both directions.
        #[pyclass(frozen, name = $both_name, module = "autobatch.nn")]
        struct $both {
            stack: Stack<$pair>,
        }

        constructor! { $both, $pair, $options, ($($option: $ty = $default),*) }

        #[pymethods]
        impl $both {
            /// For each input, the concatenated outputs of both directions.
            fn run<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
                many(xs, |g, xs| self.stack.run(g, xs))
            }

            /// For each input, the outputs of both directions as a pair.
            fn run_pairs<'py>(&self, xs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
                let flat = many(xs, |g, xs| {
                    let (top, xs) = self.stack.top(g, xs);
                    top.run_pairs(g, xs).into_iter().flatten().collect()
                })?;
                let values: Vec<Bound<'py, PyAny>> = flat.iter().collect();
                let pairs = values.chunks(2).map(|pair| PyTuple::new(xs.py(), pair)).collect::<PyResult<Vec<_>>>()?;
                PyList::new(xs.py(), pairs)
            }

            /// The concatenated last outputs of both directions.
            fn last(&self, xs: &Bound<'_, PyAny>) -> PyResult<PyValue> {
                one(xs, |g, xs| self.stack.last(g, xs))
            }
        }
    )*

        pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $(
                m.add_class::<$class>()?;
                m.add_class::<$state>()?;
                m.add_class::<$both>()?;
            )*
            Ok(())
        }
    };
}

recurrent! {
    /// Long short-term memory.
    PyLstm = "LSTM", LstmState = "LSTMState", Lstm, LstmOptions, 2, PyBiLstm = "BiLSTM", BiLstm,
        (peepholes: bool = false, projection: Option<usize> = None, forget_bias: f32 = 0.0);
    /// The gated recurrent unit.
    PyGru = "GRU", GruState = "GRUState", Gru, GruOptions, 1, PyBiGru = "BiGRU", BiGru, ();
    /// The simple recurrent layer.
    PyRnn = "RNN", RnnState = "RNNState", Rnn, RnnOptions, 1, PyBiRnn = "BiRNN", BiRnn, (activation: &str = "tanh");
}
