//! The function mode of a block: what torch calls, and which calls are recorded.

use super::cells::{Answer, FORWARD, Method};
use super::engine::PyEngine;
use super::report::MethodNote;
use super::slot::Index;
use super::stand_in::StandIn;
use super::{Block, Lazy, State, Torch, ops};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyEllipsis, PyInt, PyList, PyNotImplemented, PyString, PyTuple};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The kinds of tensors among the arguments of a call.
#[derive(Clone, Copy, Default)]
struct Contents {
    lazy: bool,
    param: bool,
}

impl Contents {
    /// Looks into arguments, and into lists and tuples among them.
    fn look(&mut self, torch: &Torch, any: &Bound<'_, PyAny>, depth: usize) {
        if any.is_exact_instance_of::<Lazy>() {
            self.lazy = true;
        } else if any.get_type().is(torch.parameter.bind(any.py())) {
            self.param = true;
        } else if depth > 0 {
            if let Ok(tuple) = any.cast::<PyTuple>() {
                tuple.iter_borrowed().for_each(|item| self.look(torch, &item, depth - 1));
            } else if let Ok(list) = any.cast::<PyList>() {
                list.iter().for_each(|item| self.look(torch, &item, depth - 1));
            }
        }
    }
}

/// The function mode of a block.
#[pyclass(frozen, name = "Recorder", module = "autobatch.torch")]
pub(crate) struct Recorder {
    block: Arc<Block>,
}

#[pymethods]
impl Recorder {
    /// `environment` has the objects of torch and the functions of Python that recording needs, by name. `remedy` ends the
    /// error of a call that cannot be recorded.
    #[new]
    fn new(
        environment: &Bound<'_, PyDict>,
        engine: &PyEngine,
        eager: bool,
        draws: bool,
        remedy: String,
    ) -> PyResult<Self> {
        let object = |name: &str| {
            environment
                .get_item(name)?
                .map(Bound::unbind)
                .ok_or_else(|| PyRuntimeError::new_err(name.to_owned()))
        };
        let py = environment.py();
        let stand_in = StandIn::of(object("stand_in")?.bind(py), object("base")?.bind(py))?;
        let torch = Torch {
            tensor: object("tensor")?,
            make: object("make")?,
            stands_in: stand_in.is_some(),
            stand_in: stand_in.unwrap_or_default(),
            parameter: object("parameter")?,
            float32: object("float32")?,
            int64: object("int64")?,
            bool: object("bool")?,
            size: object("size")?,
            is_grad_enabled: object("is_grad_enabled")?,
            disable: object("disable")?,
            ops: object("ops")?.into_bound(environment.py()).cast_into::<PyDict>()?.unbind(),
            execute: object("execute")?,
            engine_with: object("engine_with")?,
            place: object("place")?,
            engine_of: object("engine_of")?,
            replace_engine: object("replace_engine")?,
            trace_call: object("trace_call")?,
        };
        let state = Mutex::new(State::new(Arc::clone(engine.engine())));
        let block = Arc::new(Block {
            torch,
            eager,
            draws,
            remedy,
            open: AtomicBool::new(true),
            thread: std::thread::current().id(),
            wait: Mutex::new(None),
            within: AtomicUsize::new(0),
            epoch: AtomicU64::new(0),
            report: Mutex::default(),
            state,
        });
        block.next_epoch();
        Ok(Self { block })
    }

