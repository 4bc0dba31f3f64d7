//! Calls of modules, and of their methods, as single nodes.
//!
//! A method that is called again and again on tensors of the same shapes is traced once, as a cell of the engine. From then on
//! a call is one node, and its code does not run. [`Guards`] list everything that the code can read besides its arguments: while
//! they hold, a node computes what the code would. A call on tensors that are held by rows repeats the nodes of a template
//! instead. Methods that cannot be traced are recorded op by op. A call of a module is a call of its method `forward`.

mod pattern;
mod trace;

use super::engine::PyEngine;
use super::guards::Guards;
use super::report::MethodNote;
use super::tensor::Form;
use super::{Block, Fail, Made, State};
use autobatch::ir::graph::{Arg, Template, ValueKey};
use autobatch::ir::module::{CellOfAny, Module};
use parking_lot::Mutex;
use pattern::{Given, Pattern, Results};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The calls with one pattern after which a method is traced.
const CALLS_BEFORE_TRACE: u32 = 8;
/// The same for a pattern with rows. Lengths of sequences come seldom, and each costs the plan of all its nodes.
const CALLS_BEFORE_TEMPLATE: u32 = 3;
/// The number in the place of calls of a pattern that cannot be traced.
const NEVER: u32 = u32::MAX;
/// The calls with one pattern in a block after which it does not wait for the next block.
const CALLS_BEFORE_FLUSH: u32 = 512;
/// The patterns of one method, for example lengths of sentences. Others are recorded op by op.
const MAX_PATTERNS: usize = 64;
/// The times that a method may be traced again because something changed.
const MAX_RETRACES: u32 = 4;

/// The computation of a method for one pattern.
struct Cell {
    pattern: Pattern,
    computation: Computation,
    results: Arc<Results>,
}

#[derive(Clone)]
enum Computation {
    /// One node, by the name of its cell.
    Node(String, CellOfAny),
    /// Nodes that a call repeats.
    Template(Arc<Template>),
}

impl Computation {
    /// The same over a module with more cells; `None` if the module lacks its own.
    fn over(&self, module: &Arc<Module>) -> Option<Self> {
        Some(match self {
            Self::Node(name, _) => Self::Node(name.clone(), module.cell_of_any(name)?),
            Self::Template(template) if Arc::ptr_eq(template.module(), module) => self.clone(),
            Self::Template(template) => Self::Template(Arc::new(template.over(module)?)),
        })
    }
}

/// A method of a module, by its interned name.
pub(super) struct Method<'a, 'py> {
    pub(super) module: &'a Bound<'py, PyAny>,
    pub(super) name: &'a Bound<'py, PyString>,
    /// The run of calls between which no code of the program runs, or 0. In a run, ints stand for tensors with one element.
    pub(super) run: u64,
}

impl Method<'_, '_> {
    fn key(&self) -> (usize, usize) {
        (self.module.as_ptr() as usize, self.name.as_ptr() as usize)
    }
}

/// A method that was called.
struct Called {
    module: Py<PyWeakrefReference>,
    /// Keeps the name alive, so that no other string gets its address.
    name: Py<PyString>,
    /// The patterns of calls that have no cell, and how often each came.
    patterns: Vec<(Pattern, u32)>,
    /// Why it is recorded op by op from now on.
    refused: Option<String>,
    guards: Option<Py<PyWeakrefReference>>,
    cells: Vec<Cell>,
    retraces: u32,
}

/// The methods that were called, by the addresses of modules and names.
#[derive(Default)]
pub(super) struct Methods(Mutex<HashMap<(usize, usize), Called>>);

impl Methods {
    /// The same methods for an engine with another module of the IR. Cells that it lacks are traced again.
    pub(super) fn for_module(&self, py: Python<'_>, module: &Arc<Module>) -> Self {
        let own = self.0.lock();
        let alive = own.iter().filter(|(_, called)| called.module.bind(py).upgrade().is_some());
        let taken = alive.map(|(&key, called)| {
            let mut patterns = called.patterns.clone();
            let mut cells = Vec::new();
            for cell in &called.cells {
                match cell.computation.over(module) {
                    Some(computation) => cells.push(Cell {
                        pattern: cell.pattern.clone(),
                        computation,
                        results: Arc::clone(&cell.results),
                    }),
                    None => patterns.push((cell.pattern.clone(), CALLS_BEFORE_TRACE)),
                }
            }
            let again = Called {
                module: called.module.clone_ref(py),
                name: called.name.clone_ref(py),
                patterns,
                refused: called.refused.clone(),
                guards: called.guards.as_ref().map(|guards| guards.clone_ref(py)),
                cells,
                retraces: called.retraces,
            };
            (key, again)
        });
        Self(Mutex::new(taken.collect()))
    }
}

