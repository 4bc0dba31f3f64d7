//! The exceptions. Each kind of error of the engine has a class of its own.

use autobatch::Error;
use autobatch::train::TrainError as Fault;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    autobatch,
    AutobatchError,
    PyException,
    "An error of autobatch. `file` and `line` name the line of the model and `help` the remedy, where the error is about one; otherwise they are None."
);
pyo3::create_exception!(autobatch, EmitError, AutobatchError, "A model emitted an invalid op.");
pyo3::create_exception!(autobatch, PlanError, AutobatchError, "A graph has no plan.");
pyo3::create_exception!(autobatch, RunError, AutobatchError, "A plan could not be executed.");
pyo3::create_exception!(autobatch, TrainError, AutobatchError, "A training step failed.");
pyo3::create_exception!(autobatch, CheckpointError, AutobatchError, "A file could not be written or read.");
pyo3::create_exception!(autobatch, WeightsError, AutobatchError, "Values do not fit the parameters.");
pyo3::create_exception!(autobatch, ClosedError, AutobatchError, "A graph, cell or session is closed.");
pyo3::create_exception!(autobatch, RecordError, AutobatchError, "An op of torch cannot be recorded.");
pyo3::create_exception!(autobatch, BusyError, AutobatchError, "Another thread uses the object.");

/// Converts an error of the engine to the exception of its kind, with the line of the model and the remedy as attributes. If a
/// signal handler stopped the run, returns its exception.
pub(crate) fn raised(error: Error) -> PyErr {
    if let Some(exception) = crate::interrupt::exception_behind(&error) {
        return exception;
    }
    let site = error.site().map(|site| (site.file.clone(), site.line));
    let help = error.help().map(str::to_owned);
    let exception = of_kind(error);
    let named = Python::attach(|py| {
        let value = exception.value(py);
        if let Some((file, line)) = site {
            value.setattr("file", file)?;
            value.setattr("line", line)?;
        }
        help.map_or(Ok(()), |help| value.setattr("help", help))
    });
    named.err().unwrap_or(exception)
}

fn of_kind(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Emit(_) | Error::OtherGraph { .. } | Error::OtherModuleGraph { .. } => {
            EmitError::new_err(text)
        }
        Error::Plan(_)
        | Error::Verify(_)
        | Error::Policy(_)
        | Error::PolicyVariable(_)
        | Error::DumpVariable(_)
        | Error::PolicyFile(_) => PlanError::new_err(text),
        // A row that a table does not have, also outside of training.
        Error::Train(Fault::Index { .. }) => RunError::new_err(text),
        Error::Train(_) => TrainError::new_err(text),
        Error::Weights(_) | Error::OtherModule | Error::States(_) => WeightsError::new_err(text),
        Error::Checkpoint(_) | Error::Io { .. } => CheckpointError::new_err(text),
        _ => RunError::new_err(text),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let base = py.get_type::<AutobatchError>();
    for name in ["file", "line", "help"] {
        base.setattr(name, py.None())?;
    }
    m.add("AutobatchError", base)?;
    m.add("EmitError", py.get_type::<EmitError>())?;
    m.add("PlanError", py.get_type::<PlanError>())?;
    m.add("RunError", py.get_type::<RunError>())?;
    m.add("TrainError", py.get_type::<TrainError>())?;
    m.add("CheckpointError", py.get_type::<CheckpointError>())?;
    m.add("WeightsError", py.get_type::<WeightsError>())?;
    m.add("ClosedError", py.get_type::<ClosedError>())?;
    m.add("RecordError", py.get_type::<RecordError>())?;
    m.add("BusyError", py.get_type::<BusyError>())
}