    /// Receives the calls of torch's functions.
    #[pyo3(signature = (function, _types, args, kwargs = None))]
    fn __torch_function__<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        _types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, block) = (args.py(), &self.block);
        if function.is(block.torch.make.bind(py))
            && let Some(index) = block.index(args, kwargs)?
        {
            return Ok(Bound::new(py, index)?.into_any());
        }
        let mut contents = Contents::default();
        args.iter_borrowed().for_each(|arg| contents.look(&block.torch, &arg, 2));
        for (_, value) in kwargs.into_iter().flatten() {
            contents.look(&block.torch, &value, 2);
        }
        if contents.lazy || contents.param {
            let code = block.torch.ops.bind(py).get_item(function)?;
            let op = code.map(|code| code.extract()).transpose()?.and_then(ops::by_code);
            match op {
                Some(op) if contents.lazy || op.op.of_params && !op.in_place => {
                    return block.call(op, Some(function), args, kwargs);
                }
                None if contents.lazy => return block.unknown(function, args, kwargs),
                _ => {}
            }
        }
        block.before_change(function, args, kwargs)?;
        function.call(args, kwargs)
    }

    /// Records a call of a module as one node. `NotImplemented` if its code must run, or `Ellipsis` if it must run between
    /// `enter` and `leave`, because later calls may be nodes.
    fn call_module<'py>(
        &self,
        module: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let method = Method { module, name: intern!(module.py(), FORWARD), run: 0 };
        Ok(self.block.call_method(&method, args, kwargs)?.for_python(module.py()))
    }

    /// Begins and ends the code of a method whose later calls may be nodes.
    fn enter(&self) {
        self.block.within.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&self) {
        self.block.within.fetch_sub(1, Ordering::Relaxed);
    }

    /// The same of a method of a module, by its interned name, in a run of calls between which no code of the program runs. Ints
    /// among the arguments stand for tensors with one element.
    fn call_method<'py>(
        &self,
        module: &Bound<'py, PyAny>,
        name: &Bound<'py, PyString>,
        args: &Bound<'py, PyTuple>,
        run: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.block.call_method(&Method { module, name, run }, args, None)?.for_python(module.py()))
    }

    /// Calls a function that no op stands for and that torch does not pass to the block.
    fn call_unknown<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.block.unknown(function, args, kwargs)
    }

    /// The number of a run of calls.
    #[staticmethod]
    fn next_run() -> u64 {
        super::next_number()
    }

    /// Ends the block. With an exception, what is not computed is lost.
    fn close(&self, py: Python<'_>, failed: bool) -> PyResult<()> {
        self.block.open.store(false, Ordering::Relaxed);
        if failed {
            return self.block.lose();
        }
        self.block.flush(py)
    }

    /// Computes what was recorded so far.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.block.flush(py)
    }

    /// Sets the function that a read calls before it computes. Returns the one before.
    #[pyo3(signature = (wait))]
    fn set_wait(&self, wait: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        std::mem::replace(&mut self.block.wait.lock(), wait)
    }

    /// The flushes, each with its nodes, batches and their bound; the methods; and the calls that torch computed.
    #[expect(clippy::type_complexity, reason = "the parts that Python writes down")]
    fn account(
        &self,
        py: Python<'_>,
    ) -> PyResult<(Vec<(u64, u32, u32)>, Vec<MethodNote>, Vec<(String, String, String, u64)>)> {
        self.block.account(py)
    }

    /// The pictures of the first flushes, as SVG; `None` where a graph is too large.
    fn pictures(&self) -> Vec<Option<String>> {
        self.block.pictures()
    }

    /// The numbers of recorded ops and of flushes.
    fn counts(&self) -> PyResult<(u64, u64)> {
        let state = self.block.lock()?;
        Ok((state.ops, state.flushes))
    }
}

impl<'py> Answer<'py> {
    fn for_python(self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::Node(made) => made,
            Self::Code { may_be_node: false } => PyNotImplemented::get(py).to_owned().into_any(),
            Self::Code { may_be_node: true } => PyEllipsis::get(py).to_owned().into_any(),
        }
    }
}

