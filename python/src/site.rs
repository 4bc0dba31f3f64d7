//! The user's Python line, which nodes and errors name.

use autobatch::ir::graph::Site;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

/// A place in a running Python program.
pub(crate) struct Place<'py> {
    frame: Bound<'py, PyAny>,
    /// The code object of the innermost frame.
    pub(crate) code: Bound<'py, PyAny>,
    /// The offset of its current instruction. Python finds the line of an instruction by a scan of all lines before it,
    /// so places are told apart by their instruction.
    pub(crate) instruction: u32,
}

impl<'py> Place<'py> {
    /// Returns the place that calls into this package; `None` outside of any frame.
    pub(crate) fn current(py: Python<'py>) -> Option<Self> {
        // SAFETY: the interpreter is attached. `PyEval_GetFrame` returns a borrowed frame or null, and `PyFrame_GetCode`
        // returns a new reference.
        let (frame, code) = unsafe {
            let frame = Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast())?;
            let code = ffi::PyFrame_GetCode(frame.as_ptr().cast());
            (frame, Bound::from_owned_ptr_or_opt(py, code.cast())?)
        };
        let instruction =
            frame.getattr(intern!(py, "f_lasti")).and_then(|offset| offset.extract()).unwrap_or(0);
        Some(Self { frame, code, instruction })
    }

    /// Returns the file and line for the engine.
    pub(crate) fn site(&self) -> Site {
        let file = self.code.getattr("co_filename").and_then(|name| name.extract::<String>());
        let line = self.frame.getattr("f_lineno").and_then(|line| line.extract()).unwrap_or(1);
        Site { file: file.unwrap_or_else(|_| "<python>".to_owned()), line, column: 1 }
    }
}
