//! Layers over graphs. The neighbours of a node are numbers of nodes, one sequence for each node.

use crate::graph::wrap;
use crate::module::PyModule_;
use crate::value::{Many, PyValue};
use autobatch::nn::{GatedGraph, GatedSum, GraphAttention, GraphAttentionOptions};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The gated graph network: in each round, every node sums its neighbours and updates its state by a GRU.
#[pyclass(frozen, name = "GatedGraph", module = "autobatch.nn")]
struct PyGatedGraph {
    layer: GatedGraph,
}

#[pymethods]
impl PyGatedGraph {
    /// Declares the layer for states of this width.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, width: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(GatedGraph::new(m, name, width)))? })
    }

    /// The states of all nodes after some rounds, from one state per node.
    fn __call__<'py>(
        &self,
        states: &Bound<'py, PyAny>,
        neighbours: Vec<Vec<u32>>,
        rounds: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        super::many(states, |g, states| self.layer.run(g, &states, &neighbours, rounds))
    }
}

/// The sum of all nodes of a graph, each times a gate.
#[pyclass(frozen, name = "GatedSum", module = "autobatch.nn")]
struct PyGatedSum {
    layer: GatedSum,
}

#[pymethods]
impl PyGatedSum {
    /// Declares the layer for states and inputs of one width.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, width: usize, outputs: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(GatedSum::new(m, name, width, outputs)))? })
    }

    /// The sum over the nodes, given the final state and the input of each; zeros without nodes.
    fn __call__(&self, states: &Bound<'_, PyAny>, inputs: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let (py, states, inputs) = (states.py(), Many::of(states)?, Many::of(inputs)?);
        states.graph.emit(py, |g| wrap(&states.graph, self.layer.on(g, &states.get(g)?, &inputs.get(g)?)))
    }
}

/// Graph attention: every node attends to its neighbours and to itself, in several heads.
#[pyclass(frozen, name = "GraphAttention", module = "autobatch.nn")]
struct PyGraphAttention {
    layer: GraphAttention,
}

#[pymethods]
impl PyGraphAttention {
    /// Declares the layer; `heads` must divide `width`. `slope` is that of negative scores, `activation` the function of the results.
    #[new]
    #[pyo3(signature = (module, name, inputs, width, heads, *, slope = 0.2, activation = "identity"))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        inputs: usize,
        width: usize,
        heads: usize,
        slope: f32,
        activation: &str,
    ) -> PyResult<Self> {
        let options = GraphAttentionOptions { slope, activation: super::activation(activation)? };
        let declare = |m: &mut _| Ok(GraphAttention::with_options(m, name, [inputs, width], heads, options));
        Ok(Self { layer: module.declare(py, declare)? })
    }

    /// The result of every node. A node attends to itself whether or not it is among its neighbours.
    fn __call__<'py>(
        &self,
        nodes: &Bound<'py, PyAny>,
        neighbours: Vec<Vec<u32>>,
    ) -> PyResult<Bound<'py, PyList>> {
        super::many(nodes, |g, nodes| self.layer.run(g, &nodes, &neighbours))
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyGatedGraph>()?;
    m.add_class::<PyGatedSum>()?;
    m.add_class::<PyGraphAttention>()
}