impl Block {
    /// The tensor of `torch.tensor([3])` or `torch.tensor(3)`, unless a method is traced.
    fn index(
        self: &Arc<Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<Lazy>> {
        let one = match args.len() {
            1 if kwargs.is_none_or(|kwargs| kwargs.is_empty()) => args.get_item(0)?,
            _ => return Ok(None),
        };
        let (number, has_extent) = match one.cast_exact::<PyList>() {
            Ok(list) if list.len() == 1 => (list.get_item(0)?, true),
            Ok(_) => return Ok(None),
            Err(_) => (one, false),
        };
        if !number.is_exact_instance_of::<PyInt>() || self.lock()?.trace.is_open() {
            return Ok(None);
        }
        Ok(number.extract().ok().map(|int| Lazy::of_index(self, Index { int, has_extent })))
    }

    /// A function of torch that no op stands for, called with a recorded tensor.
    fn unknown<'py>(
        self: &Arc<Self>,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = function.getattr(intern!(args.py(), "__name__")).and_then(|name| name.extract::<String>());
        let name = name.unwrap_or_else(|_| "a function".to_owned());
        let (is_read, why) = (ops::READS.contains(&&*name), "the engine has no counterpart of this op");
        // Instances of `each` wait for each other, so that one call serves them all.
        let alone = !self.eager || self.wait.lock().is_none();
        if is_read || alone && !self.waits_for(args, kwargs)? {
            return super::eager::call(function, args, kwargs);
        }
        if !self.eager {
            return Err(self.error(args.py(), &name, why));
        }
        self.note_eager(args.py(), &name, why);
        self.execute_among_others(function, args, kwargs)
    }

    /// Computes what was recorded before a function changes a parameter, or a tensor that gets a gradient: the gradient must
    /// not pass through the change. The elements of other tensors were copied when they were read.
    fn before_change(
        self: &Arc<Self>,
        function: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let py = function.py();
        let name = function.getattr(intern!(py, "__name__"))?;
        let name = name.cast::<PyString>()?.to_str()?;
        // `inplace=True` may stand at any place.
        let is_true = |any: &Bound<'_, PyAny>| any.is(PyBool::new(py, true));
        let flag = kwargs.map(|kwargs| kwargs.get_item(intern!(py, "inplace"))).transpose()?.flatten();
        let changes = name.ends_with('_') && !name.ends_with("__")
            || matches!(name, "__setitem__" | "__set__")
            || name.starts_with("__i") && args.len() == 2
            || flag.is_some_and(|flag| flag.is_truthy().unwrap_or(true))
            || args.iter_borrowed().skip(1).any(|arg| is_true(&arg));
        if changes && matches!(name, "requires_grad_" | "__set__") {
            self.next_epoch();
        }
        if changes && name != "requires_grad_" {
            let engine = Arc::clone(&self.lock()?.engine);
            let mut storages = HashSet::new();
            for param in engine.living(py) {
                storages.insert(storage(&param)?);
            }
            let inputs: Vec<_> =
                self.lock()?.existing.inputs.iter().map(|(_, input)| input.clone_ref(py)).collect();
            for input in inputs {
                storages.insert(storage(input.bind(py))?);
            }
            if self.shares(args.as_any(), &storages, 2)? {
                self.flush(py)?;
            }
        }
        Ok(())
    }

    /// Whether a tensor among arguments lies in one of the storages.
    fn shares(&self, any: &Bound<'_, PyAny>, storages: &HashSet<usize>, depth: usize) -> PyResult<bool> {
        let py = any.py();
        if any.is_instance(self.torch.tensor.bind(py))? {
            return Ok(storages.contains(&storage(any)?));
        }
        if depth > 0 && (any.is_instance_of::<PyTuple>() || any.is_instance_of::<PyList>()) {
            for item in any.try_iter()? {
                if self.shares(&item?, storages, depth - 1)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The address of the memory of a tensor.
fn storage(tensor: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = tensor.py();
    tensor.call_method0(intern!(py, "untyped_storage"))?.call_method0(intern!(py, "data_ptr"))?.extract()
}

/// The name and code of every op, by which Python finds torch's functions.
#[pyfunction]
pub(super) fn op_codes() -> Vec<(String, usize)> {
    ops::codes().collect()
}
