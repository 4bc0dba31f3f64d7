//! Losses of one value.

use super::PyValue;
use crate::module::PyParam;
use pyo3::prelude::*;

#[pymethods]
impl PyValue {
    /// `-log_softmax(self)[label]` of each row.
    fn cross_entropy(&self, label: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.indexed(label, |x, label| x.cross_entropy(label))
    }

    /// `-log_softmax(rows · self)[label]` of 10^4 labels and more: `rows` has a row for each, and no score is kept.
    fn label_loss(&self, rows: &PyParam, label: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.indexed(label, |x, label| x.label_loss(rows.param, label))
    }

    /// `-sum target * log_softmax(self)`.
    fn cross_entropy_with(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.cross_entropy_with(b), |a, _| a)
    }

    /// `sum target * (log target - self)`, where `self` holds log-probabilities.
    fn kl_div(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.kl_div(b), |a, _| a)
    }

    /// The mean of the squared differences.
    fn mse(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.mse(b), |a, x| (a - x).square().mean())
    }

    /// The mean binary cross-entropy of these logits against targets in `0..=1`.
    fn bce(&self, target: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(target, |a, b| a.bce(b), |a, x| a.bce(a.graph().constant(x)))
    }

    /// The margin loss of each row.
    #[pyo3(signature = (label, margin = 1.0))]
    fn hinge(&self, label: &Bound<'_, PyAny>, margin: f32) -> PyResult<Self> {
        self.indexed(label, |x, label| x.hinge(label, margin))
    }
}
