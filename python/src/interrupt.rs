//! Signals during a run: Ctrl-C, or a handler that raises an exception, stops it. The exception replaces the error of the run.

use autobatch::Error;
use autobatch::runtime_cpu::{Interrupt, RunError};
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// The time between two questions. Each may wait for a thread that holds the interpreter's lock.
const PAUSE: Duration = Duration::from_millis(50);

thread_local! {
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The exception that stopped the run on this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Stops a run if a signal handler raises an exception. Only Python's main thread executes handlers.
pub(crate) fn of_signals() -> Interrupt {
    Interrupt::new(|| {
        let now = Instant::now();
        if ASKED.get().is_some_and(|asked| now.duration_since(asked) < PAUSE) {
            return false;
        }
        ASKED.set(Some(now));
        let exception = Python::attach(|py| py.check_signals()).err();
        let stops = exception.is_some();
        RAISED.set(exception);
        stops
    })
}

/// The exception of the signal handler that stopped a run with this error.
pub(crate) fn exception_behind(error: &Error) -> Option<PyErr> {
    match error {
        Error::Run(RunError::Stopped) => RAISED.take(),
        _ => None,
    }
}
