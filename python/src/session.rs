//! `Session`: plans and executes the graphs of a module.

use crate::error::{BusyError, raised};
use crate::graph::{Current, PyGraph, Shared};
use crate::module::PyModule_;
use crate::plan::PyPlan;
use crate::tasks::{Task, rounds};
use crate::value::{PyValue, row_major};
use crate::weights::{extents, imported, replaced, weights_dict};
use autobatch::ir::graph::ValueKey;
use autobatch::ir::plan::Limits;
use autobatch::ir::types::{DType, Shape};
use autobatch::ir::{Graph, Module, Weights};
use autobatch::planner::schedule::Policy;
use autobatch::{Row, Session, SessionOptions};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn};
use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyTuple};
use std::collections::HashMap;
use std::sync::Arc;

/// Plans and executes graphs over one module.
#[pyclass(frozen, name = "Session", module = "autobatch")]
pub(crate) struct PySession {
    module: Arc<Module>,
    session: Mutex<Session>,
}

/// Runs `f` without the interpreter's lock, so that other Python threads run. `f` must not touch Python objects.
pub(crate) fn released<R>(py: Python<'_>, f: impl FnOnce() -> R) -> R {
    struct Here<T>(T);
    // SAFETY: `detach` calls its closure on the calling thread before it returns. Nothing moves to another thread;
    // the bound `Send` only keeps Python objects out, and the contract of this function does that.
    unsafe impl<T> Send for Here<T> {}
    impl<F: FnOnce() -> R, R> Here<F> {
        fn call(self) -> Here<R> {
            Here((self.0)())
        }
    }
    let f = Here(f);
    py.detach(move || f.call()).0
}

/// The error of an object that holds threads and memory of its own, and so has no copies.
pub(crate) fn not_pickled(class: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {class} cannot be copied or pickled; make another one of the same module, and pass the dict `weights` of this one to \
         its `set_weights`"
    ))
}

/// Reads the options that sessions and trainers share.
pub(crate) fn options(
    device: &str,
    policy: Option<&str>,
    threads: usize,
    memory_limit: Option<u64>,
    work_limit: Option<f64>,
) -> PyResult<SessionOptions> {
    let limits = Limits { memory: memory_limit, work: work_limit.map(|work| work as u64) };
    let interrupt = Some(crate::interrupt::of_signals());
    let mut options = SessionOptions { threads, limits, interrupt, ..SessionOptions::default() };
    options.device = crate::device::device(device)?;
    if let Some(policy) = policy {
        let parsed: Result<Policy, _> = policy.parse();
        options.policy = Some(parsed.map_err(|error| PyValueError::new_err(error.to_string()))?);
    }
    Ok(options)
}

/// The elements of a value as a numpy array: float32, int32, uint32 or bool.
pub(crate) fn array<'py>(
    py: Python<'py>,
    row: &Row,
    dtype: DType,
    shape: Shape,
) -> PyResult<Bound<'py, PyAny>> {
    let dims = extents(shape);
    let words = || row.iter().map(|x| x.to_bits());
    Ok(match dtype {
        DType::U32 => PyArray1::from_iter(py, words()).reshape(dims)?.into_any(),
        DType::I32 => PyArray1::from_iter(py, words().map(|word| word as i32)).reshape(dims)?.into_any(),
        DType::Bool => PyArray1::from_iter(py, words().map(|word| word != 0)).reshape(dims)?.into_any(),
        DType::F32 | DType::F16 | DType::BF16 => PyArray1::from_slice(py, row).reshape(dims)?.into_any(),
    })
}

/// Reads what a function of an instance returned: a value, or a sequence of values.
pub(crate) fn values_of(
    returned: &Bound<'_, PyAny>,
    graph: &Arc<Shared>,
    keys: &mut Vec<ValueKey>,
) -> PyResult<bool> {
    let key = |value: &Bound<'_, PyAny>| {
        let value = value.cast::<PyValue>().map_err(|_| {
            PyTypeError::new_err(format!(
                "the function returned {value:?} for an instance; return a value of the graph, or a tuple of values"
            ))
        })?;
        // A value of another graph is an error here, where the instance is known.
        graph.read(|graph| value.get().get(graph).map(|_| ()))?;
        PyResult::Ok(value.get().key())
    };
    if returned.is_instance_of::<PyValue>() {
        keys.push(key(returned)?);
        return Ok(true);
    }
    for value in returned.try_iter().map_err(|_| {
        PyTypeError::new_err(format!(
            "the function returned {returned:?}; return a value, or a tuple of values"
        ))
    })? {
        keys.push(key(&value?)?);
    }
    Ok(false)
}

impl PySession {
    /// Locks the session for this thread.
    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, Session>> {
        self.session.try_lock().ok_or_else(|| {
            BusyError::new_err("another thread runs this session; give each thread a session of its own")
        })
    }

