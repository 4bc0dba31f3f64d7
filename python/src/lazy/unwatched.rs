//! Reads of torch's tensors that no recorder sees.

use super::Torch;
use pyo3::intern;
use pyo3::prelude::*;

/// While it lives, torch passes no call to a recorder, so that an attribute of a tensor costs what it costs without one.
pub(super) struct Unwatched<'py>(Bound<'py, PyAny>);

impl Torch {
    /// Begins such a time.
    pub(super) fn unwatched<'py>(&self, py: Python<'py>) -> PyResult<Unwatched<'py>> {
        let manager = self.disable.bind(py).call0()?;
        manager.call_method0(intern!(py, "__enter__"))?;
        Ok(Unwatched(manager))
    }
}

impl Drop for Unwatched<'_> {
    fn drop(&mut self) {
        let py = self.0.py();
        // It only sets a flag of the thread.
        let _ = self.0.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()));
    }
}
