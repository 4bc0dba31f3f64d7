//! Layers over trees.

use super::{Given, exactly, tuple};
use crate::graph::wrap;
use crate::module::{PyModule_, init};
use crate::value::{Many, PyValue};
use autobatch::ir::Graph;
use autobatch::ir::graph::Value;
use autobatch::nn::{
    ChildSumTreeLstm, Hoist, MvRnn, TreeGru, TreeGruOptions, TreeLstm, TreeLstmOptions, TreeRnn,
    TreeRnnOptions,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The error of a node whose input the layer was, or was not, declared with.
fn check_input(declared: Option<usize>, given: Option<&PyValue>) -> PyResult<()> {
    match (declared, given) {
        (Some(width), None) => {
            Err(PyTypeError::new_err(format!("nodes of this layer have an input of width {width}; pass x")))
        }
        (None, Some(_)) => Err(PyTypeError::new_err(
            "nodes of this layer have no input; declare the layer with input=, the width of x",
        )),
        _ => Ok(()),
    }
}

/// Reads the state of a child.
fn state<'g>(child: &Many, g: &'g Graph) -> PyResult<[Value<'g>; 2]> {
    exactly::<2>(child.get(g)?, "a state")
}

/// The binary Tree-LSTM.
#[pyclass(frozen, name = "TreeLSTM", module = "autobatch.nn")]
struct PyTreeLstm {
    layer: TreeLstm<2>,
    input: Option<usize>,
}

#[pymethods]
impl PyTreeLstm {
    /// Declares the layer for states of this width. With `input`, every node has an input of that width.
    #[new]
    #[pyo3(signature = (module, name, width, *, input = None, forget_bias = 0.0, init = None))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        width: usize,
        input: Option<usize>,
        forget_bias: f32,
        init: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let options = TreeLstmOptions { input, forget_bias, init: self::init(init)? };
        let layer = module.declare(py, |m| Ok(TreeLstm::with_options(m, name, width, &options)))?;
        Ok(Self { layer, input })
    }

    /// The state `(h, c)` of a node over two children `(h, c)`, with the input of the node if the layer was declared with one.
    #[pyo3(signature = (left, right, x = None))]
    fn node<'py>(
        &self,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
        x: Option<&PyValue>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        check_input(self.input, x)?;
        let (py, left, right) = (left.py(), Many::of(left)?, Many::of(right)?);
        let keys = left.graph.emit(py, |g| {
            let children = [state(&left, g)?, state(&right, g)?];
            let state = match x {
                Some(x) => self.layer.node_with(g, x.get(g)?, children),
                None => self.layer.node(g, children),
            };
            Ok(state.map(Value::key))
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
    ($($(#[$doc:meta])* $class:ident = $name:literal, $layer:ident, $options:ident, ($($option:ident: $ty:ty = $default:tt),*);)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "autobatch.nn")]
        struct $class {
            layer: $layer<2>,
            input: Option<usize>,
        }

        #[pymethods]
        impl $class {
            /// Declares the layer for values of this width. With `input`, every node has an input of that width.
            #[new]
            #[pyo3(signature = (module, name, width, *, input = None, $($option = $default,)* init = None))]
            #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
            fn new(
                py: Python<'_>,
                module: &PyModule_,
                name: &str,
                width: usize,
                input: Option<usize>,
                $($option: $ty,)*
                init: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                $(let $option = $option.given()?;)*
                let options = $options { input, $($option,)* init: self::init(init)? };
                let layer = module.declare(py, |m| Ok($layer::with_options(m, name, width, &options)))?;
                Ok(Self { layer, input })
            }

            /// The value of a node over two children, with the input of the node if the layer was declared with one.
            #[pyo3(signature = (left, right, x = None))]
            fn node(&self, py: Python<'_>, left: &PyValue, right: &PyValue, x: Option<&PyValue>) -> PyResult<PyValue> {
                check_input(self.input, x)?;
                let graph = left.owner();
                graph.emit(py, |g| {
                    let children = [left.get(g)?, right.get(g)?];
                    let value = match x {
                        Some(x) => self.layer.node_with(g, x.get(g)?, children),
                        None => self.layer.node(g, children),
                    };
                    wrap(graph, value)
                })
            }
        }
    )*};
}

trees! {
    /// The binary gated recurrent tree layer.
    PyTreeGru = "TreeGRU", TreeGru, TreeGruOptions, ();
    /// The binary recursive layer.
    PyTreeRnn = "TreeRNN", TreeRnn, TreeRnnOptions, (bias: bool = false, activation: &str = "tanh");
}

/// The child-sum Tree-LSTM, for nodes with any number of children.
#[pyclass(frozen, name = "ChildSumTreeLSTM", module = "autobatch.nn")]
struct PyChildSum {
    layer: ChildSumTreeLstm,
}

#[pymethods]
impl PyChildSum {
    /// Declares the layer for inputs and states of these widths. With `hoist`, the inputs of all nodes are multiplied by their
    /// weight before the first node.
    #[new]
    #[pyo3(signature = (module, name, input, width, *, hoist = false, init = None))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        input: usize,
        width: usize,
        hoist: bool,
        init: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (hoist, init) = (if hoist { Hoist::Yes } else { Hoist::No }, self::init(init)?);
        let declare = |m: &mut _| Ok(ChildSumTreeLstm::with_options(m, name, input, width, hoist, &init));
        Ok(Self { layer: module.declare(py, declare)? })
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
            let children = children.iter().map(|child| state(child, g)).collect::<PyResult<Vec<_>>>()?;
            Ok(self.layer.node(g, x.get(g)?, &children).map(Value::key))
        })?;
        tuple(py, x.owner(), &keys)
    }
}

/// The matrix-vector recursive layer: every node has a vector and a matrix.
#[pyclass(frozen, name = "MVRNN", module = "autobatch.nn")]
struct PyMvRnn {
    layer: MvRnn,
}

#[pymethods]
impl PyMvRnn {
    /// Declares the layer for vectors of this width.
    #[new]
    #[pyo3(signature = (module, name, width, *, init = None))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        width: usize,
        init: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let init = self::init(init)?;
        Ok(Self { layer: module.declare(py, |m| Ok(MvRnn::with_options(m, name, width, &init)))? })
    }

    /// A leaf with a vector, and a matrix given as one row of `width * width` elements, transposed.
    fn leaf<'py>(
        &self,
        py: Python<'py>,
        vector: &PyValue,
        matrix: &PyValue,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let graph = vector.owner();
        let keys = graph.emit(py, |g| Ok(self.layer.leaf(vector.get(g)?, matrix.get(g)?).map(Value::key)))?;
        tuple(py, graph, &keys)
    }

    /// The vector and the transposed matrix of a node over two such pairs.
    fn node<'py>(
        &self,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (py, left, right) = (left.py(), Many::of(left)?, Many::of(right)?);
        let keys = left
            .graph
            .emit(py, |g| Ok(self.layer.node(g, state(&left, g)?, state(&right, g)?).map(Value::key)))?;
        tuple(py, &left.graph, &keys)
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTreeLstm>()?;
    m.add_class::<PyTreeGru>()?;
    m.add_class::<PyTreeRnn>()?;
    m.add_class::<PyChildSum>()?;
    m.add_class::<PyMvRnn>()
}