impl Methods {
    /// The methods that were called often enough to be traced, with the reason where one is recorded op by op.
    pub(super) fn notes(&self, py: Python<'_>) -> PyResult<Vec<MethodNote>> {
        let own = self.0.lock();
        let mut notes = Vec::new();
        for called in own.values().filter(|called| called.refused.is_some() || !called.cells.is_empty()) {
            if let Some(module) = called.module.bind(py).upgrade() {
                let class = module.get_type().name()?;
                let name = called.name.bind(py).to_str()?;
                let shown = if name == FORWARD { class.to_string() } else { format!("{class}.{name}") };
                notes.push((shown, called.cells.len(), called.refused.clone()));
            }
        }
        notes.sort();
        Ok(notes)
    }
}

/// The method that a call of a module runs.
pub(super) const FORWARD: &str = "forward";

/// The outcome of a call of a method.
enum Step {
    /// The values of its cell, and what it returns.
    Recorded(SmallVec<[ValueKey; 4]>, Arc<Results>),
    /// Its code must run.
    Run,
    /// Its code must run, and the call counts: later ones may be nodes.
    Count,
    /// It came often enough to be traced at once.
    Trace,
}

/// The outcome of a call of a method, for its caller.
pub(super) enum Answer<'py> {
    /// A node was recorded, and this is what the method returns.
    Node(Bound<'py, PyAny>),
    /// Its code must run. `may_be_node` says that later calls may be nodes: those of methods within count then for nothing.
    Code { may_be_node: bool },
}

impl Block {
    /// Records a call of a method as one node, or says that its code must run.
    pub(super) fn call_method<'py>(
        self: &Arc<Self>,
        method: &Method<'_, 'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Answer<'py>> {
        let py = args.py();
        self.adopt(method.module)?;
        let mut may_be_node = false;
        for _ in 0..2 {
            let mut state = self.lock()?;
            match self.step(&mut state, method, args, kwargs) {
                Ok(Step::Recorded(keys, results)) => {
                    state.ops += 1;
                    return self.results(py, &mut state, &results, &keys).map(Answer::Node);
                }
                Ok(Step::Trace) => {
                    drop(state);
                    self.flush(py)?;
                    self.trace_all(py)?;
                }
                Ok(step @ (Step::Run | Step::Count)) => {
                    may_be_node = matches!(step, Step::Count);
                    break;
                }
                Err(Fail::Raised(error)) => return Err(error),
                // The code says why when it runs on an argument that no cell takes.
                Err(_) => {
                    let _ = state.graph.take_fault();
                    break;
                }
            }
        }
        Ok(Answer::Code { may_be_node })
    }

    fn step(
        self: &Arc<Self>,
        state: &mut State,
        method: &Method<'_, '_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Made<Step> {
        let py = args.py();
        let enabled = self.torch.is_grad_enabled.bind(py).call0()?.is_truthy()?;
        if state.trace.is_open() || state.engine.params.is_empty() {
            return Ok(Step::Run);
        }
        let engine = Arc::clone(&state.engine);
        // A read of another block may have let another instance record in the midst of a call.
        let Some(mut methods) = engine.methods.0.try_lock() else { return Ok(Step::Run) };
        let called = match methods.entry(method.key()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Called::new(method)?),
        };
        if !called.module.bind(py).upgrade().is_some_and(|own| own.is(method.module)) {
            *called = Called::new(method)?;
        }
        if called.refused.is_some() {
            return Ok(Step::Run);
        }
        let mut recording = state.recording(py, self, enabled);
        let mut given = Given::new(method.run != 0);
        let mut pattern = Pattern { enabled, args: Vec::with_capacity(args.len()) };
        for arg in args.iter_borrowed() {
            let Some(argument) = recording.argument(&arg, &mut given)? else {
                return Ok(Step::Run);
            };
            pattern.args.push((None, argument));
        }
        for (name, arg) in kwargs.into_iter().flatten() {
            let Some(argument) = recording.argument(&arg, &mut given)? else {
                return Ok(Step::Run);
            };
            pattern.args.push((Some(name.extract()?), argument));
        }
        let Some(cell) = called.cells.iter().find(|cell| cell.pattern == pattern) else {
            return Ok(called.count(pattern, self.is_within_node()));
        };
        if !called.guards_hold(py, self.epoch(), method.run) {
            called.trace_again();
            return Ok(called.count(pattern, self.is_within_node()));
        }
        let Given { values, .. } = given;
        let graph = recording.graph;
        let made = match &cell.computation {
            Computation::Node(_, cell) => graph.call_any(*cell, values),
            Computation::Template(template) => {
                let values = values.into_iter().map(|arg| match arg {
                    Arg::Value(value) => value,
                    Arg::Index(index) => graph.index(index),
                });
                graph.repeat(template, &values.collect::<SmallVec<[_; 8]>>())
            }
        };
        let results = Arc::clone(&cell.results);
        drop(methods);
        if let Some(fault) = graph.take_fault() {
            return Err(Fail::refused(fault.message.clone()));
        }
        let keys = made.into_iter().map(|value| value.key().ok_or(Fail::Poison)).collect::<Made<_>>()?;
        Ok(Step::Recorded(keys, results))
    }

    /// The recorded results of a call.
    fn results<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        state: &mut State,
        results: &Results,
        keys: &[ValueKey],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut all = |items: &[Results]| {
            items.iter().map(|item| self.results(py, state, item, keys)).collect::<PyResult<Vec<_>>>()
        };
        Ok(match results {
            Results::Tensor(place, traits) => {
                let tensor = traits.tensor(Form::Whole(keys[*place]));
                Bound::new(py, state.lazy(self, tensor, None))?.into_any()
            }
            Results::Rows(first, count, traits) => {
                let rows = keys[*first..first + count].into();
                Bound::new(py, state.lazy(self, traits.tensor(Form::Rows(rows)), None))?.into_any()
            }
            Results::Tuple(items) => PyTuple::new(py, all(items)?)?.into_any(),
            Results::List(items) => PyList::new(py, all(items)?)?.into_any(),
            Results::Object(object) => object.bind(py).clone(),
        })
    }

    /// Goes on with an engine that knows a module, if the block has none yet, and traces the methods that came often.
    fn adopt(self: &Arc<Self>, module: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = module.py();
        let known = {
            let state = self.lock()?;
            if state.trace.is_open() || !state.engine.params.is_empty() {
                return Ok(());
            }
            Arc::clone(&state.engine)
        };
        let made = self.torch.engine_of.bind(py).call1((PyEngine::of(known), module))?;
        if made.is_none() {
            return Ok(());
        }
        let engine = Arc::clone(made.cast::<PyEngine>()?.get().engine());
        self.flush(py)?;
        self.begin(engine)?;
        self.trace_all(py)
    }
}

