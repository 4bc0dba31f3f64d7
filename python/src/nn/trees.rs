//! Layers over trees.

use super::{exactly, tuple};
use crate::graph::wrap;
use crate::module::PyModule_;
use crate::value::{Many, PyValue};
use autobatch::ir::graph::Value;
use autobatch::nn::{ChildSumTreeLstm, TreeGru, TreeLstm, TreeRnn};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

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

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTreeLstm>()?;
    m.add_class::<PyTreeGru>()?;
    m.add_class::<PyTreeRnn>()?;
    m.add_class::<PyChildSum>()
}
