//! Records calls of torch's functions as nodes of a graph, for `autobatch.torch.batch`.
//!
//! A [`Recorder`](recorder::Recorder) is a function mode of torch: while it is active, torch passes it every call of its Python
//! interface. A call whose arguments are recorded tensors or parameters becomes nodes of a graph and returns a [`Lazy`]; every
//! other call is torch's ([`eager`]). [`flush`] executes the graph and gives each living `Lazy` its elements, as a tensor of torch.
//!
//! [`tensor`] says how the graph holds tensors, [`types`] which elements a result has, [`ops`] has one function for each op, and
//! [`engine`] the parameters. [`cells`] records calls of methods that were traced, and [`guards`] say when a trace is out of date.

mod call;
mod cells;
mod dims;
mod eager;
mod engine;
mod flush;
mod guards;
mod methods;
mod operators;
mod ops;
mod picture;
mod recorder;
mod report;
mod slot;
mod stand_in;
mod tensor;
mod types;
mod unwatched;

use crate::error::{BusyError, RecordError};
use autobatch::ir::Graph;
use autobatch::ir::graph::ValueKey;
use call::Call;
use engine::{Engine, PyEngine};
use ops::Named;
use parking_lot::{Mutex, MutexGuard};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use report::Report;
pub(crate) use slot::Lazy;
use slot::{Family, Slot, SlotState};
use stand_in::StandIn;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use tensor::{Form, Tensor};
use types::Read;

/// Why a call was not recorded.
pub(crate) enum Fail {
    /// The op has no counterpart in this form.
    Refused(String),
    /// The graph refused it and knows why.
    Poison,
    /// The engine does not know this parameter, or not as a table.
    Unknown { param: Py<PyAny>, table: bool },
    /// No tensor that it reads waits to be computed, so torch computes it.
    Known,
    /// An exception of Python.
    Raised(PyErr),
}

impl Fail {
    fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }
}

impl From<PyErr> for Fail {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// The result of recording.
type Made<T> = Result<T, Fail>;

/// Objects of torch that recording compares with.
struct Torch {
    tensor: Py<PyAny>,
    /// `torch.tensor`.
    make: Py<PyAny>,
    /// The fields of the tensor for which torch takes a recorded one.
    stand_in: StandIn,
    /// Whether they are those of this torch's tensors.
    stands_in: bool,
    parameter: Py<PyAny>,
    float32: Py<PyAny>,
    int64: Py<PyAny>,
    bool: Py<PyAny>,
    size: Py<PyAny>,
    is_grad_enabled: Py<PyAny>,
    /// `torch._C.DisableTorchFunction`: see `unwatched`.
    disable: Py<PyAny>,
    /// The ops by torch's functions.
    ops: Py<PyDict>,
    /// `autobatch.torch.batch`'s functions: see `flush`, `engine` and `Block::error`.
    execute: Py<PyAny>,
    engine_with: Py<PyAny>,
    place: Py<PyAny>,
    /// The same of methods: see `cells`.
    engine_of: Py<PyAny>,
    replace_engine: Py<PyAny>,
    trace_call: Py<PyAny>,
}

/// A block of `batch()`: what was recorded since the last flush.
pub(crate) struct Block {
    torch: Torch,
    /// Whether torch executes what the engine has no counterpart of.
    eager: bool,
    /// Whether the account has pictures.
    draws: bool,
    /// The end of the error of a call that cannot be recorded.
    remedy: String,
    /// Whether its `with` is open.
    open: AtomicBool,
    /// The thread that opened it.
    thread: ThreadId,
    /// A function that lets other instances record before a read computes, if `each` runs instances. With the call of a
    /// function, it may also return what that returns.
    wait: Mutex<Option<Py<PyAny>>>,
    /// The calls of methods that run and may be nodes later.
    within: AtomicUsize,
    /// A number that changes whenever parameters may have begun or ceased to have gradients.
    epoch: AtomicU64,
    report: Mutex<Report>,
    state: Mutex<State>,
}

struct State {
    engine: Arc<Engine>,
    graph: Graph,
    /// The tensors that were recorded.
    slots: Vec<Weak<Slot>>,
    existing: Existing,
    trace: Trace,
    /// The ops that were recorded since the block began, and the flushes.
    ops: u64,
    flushes: u64,
    /// The ops that were recorded before the last flush.
    flushed: u64,
}

/// The use of a graph that records a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trace {
    /// The call is of the block.
    None,
    /// The graph becomes the body of a cell.
    Cell,
    /// The graph becomes a template.
    Template,
}