impl Called {
    fn new(method: &Method<'_, '_>) -> PyResult<Self> {
        Ok(Self {
            module: PyWeakrefReference::new(method.module)?.unbind(),
            name: method.name.clone().unbind(),
            patterns: Vec::new(),
            refused: None,
            guards: None,
            cells: Vec::new(),
            retraces: 0,
        })
    }

    /// Whether its code would read what it read when the cells were traced.
    fn guards_hold(&self, py: Python<'_>, epoch: u64, run: u64) -> bool {
        let guards = self.guards.as_ref().and_then(|guards| guards.bind(py).upgrade());
        guards.is_some_and(|guards| {
            guards.cast::<Guards>().is_ok_and(|guards| guards.get().hold(py, epoch, run))
        })
    }

    /// Counts a call that has no cell, unless it is within a call that may be a node later.
    fn count(&mut self, pattern: Pattern, is_within_node: bool) -> Step {
        if is_within_node {
            return Step::Run;
        }
        if let Some((_, calls)) = self.patterns.iter_mut().find(|(known, _)| *known == pattern) {
            if *calls == NEVER {
                return Step::Run;
            }
            *calls += 1;
            return if *calls == CALLS_BEFORE_FLUSH { Step::Trace } else { Step::Count };
        }
        match (self.patterns.len() + self.cells.len() >= MAX_PATTERNS, self.cells.is_empty()) {
            (false, _) => {
                self.patterns.push((pattern, 1));
                return Step::Count;
            }
            (true, false) => {}
            (true, true) => self.refuse("its arguments have other shapes or numbers at each call".to_owned()),
        }
        Step::Run
    }

    /// Records it op by op from now on.
    fn refuse(&mut self, why: String) {
        self.refused = Some(why);
        self.patterns.clear();
        self.cells.clear();
    }

    /// Forgets its cells, because something that its code reads has changed.
    fn trace_again(&mut self) {
        self.retraces += 1;
        self.cells.clear();
        if self.retraces > MAX_RETRACES {
            self.refuse("what its code reads changes from call to call".to_owned());
        }
    }
}
