//! `Trainer`: a session with an optimiser.

use crate::error::{BusyError, raised};
use crate::group::PyGroup;
use crate::module::PyModule_;
use crate::optim::{PyOptimizer, schedule};
use crate::session::{Emitted, PySession, new_graph, not_pickled, options, released};
use crate::step::PyStep;
use crate::weights::{imported, replaced, weights_dict};
use autobatch::ir::{Module, Weights};
use autobatch::{SuspendedGrowth, Trainer};
use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping};
use std::collections::HashMap;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;

/// A session with an optimiser. Steps change its weights.
#[pyclass(frozen, name = "Trainer", module = "autobatch")]
pub(crate) struct PyTrainer {
    pub(crate) module: Arc<Module>,
    trainer: Mutex<Trainer>,
    /// The incremental execution of `evaluate`.
    pub(crate) suspended: Mutex<SuspendedGrowth>,
    /// Whether steps work in shards.
    pub(crate) in_shards: bool,
}

impl PyTrainer {
    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, Trainer>> {
        self.trainer.try_lock().ok_or_else(|| {
            BusyError::new_err("another thread uses this trainer; give each thread a trainer of its own")
        })
    }
}

#[pymethods]
impl PyTrainer {
    /// Closes a module, draws its weights from a seed, and trains it with an optimiser. A step whose losses or gradients
    /// have a NaN or an infinity is an error, or with `skip_non_finite` changes nothing and is counted in `skipped`. A step
    /// leaves parameters alone that its losses do not depend on, unless `update_unused` is set.
    ///
    /// With `shards`, each minibatch is cut into this number of parts, whose gradients are added in a fixed tree: weights then depend on this
    /// number, and not on how many processes share the parts. A `group` is the communicator of these processes, such as
    /// `mpi4py.MPI.COMM_WORLD`: all make equal trainers and pass equal minibatches to `step`, and each executes its shards, 8 in all by
    /// default. With `divide_states` each process keeps the optimiser's states of an equal share of all elements; all processes then
    /// call `save` and `averages`.
    #[new]
    #[pyo3(signature = (module, optimizer, *, device = "cpu", policy = None, threads = 0, seed = 0, memory_limit = None, work_limit = None, skip_non_finite = false, update_unused = false, shards = None, group = None, divide_states = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        optimizer: &PyOptimizer,
        device: &str,
        policy: Option<&str>,
        threads: usize,
        seed: u64,
        memory_limit: Option<u64>,
        work_limit: Option<f64>,
        skip_non_finite: bool,
        update_unused: bool,
        shards: Option<usize>,
        group: Option<&Bound<'_, PyAny>>,
        divide_states: bool,
    ) -> PyResult<Self> {
        let module = module.close()?;
        let options = options(device, policy, threads, memory_limit, work_limit)?;
        let optimizer = optimizer.optimizer.clone();
        let options = autobatch::SessionOptions { seed, ..options };
        let weights = Weights::try_init(&module, seed).map_err(|error| raised(error.into()))?;
        let weights = Arc::new(weights);
        let trainer =
            released(py, || Trainer::with_options(&module, optimizer, weights, options)).map_err(raised)?;
        let mut trainer = trainer.skip_non_finite(skip_non_finite).update_unused(update_unused);
        if let Some(shards) = shards {
            if shards == 0 {
                return Err(PyValueError::new_err("shards must be at least 1, found 0"));
            }
            trainer = trainer.shards(shards);
        }
        if let Some(group) = group {
            let group = PyGroup::of(group)?;
            trainer = released(py, || trainer.group(group)).map_err(raised)?;
        }
        if divide_states {
            trainer = trainer.divide_states().map_err(raised)?;
        }
        let in_shards = shards.is_some() || group.is_some() || divide_states;
        Ok(Self { module, trainer: Mutex::new(trainer), suspended: Mutex::default(), in_shards })
    }

    /// The number of this process in the group, from 0.
    #[getter]
    fn rank(&self) -> PyResult<usize> {
        Ok(self.lock()?.rank())
    }

    /// The number of processes in the group, 1 without one.
    #[getter]
    fn ranks(&self) -> PyResult<usize> {
        Ok(self.lock()?.ranks())
    }

    /// Compares a fact between all processes of the group, such as a hash of the data. An error, on all of them, if one differs.
    fn agree(&self, py: Python<'_>, subject: &str, fact: &str) -> PyResult<()> {
        let mut trainer = self.lock()?;
        released(py, || trainer.agree(subject, fact)).map_err(raised)
    }

    /// Calls `emit` for every item, computes all values with the current weights and without dropout, and returns their
    /// arrays.
    fn predict<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        emit: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let emitted = Emitted::of(new_graph(&self.module, None), items, emit)?;
        emitted.run(items.py(), self.lock()?.session())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("Trainer"))
    }

    /// A session with a copy of the current weights.
    fn session(&self) -> PyResult<PySession> {
        let weights = Arc::clone(self.lock()?.weights());
        let options = options("cpu", None, 0, None, None)?;
        let session = autobatch::Session::with_options(&self.module, weights, options);
        Ok(PySession::of(Arc::clone(&self.module), session.map_err(raised)?))
    }

    /// The values of all parameters by name, as a dict of arrays.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        weights_dict(py, self.lock()?.weights())
    }

    /// Replaces the values of some parameters, given by name as arrays.
    fn set_weights(&self, values: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut trainer = self.lock()?;
        let weights = replaced(&self.module, trainer.weights(), values)?;
        trainer.set_weights(Arc::new(weights)).map_err(raised)
    }

    /// Reads a state dict of PyTorch: the layers of `nn` with its names and layouts. `names` maps modules of PyTorch to layers
    /// here, and modules below them follow. Returns the names that were read, are missing in the state dict or belong to no
    /// parameter, and the biases that are the sum of two.
    #[pyo3(signature = (state_dict, names = HashMap::new()))]
    fn import_pytorch<'py>(
        &self,
        state_dict: &Bound<'py, PyMapping>,
        names: HashMap<String, String>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut trainer = self.lock()?;
        let (weights, report) = imported(trainer.weights(), state_dict, &names)?;
        trainer.set_weights(Arc::new(weights)).map_err(raised)?;
        Ok(report)
    }

    /// Replaces the schedule of the learning rate.
    fn set_schedule(&self, schedule: &Bound<'_, PyAny>) -> PyResult<()> {
        self.lock()?.set_schedule(self::schedule(schedule)?);
        Ok(())
    }

    /// The learning rate of the next step.
    #[getter]
    fn learning_rate(&self) -> PyResult<f64> {
        Ok(self.lock()?.learning_rate())
    }

    /// The number of steps.
    #[getter]
    fn steps(&self) -> PyResult<u64> {
        Ok(self.lock()?.steps())
    }

    /// The number of steps that were skipped; see `skip_non_finite`.
    #[getter]
    fn skipped(&self) -> PyResult<u64> {
        Ok(self.lock()?.skipped())
    }

    /// Writes a checkpoint, from which `load` continues with equal bits. All processes of a group call it, and the first one writes.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let trainer = self.lock()?;
        released(py, || trainer.save(path)).map_err(|error| raised(error.into()))
    }

    /// Continues from a checkpoint of the same model and optimiser. All processes of a group call it.
    fn load(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let mut trainer = self.lock()?;
        released(py, || trainer.load(path)).map_err(|error| raised(error.into()))?;
        match trainer.changes() {
            [] => Ok(()),
            changes => {
                let message =
                    format!("training continues with other settings than before: {}", changes.join("; "));
                let message = CString::new(message).unwrap_or_default();
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 1)
            }
        }
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<autobatch.Trainer of {}, {} steps>", self.module.name, self.lock()?.steps()))
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTrainer>()?;
    m.add_class::<PyStep>()
}
