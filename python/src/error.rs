//! The exceptions. Each kind of error of the engine has a class of its own.

use autobatch::Error;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(autobatch, AutobatchError, PyException, "An error of autobatch.");
pyo3::create_exception!(autobatch, EmitError, AutobatchError, "A model emitted an invalid op.");
pyo3::create_exception!(autobatch, PlanError, AutobatchError, "A graph has no plan.");
pyo3::create_exception!(autobatch, RunError, AutobatchError, "A plan could not be executed.");
pyo3::create_exception!(autobatch, TrainError, AutobatchError, "A training step failed.");
pyo3::create_exception!(autobatch, CheckpointError, AutobatchError, "A file could not be written or read.");
pyo3::create_exception!(autobatch, WeightsError, AutobatchError, "Values do not fit the parameters.");
pyo3::create_exception!(autobatch, ClosedError, AutobatchError, "A graph, cell or session is closed.");
pyo3::create_exception!(autobatch, RecordError, AutobatchError, "An op of torch cannot be recorded.");
pyo3::create_exception!(autobatch, BusyError, AutobatchError, "Another thread uses the object.");

/// Converts an error of the engine to the exception of its kind.
pub(crate) fn raised(error: Error) -> PyErr {
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
        Error::Train(_) => TrainError::new_err(text),
        Error::Weights(_) | Error::OtherModule | Error::States(_) => WeightsError::new_err(text),
        Error::Checkpoint(_) | Error::Io { .. } => CheckpointError::new_err(text),
        _ => RunError::new_err(text),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("AutobatchError", py.get_type::<AutobatchError>())?;
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