impl Trace {
    /// Whether the code of a method is traced.
    fn is_open(self) -> bool {
        self != Self::None
    }
}

/// Rows, which stay alive so that no others get their address, and their whole value.
type Stacked = (Arc<[ValueKey]>, ValueKey);

/// Tensors that existed before a graph, and other forms of its tensors.
#[derive(Default)]
struct Existing {
    /// Their values and elements, by address.
    known: HashMap<usize, (Vec<f32>, Form)>,
    /// Keeps them alive, so that no other tensor gets their address.
    kept: Vec<Py<PyAny>>,
    /// The existing tensors with gradients.
    inputs: Vec<(ValueKey, Py<PyAny>)>,
    /// The values of parameters, by number, and of their transposes.
    params: RefCell<HashMap<(usize, bool), ValueKey>>,
    /// The whole values of tensors held by rows, by the address of the rows.
    stacks: RefCell<HashMap<usize, Stacked>>,
    /// The rows of tensors held as one value, by their places.
    picked: RefCell<HashMap<(ValueKey, u32), ValueKey>>,
}

impl State {
    fn new(engine: Arc<Engine>) -> Self {
        let graph = Graph::new(engine.module());
        let existing = Existing::default();
        Self {
            engine,
            graph,
            slots: Vec::new(),
            existing,
            trace: Trace::None,
            ops: 0,
            flushes: 0,
            flushed: 0,
        }
    }

    /// A call that is recorded next.
    fn recording<'a>(
        &'a mut self,
        py: Python<'a>,
        block: &'a Arc<Block>,
        enabled: bool,
    ) -> Recording<'a, 'a> {
        Recording {
            py,
            torch: &block.torch,
            block,
            engine: &self.engine,
            graph: &self.graph,
            existing: &mut self.existing,
            enabled,
            grad: false,
            read: Read::default(),
            trace: self.trace,
        }
    }

    /// A recorded tensor.
    fn lazy(&mut self, block: &Arc<Block>, tensor: Tensor, family: Option<&Arc<Family>>) -> Lazy {
        let slot = Arc::new(Slot {
            block: Arc::clone(block),
            state: Mutex::new(SlotState::Pending(tensor)),
            family: Mutex::new(family.cloned()),
        });
        if let Some(family) = family {
            family.lock().push(Arc::downgrade(&slot));
        }
        self.slots.push(Arc::downgrade(&slot));
        Lazy { stand_in: block.torch.stand_in, slot }
    }
}

/// A call that is being recorded.
struct Recording<'a, 'g> {
    py: Python<'a>,
    torch: &'a Torch,
    block: &'a Arc<Block>,
    engine: &'a Engine,
    graph: &'g Graph,
    existing: &'a mut Existing,
    /// Whether gradients are recorded.
    enabled: bool,
    /// Whether an operand so far has gradients.
    grad: bool,
    read: Read,
    trace: Trace,
}

/// The results of an op.
enum Outcome {
    /// The first argument itself, as torch returns it where there is nothing to do.
    Same,
    One(Tensor),
    Tuple(Vec<Tensor>),
    /// A named tuple of `torch.return_types`.
    Named(&'static str, Vec<Tensor>),
    /// A tensor, and one that may be None.
    Pair(Tensor, Option<Tensor>),
}

impl Block {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state.try_lock().ok_or_else(|| {
            BusyError::new_err("another thread records in this block; open a batch() in each thread")
        })
    }

    /// See the field.
    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Begins another epoch.
    fn next_epoch(&self) {
        self.epoch.store(next_number(), Ordering::Relaxed);
    }