    pub(crate) fn of(module: Arc<Module>, session: Session) -> Self {
        Self { module, session: Mutex::new(session) }
    }

    /// Computes values of a graph.
    pub(crate) fn run_keys<'py>(
        &self,
        py: Python<'py>,
        graph: &Arc<Shared>,
        keys: &[ValueKey],
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        arrays(py, &mut *self.lock()?, graph, keys)
    }
}

/// Returns an empty graph of a session or trainer.
pub(crate) fn new_graph(module: &Arc<Module>, session: Option<&Bound<'_, PySession>>) -> Arc<Shared> {
    Shared::new(Graph::new(module), session.map(|session| session.clone().unbind()))
}

/// The values that a function emitted for each item.
pub(crate) struct Emitted {
    pub(crate) graph: Arc<Shared>,
    pub(crate) keys: Vec<ValueKey>,
    /// For each item, the number of values up to its end, and whether it is one value and not a tuple.
    ends: Vec<(usize, bool)>,
}

impl Emitted {
    /// Calls `emit` for every item, each as an instance of the graph.
    pub(crate) fn of(
        graph: Arc<Shared>,
        items: &Bound<'_, PyAny>,
        emit: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Self::of_part(graph, items, 0, emit)
    }

    /// Calls `emit` for some items of a minibatch, from item `first` on. The number of an item selects its noise.
    pub(crate) fn of_part(
        graph: Arc<Shared>,
        items: &Bound<'_, PyAny>,
        first: u64,
        emit: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let _current = Current::new(&graph);
        let (mut keys, mut ends) = (Vec::new(), Vec::new());
        for (number, item) in (first..).zip(items.try_iter()?) {
            graph.read(|graph| {
                graph.instance(number);
                Ok(())
            })?;
            let alone = values_of(&emit.call1((item?,))?, &graph, &mut keys)?;
            ends.push((keys.len(), alone));
        }
        Ok(Self { graph, keys, ends })
    }

    /// Executes the values and returns the arrays of each item.
    pub(crate) fn run<'py>(&self, py: Python<'py>, session: &mut Session) -> PyResult<Bound<'py, PyList>> {
        let mut arrays = arrays(py, session, &self.graph, &self.keys)?.into_iter();
        let (results, mut at) = (PyList::empty(py), 0);
        for &(end, alone) in &self.ends {
            let mut own = arrays.by_ref().take(end - at);
            match own.next() {
                Some(only) if alone => results.append(only)?,
                first => {
                    results.append(PyTuple::new(py, first.into_iter().chain(own).collect::<Vec<_>>())?)?
                }
            }
            at = end;
        }
        Ok(results)
    }
}

/// Executes values of a graph and returns their elements.
fn arrays<'py>(
    py: Python<'py>,
    session: &mut Session,
    graph: &Shared,
    keys: &[ValueKey],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    graph.read(|graph| {
        let values = keys.iter().filter_map(|&key| graph.value(key)).collect::<Vec<_>>();
        let run = released(py, || session.run(graph, &values)).map_err(raised)?;
        values.iter().map(|&value| array(py, &run[value], value.ty().dtype, value.shape())).collect()
    })
}

