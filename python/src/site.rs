//! The user's Python line, which nodes and errors name.

use autobatch::ir::graph::Site;
use pyo3::ffi;
use pyo3::prelude::*;

/// A line of a running Python program.
pub(crate) struct Line<'py> {
    /// The code object of the innermost frame.
    pub(crate) code: Bound<'py, PyAny>,
    /// The line in its file, from 1.
    pub(crate) line: u32,
}

impl<'py> Line<'py> {
    /// Returns the line that calls into this package; `None` outside of any frame.
    pub(crate) fn current(py: Python<'py>) -> Option<Self> {
        // SAFETY: the interpreter is attached. `PyEval_GetFrame` returns a borrowed frame or null, and the frame
        // outlives this function because it is on the stack below it. `PyFrame_GetCode` returns a new reference.
        unsafe {
            let frame = ffi::PyEval_GetFrame();
            if frame.is_null() {
                return None;
            }
            let line = u32::try_from(ffi::PyFrame_GetLineNumber(frame)).unwrap_or(1);
            let code = Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetCode(frame).cast())?;
            Some(Self { code, line })
        }
    }

    /// Returns the file and line for the engine.
    pub(crate) fn site(&self) -> Site {
        let file = self.code.getattr("co_filename").and_then(|name| name.extract::<String>());
        Site { file: file.unwrap_or_else(|_| "<python>".to_owned()), line: self.line, column: 1 }
    }
}
