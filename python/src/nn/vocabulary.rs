//! Layers over tags, experts and large vocabularies.

use super::{many, unary};
use crate::error::EmitError;
use crate::graph::{Shared, current, wrap};
use crate::module::PyModule_;
use crate::value::{Many, PyValue};
use autobatch::nn::{AdaptiveSoftmax, Crf, DetachedSample, Experts, SampledSoftmax};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

/// A linear-chain conditional random field.
#[pyclass(frozen, name = "CRF", module = "autobatch.nn")]
struct PyCrf {
    layer: Crf,
}

#[pymethods]
impl PyCrf {
    /// Declares `name.transitions` of `[tags, tags]` (to, from), `name.start` and `name.end`.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, tags: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(Crf::new(m, name, tags)))? })
    }

    /// The negative logarithm of the probability of the tags, one for each position, given the scores of all tags at each position.
    fn loss(&self, scores: &Bound<'_, PyAny>, tags: Vec<u32>) -> PyResult<PyValue> {
        super::one(scores, |g, scores| self.layer.loss(g, scores, &tags))
    }

    /// The most probable tags, an index for each position.
    fn decode<'py>(&self, scores: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        many(scores, |g, scores| self.layer.decode(g, scores))
    }
}

/// A mixture of experts: a gate weighs several MLPs.
#[pyclass(frozen, name = "Experts", module = "autobatch.nn")]
struct PyExperts {
    layer: Experts,
}

#[pymethods]
impl PyExperts {
    /// Declares a gate and `count` experts, each with layers between these widths, the input width first.
    #[new]
    #[pyo3(signature = (module, name, widths, count, activation = "relu"))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        widths: Vec<usize>,
        count: usize,
        activation: &str,
    ) -> PyResult<Self> {
        let activation = super::activation(activation)?;
        Ok(Self { layer: module.declare(py, |m| Ok(Experts::new(m, name, &widths, activation, count)))? })
    }

    /// The probability of each expert.
    fn gates(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.gates(x))
    }

    /// The mixture of all experts.
    fn __call__(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.dense(x.graph(), x))
    }

    /// The mixture of the named experts, each at most once. `gates` are those of `gates(x)`.
    fn sparse(&self, py: Python<'_>, x: &PyValue, gates: &PyValue, used: Vec<u32>) -> PyResult<PyValue> {
        let graph = x.owner();
        graph.emit(py, |g| wrap(graph, self.layer.sparse(g, x.get(g)?, gates.get(g)?, &used)))
    }
}

/// A softmax over a class and a sample of other classes, for training with many classes in the order of their frequency.
#[pyclass(frozen, name = "SampledSoftmax", module = "autobatch.nn")]
struct PySampledSoftmax {
    layer: SampledSoftmax,
}

#[pymethods]
impl PySampledSoftmax {
    /// Declares the tables `name.w` of `[classes, inputs]` and `name.b`. A graph compares its classes with `samples` others.
    #[new]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        inputs: usize,
        classes: u32,
        samples: u32,
    ) -> PyResult<Self> {
        Ok(Self {
            layer: module.declare(py, |m| Ok(SampledSoftmax::new(m, name, inputs, classes, samples)))?,
        })
    }

    /// The sample of the current graph, which all its losses may share. Equal seeds draw equal classes; a good seed is the number of
    /// the step.
    fn sample(&self, py: Python<'_>, seed: u64) -> PyResult<PySample> {
        let graph = current()?;
        let sample = graph.emit(py, |g| Ok(self.layer.sample(g, seed).detach()))?;
        Ok(PySample { graph, sample })
    }

    /// The sum of the losses of a sequence of vectors and their classes against a sample; 0 for an empty sequence.
    fn loss(&self, sample: &PySample, xs: &Bound<'_, PyAny>, classes: Vec<u32>) -> PyResult<PyValue> {
        let (py, xs) = (xs.py(), Many::of(xs)?);
        sample.graph.emit(py, |g| {
            let own = sample.sample.attach(g).ok_or_else(|| EmitError::new_err("the sample is poison"))?;
            wrap(&sample.graph, self.layer.loss(&own, xs.get(g)?, &classes))
        })
    }

    /// The loss of a class among all classes, for evaluation.
    fn full_loss(&self, py: Python<'_>, x: &PyValue, class: u32) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.full_loss(x, class))
    }
}

/// A softmax over many classes in the order of their frequency: rare ones lie in clusters of narrow layers.
#[pyclass(frozen, name = "AdaptiveSoftmax", module = "autobatch.nn")]
struct PyAdaptiveSoftmax {
    layer: AdaptiveSoftmax,
}

#[pymethods]
impl PyAdaptiveSoftmax {
    /// Declares the layer for vectors of width `inputs`. The cutoffs ascend; the last one is the number of classes. Each cluster is
    /// narrower than the one before by the factor `reduction`.
    #[new]
    #[pyo3(signature = (module, name, inputs, cutoffs, reduction = 4))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        inputs: usize,
        cutoffs: Vec<u32>,
        reduction: usize,
    ) -> PyResult<Self> {
        let declare = |m: &mut _| Ok(AdaptiveSoftmax::new(m, name, inputs, &cutoffs, reduction));
        Ok(Self { layer: module.declare(py, declare)? })
    }

    /// The negative log-probability of a class.
    fn loss(&self, py: Python<'_>, x: &PyValue, class: u32) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.loss(x, class))
    }

    /// The log-probabilities of all classes.
    fn log_probabilities(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.log_probabilities(x))
    }
}

/// Classes that the losses of one graph compare theirs with.
#[pyclass(frozen, name = "Sample", module = "autobatch.nn")]
struct PySample {
    graph: Arc<Shared>,
    sample: DetachedSample,
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyCrf>()?;
    m.add_class::<PyExperts>()?;
    m.add_class::<PySampledSoftmax>()?;
    m.add_class::<PyAdaptiveSoftmax>()?;
    m.add_class::<PySample>()
}
