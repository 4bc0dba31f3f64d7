//! Comparisons, which emit an op.

use super::PyValue;
use super::operands::operand;
use autobatch::ir::graph::Value;
use pyo3::prelude::*;
use pyo3::types::PyNotImplemented;

#[pymethods]
impl PyValue {
    /// Whether equal, element by element. A value is not equal to what is no operand, such as None.
    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compared(other, |a, b| a.equal(b), |a, b| a.equal(b))
    }

    /// Whether different, element by element.
    fn __ne__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compared(other, |a, b| a.not_equal(b), |a, b| a.not_equal(b))
    }

    fn __lt__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.less(b), |a, b| a.less(b))
    }

    fn __le__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.less_equal(b), |a, b| a.less_equal(b))
    }

    fn __gt__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.greater(b), |a, b| a.greater(b))
    }

    fn __ge__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, |a, b| a.greater_equal(b), |a, b| a.greater_equal(b))
    }
}

impl PyValue {
    /// Compares with an operand. For anything else Python compares identities.
    fn compared<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        f: impl for<'g> FnOnce(Value<'g>, Value<'g>) -> Value<'g>,
        number: impl for<'g> FnOnce(Value<'g>, f32) -> Value<'g>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match operand(other) {
            Ok(operand) => {
                let compared = self.with_operand(other.py(), &operand, f, number)?;
                Ok(Bound::new(other.py(), compared)?.into_any())
            }
            Err(_) => Ok(PyNotImplemented::get(other.py()).to_owned().into_any()),
        }
    }
}