#[pymethods]
impl PySession {
    /// Closes a module and draws its weights from a seed.
    #[new]
    #[pyo3(signature = (module, *, device = "cpu", policy = None, threads = 0, seed = 0, memory_limit = None, work_limit = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        device: &str,
        policy: Option<&str>,
        threads: usize,
        seed: u64,
        memory_limit: Option<u64>,
        work_limit: Option<f64>,
    ) -> PyResult<Self> {
        let module = module.close()?;
        let options = options(device, policy, threads, memory_limit, work_limit)?;
        let weights = Weights::try_init(&module, seed).map_err(|error| raised(error.into()))?;
        let session =
            released(py, || Session::with_options(&module, Arc::new(weights), options)).map_err(raised)?;
        Ok(Self::of(module, session))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("Session"))
    }

    /// An empty graph, which `with` makes current.
    fn graph(slf: &Bound<'_, Self>) -> PyGraph {
        PyGraph { shared: new_graph(&slf.get().module, Some(slf)) }
    }

    /// Computes values of one graph together and returns their arrays.
    #[pyo3(signature = (*values))]
    fn run<'py>(&self, py: Python<'py>, values: Vec<Py<PyValue>>) -> PyResult<Bound<'py, PyList>> {
        let Some(first) = values.first() else { return Ok(PyList::empty(py)) };
        let graph = Arc::clone(first.get().owner());
        graph.read(|graph| values.iter().try_for_each(|value| value.get().get(graph).map(|_| ())))?;
        let keys: Vec<ValueKey> = values.iter().map(|value| value.get().key()).collect();
        PyList::new(py, self.run_keys(py, &graph, &keys)?)
    }

    /// Calls `emit` for every item, executes all values together, and returns their arrays in the order of the items:
    /// an array an item, or a tuple of arrays where `emit` returns a tuple.
    fn predict<'py>(
        slf: &Bound<'py, Self>,
        items: &Bound<'py, PyAny>,
        emit: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let graph = new_graph(&slf.get().module, Some(slf));
        let emitted = Emitted::of(graph, items, emit)?;
        emitted.run(slf.py(), &mut *slf.get().lock()?)
    }

    /// Calls `emit` for every item, and returns the plan that executes all values together. Nothing is executed.
    #[pyo3(signature = (items, emit, *, policy = None))]
    fn plan(
        slf: &Bound<'_, Self>,
        items: &Bound<'_, PyAny>,
        emit: &Bound<'_, PyAny>,
        policy: Option<&str>,
    ) -> PyResult<PyPlan> {
        let emitted = Emitted::of(new_graph(&slf.get().module, Some(slf)), items, emit)?;
        let values = emitted.keys.iter().map(|&key| Py::new(slf.py(), PyValue::new(&emitted.graph, key)));
        PyPlan::of(slf.py(), &emitted.graph, &values.collect::<PyResult<Vec<_>>>()?, policy)
    }

    /// Runs `task(item)` for every item as a task: an `async` function may await values and branch on them. Returns the
    /// results in the order of the items. Each round executes what all tasks await in as few batches as possible.
    fn tasks<'py>(
        slf: &Bound<'py, Self>,
        items: &Bound<'py, PyAny>,
        task: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let graph = new_graph(&slf.get().module, Some(slf));
        let _current = Current::new(&graph);
        let mut tasks = Task::all(items, task)?;
        let mut session = slf.get().lock()?;
        graph.read(|graph| rounds(py, graph, &mut session.growing(graph), &mut tasks))?;
        PyList::new(py, tasks.into_iter().filter_map(|task| task.result))
    }

    /// The values of all parameters by name, as a dict of arrays.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        weights_dict(py, self.lock()?.weights())
    }

    /// Replaces the values of some parameters, given by name as arrays.
    fn set_weights(&self, values: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut session = self.lock()?;
        let weights = replaced(&self.module, session.weights(), values)?;
        session.set_weights(Arc::new(weights)).map_err(raised)
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
        let mut session = self.lock()?;
        let (weights, report) = imported(session.weights(), state_dict, &names)?;
        session.set_weights(Arc::new(weights)).map_err(raised)?;
        Ok(report)
    }

    /// Takes over the values of some parameters, given by name as arrays, where they differ from the session's.
    fn follow_weights(&self, values: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut session = self.lock()?;
        let mut arrays: Vec<(String, PyReadonlyArrayDyn<'_, f32>)> = Vec::with_capacity(values.len());
        for (name, value) in values {
            arrays.push((name.extract()?, value.extract()?));
        }
        let rows: Vec<_> = arrays.iter().map(|(name, array)| (&**name, row_major(array))).collect();
        session.follow_weights(rows.iter().map(|(name, rows)| (*name, &**rows))).map_err(raised)
    }

    /// Reads all parameters from a safetensors file.
    fn load_weights(&self, path: std::path::PathBuf) -> PyResult<()> {
        let weights =
            autobatch::train::read_weights(path, &self.module).map_err(|error| raised(error.into()))?;
        self.lock()?.set_weights(Arc::new(weights)).map_err(raised)
    }

    /// Writes all parameters to a safetensors file.
    fn save_weights(&self, path: std::path::PathBuf) -> PyResult<()> {
        let weights = Arc::clone(self.lock()?.weights());
        autobatch::train::write_weights(path, &weights).map_err(|error| raised(error.into()))
    }

    /// The text of the plan of the last run; `None` before the first run.
    fn last_plan(&self) -> PyResult<Option<String>> {
        Ok(self.lock()?.last_plan().map(|plan| plan.to_text()))
    }

    /// The number of batches of the last plan and the lower bound of that number; `None` before the first run.
    pub(crate) fn batches(&self) -> PyResult<Option<(u32, u32)>> {
        let session = self.lock()?;
        let certificate = session.last_plan().map(|plan| plan.certificate);
        Ok(certificate.map(|certificate| (certificate.batches, certificate.bound)))
    }

    /// The hits and misses of the plan cache.
    fn cache_stats(&self) -> PyResult<(u64, u64)> {
        let stats = self.lock()?.cache_stats();
        Ok((stats.hits, stats.misses))
    }

    fn __repr__(&self) -> String {
        format!("<autobatch.Session of {}>", self.module.name)
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySession>()
}