    /// Whether the code of a method runs whose later calls may be nodes.
    fn is_within_node(&self) -> bool {
        self.within.load(Ordering::Relaxed) > 0
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Records a call of an op, or lets torch execute it.
    fn call<'py>(
        self: &Arc<Self>,
        op: Named,
        function: Option<&Bound<'py, PyAny>>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let function = || match function {
            Some(function) => Ok(function.clone()),
            None => self.function_of(op, args),
        };
        let why = loop {
            match self.record(op, args, kwargs) {
                Ok(made) => return Ok(made),
                Err(Fail::Raised(error)) => return Err(error),
                Err(Fail::Unknown { param, table }) => self.learn(py, param, table)?,
                Err(Fail::Known) => return self.call_known(op, &function()?, args, kwargs),
                Err(Fail::Refused(why)) => break why,
                Err(Fail::Poison) => break "the graph refuses it".to_owned(),
            }
        };
        if !self.waits_for(args, kwargs)? {
            return self.call_known(op, &function()?, args, kwargs);
        }
        if !self.eager {
            return Err(self.error(py, op.op.name(), &why));
        }
        self.note_eager(py, &op.name(), &why);
        self.execute_among_others(&function()?, args, kwargs)
    }

    fn record<'py>(
        self: &Arc<Self>,
        op: Named,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Made<Bound<'py, PyAny>> {
        let py = args.py();
        let enabled = self.torch.is_grad_enabled.bind(py).call0()?.is_truthy()?;
        let mut state = self.lock()?;
        let mut recording = state.recording(py, self, enabled);
        let call = Call { args, kwargs, names: op.op.arguments };
        let made = call.check().and_then(|()| (op.op.emit)(&mut recording, &call));
        let made = made.and_then(|made| recording.typed(op.op, &call, made));
        let in_place = op.in_place || call.is_in_place()?;
        let fault = state.graph.take_fault();
        let made = match (made, fault) {
            (Err(Fail::Poison), Some(fault)) | (Ok(_), Some(fault)) => {
                return Err(Fail::Refused(fault.message.clone()));
            }
            (made, _) => made?,
        };
        state.ops += 1;
        let first = args.get_item(0).ok().and_then(|first| first.cast_into_exact::<Lazy>().ok());
        if in_place {
            let (Some(changed), Outcome::One(tensor)) = (first, made) else {
                return Err(Fail::refused("it changes in place a tensor that the block did not record"));
            };
            if changed.get().pending().is_some_and(|before| before.kind != tensor.kind) {
                return Err(Fail::refused("it changes the type of the elements in place"));
            }
            changed.get().slot.change(tensor)?;
            return Ok(changed.into_any());
        }
        let family = match first {
            Some(first) if op.op.is_view => Some(first.get().slot.family()),
            _ => None,
        };
        let mut new = |tensor: Tensor| Bound::new(py, state.lazy(self, tensor, family.as_ref()));
        Ok(match made {
            Outcome::Same => call.need(0)?,
            Outcome::One(tensor) => new(tensor)?.into_any(),
            Outcome::Tuple(tensors) => {
                let made = tensors.into_iter().map(new).collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(py, made)?.into_any()
            }
            Outcome::Named(name, tensors) => {
                let made = tensors.into_iter().map(new).collect::<PyResult<Vec<_>>>()?;
                py.import("torch")?
                    .getattr("return_types")?
                    .getattr(name)?
                    .call1((PyTuple::new(py, made)?,))?
            }
            Outcome::Pair(tensor, other) => {
                (new(tensor)?, other.map(new).transpose()?).into_bound_py_any(py)?
            }
        })
    }

    /// Goes on with an engine that knows a parameter.
    fn learn(self: &Arc<Self>, py: Python<'_>, param: Py<PyAny>, table: bool) -> PyResult<()> {
        let known = {
            let state = self.lock()?;
            if state.trace.is_open() {
                return Err(RecordError::new_err("its code reads a parameter of another module"));
            }
            Arc::clone(&state.engine)
        };
        let made = self.torch.engine_with.bind(py).call1((PyEngine::of(known), param, table))?;
        let engine = Arc::clone(made.cast::<PyEngine>()?.get().engine());
        self.flush(py)?;
        self.begin(engine)
    }

    /// The user's line that runs.
    fn place(&self, py: Python<'_>) -> String {
        let place = self.torch.place.bind(py).call0().and_then(|place| place.extract::<String>());
        place.unwrap_or_else(|_| "an unknown line".to_owned())
    }

    /// The error of a call that cannot be recorded.
    fn error(&self, py: Python<'_>, name: &str, why: &str) -> PyErr {
        let place = self.place(py);
        RecordError::new_err(format!(
            "{name} at {place} cannot be recorded: {why}; rewrite it, or {}",
            self.remedy
        ))
    }
}

/// A number that no block has used.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Lazy>()?;
    m.add_class::<recorder::Recorder>()?;
    m.add_class::<PyEngine>()?;
    m.add_class::<guards::Guards>()?;
    m.add_function(wrap_pyfunction!(eager::computed, m)?)?;
    m.add_function(wrap_pyfunction!(eager::waits, m)?)?;
    m.add_function(wrap_pyfunction!(recorder::op_codes, m)?)
}
