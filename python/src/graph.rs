//! `Graph`: a graph under construction, and the graph that functions such as `ab.input` emit into.

use crate::error::{BusyError, ClosedError, EmitError, raised};
use crate::session::PySession;
use crate::site::Place;
use crate::value::PyValue;
use autobatch::ir::graph::Value;
use autobatch::ir::{Graph, SiteId};
use parking_lot::ReentrantMutex;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// A graph that Python values refer to. The thread that executes it may also emit into it, between two rounds of
/// tasks; every other thread gets `BusyError`.
pub(crate) struct Shared {
    inner: ReentrantMutex<Inner>,
    /// The session that executes the graph; `None` for the body of a cell.
    session: Option<Py<PySession>>,
    /// Whether nodes name the line that runs in Python.
    lines: bool,
}

struct Inner {
    /// `None` once the graph is closed.
    graph: RefCell<Option<Graph>>,
    sites: RefCell<Sites>,
    /// The place of the last emission, which the graph has set. A place in a loop emits many times.
    last: Cell<Option<(usize, u32)>>,
}

/// The declared places, by the address of their code object and their instruction. The objects stay alive, so that no other
/// object gets the address.
type Sites = HashMap<(usize, u32), (SiteId, Py<PyAny>)>;

impl Shared {
    pub(crate) fn new(graph: Graph, session: Option<Py<PySession>>) -> Arc<Self> {
        let inner =
            Inner { graph: RefCell::new(Some(graph)), sites: RefCell::default(), last: Cell::new(None) };
        Arc::new(Self { inner: ReentrantMutex::new(inner), session, lines: true })
    }

    /// A graph whose nodes name no line. The traceback of an exception names it.
    pub(crate) fn without_lines(graph: Graph) -> Arc<Self> {
        let inner =
            Inner { graph: RefCell::new(Some(graph)), sites: RefCell::default(), last: Cell::new(None) };
        Arc::new(Self { inner: ReentrantMutex::new(inner), session: None, lines: false })
    }

    /// Returns the session that executes the graph.
    pub(crate) fn session(&self) -> Option<&Py<PySession>> {
        self.session.as_ref()
    }

    /// Passes the open graph to `f`.
    pub(crate) fn read<R>(&self, f: impl FnOnce(&Graph) -> PyResult<R>) -> PyResult<R> {
        self.with(|_, graph| f(graph))
    }

    fn with<R>(&self, f: impl FnOnce(&Inner, &Graph) -> PyResult<R>) -> PyResult<R> {
        let Some(inner) = self.inner.try_lock() else {
            return Err(BusyError::new_err(
                "another thread uses this graph; give each thread a graph of its own",
            ));
        };
        let graph = inner.graph.borrow();
        match graph.as_ref() {
            Some(graph) => f(&inner, graph),
            None => Err(ClosedError::new_err(
                "the value belongs to a graph that is closed: the body of its cell has ended; return values from \
                 the cell and call it",
            )),
        }
    }

    /// Passes the open graph to `f`, which emits. Nodes name the line that runs in Python, and a fault becomes an
    /// exception.
    pub(crate) fn emit<R>(&self, py: Python<'_>, f: impl FnOnce(&Graph) -> PyResult<R>) -> PyResult<R> {
        self.with(|inner, graph| {
            if self.lines {
                inner.name_line(py, graph);
            }
            let emitted = f(graph);
            match graph.take_fault() {
                Some(fault) => Err(raised(fault.into())),
                None => emitted,
            }
        })
    }

    /// Closes the graph and returns it.
    pub(crate) fn close(&self) -> Option<Graph> {
        self.inner.try_lock()?.graph.take()
    }
}

impl Inner {
    fn name_line(&self, py: Python<'_>, graph: &Graph) {
        let Some(place) = Place::current(py) else { return };
        let key = (place.code.as_ptr() as usize, place.instruction);
        let site = match self.last.get() {
            // The same place is set already.
            Some(last) if last == key => return,
            _ => {
                let mut sites = self.sites.borrow_mut();
                let declare = || (graph.declare_site(place.site()), place.code.clone().unbind());
                sites.entry(key).or_insert_with(declare).0
            }
        };
        self.last.set(Some(key));
        graph.set_site(Some(site));
    }
}

thread_local! {
    /// The graphs that are open on this thread; the last one is current.
    static OPEN: RefCell<Vec<Arc<Shared>>> = const { RefCell::new(Vec::new()) };
}

/// Makes a graph current while it exists.
pub(crate) struct Current;

impl Current {
    pub(crate) fn new(graph: &Arc<Shared>) -> Self {
        OPEN.with_borrow_mut(|open| open.push(Arc::clone(graph)));
        Self
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(Vec::pop);
    }
}

/// Returns the current graph.
pub(crate) fn current() -> PyResult<Arc<Shared>> {
    OPEN.with_borrow(|open| open.last().map(Arc::clone)).ok_or_else(|| {
        EmitError::new_err(
            "no graph is open on this thread; emit in a function that Session.predict or Trainer.step calls, in a \
             cell, or in `with session.graph():`",
        )
    })
}

/// A graph that a program builds step by step: `with session.graph() as g: ...`.
#[pyclass(frozen, name = "Graph", module = "autobatch")]
pub(crate) struct PyGraph {
    pub(crate) shared: Arc<Shared>,
}

#[pymethods]
impl PyGraph {
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        OPEN.with_borrow_mut(|open| open.push(Arc::clone(&slf.get().shared)));
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyAny>) {
        OPEN.with_borrow_mut(|open| {
            if let Some(place) = open.iter().rposition(|graph| Arc::ptr_eq(graph, &self.shared)) {
                open.remove(place);
            }
        });
    }

    /// Begins an instance. The key selects its dropout noise and appears in messages.
    fn instance(&self, py: Python<'_>, key: u64) -> PyResult<()> {
        self.shared.emit(py, |graph| {
            graph.instance(key);
            Ok(())
        })
    }

    /// Makes a value an output with a name.
    fn output(&self, py: Python<'_>, name: &str, value: &PyValue) -> PyResult<()> {
        self.shared.emit(py, |graph| {
            graph.output(name, value.get(graph)?);
            Ok(())
        })
    }

    /// The text form of the graph, which `autobatch` reads on the command line.
    fn text(&self) -> PyResult<String> {
        self.shared.read(|graph| Ok(graph.data().to_text()))
    }

    /// The binary form of the graph.
    fn to_bytes(&self) -> PyResult<Vec<u8>> {
        self.shared.read(|graph| Ok(graph.data().to_bytes()))
    }

    /// The number of nodes.
    fn __len__(&self) -> PyResult<usize> {
        self.shared.read(|graph| Ok(graph.data().arena.len()))
    }

    /// A graph is true, even without nodes.
    fn __bool__(&self) -> bool {
        true
    }

    /// The session that executes the graph.
    #[getter]
    fn session(&self, py: Python<'_>) -> Option<Py<PySession>> {
        self.shared.session().map(|session| session.clone_ref(py))
    }

    fn __repr__(&self) -> PyResult<String> {
        self.shared.read(|graph| {
            let data = graph.data();
            Ok(format!(
                "<autobatch.Graph {}: {} nodes, {} instances>",
                graph.number(),
                data.arena.len(),
                data.instances()
            ))
        })
    }
}

/// Wraps an emitted value.
pub(crate) fn wrap(graph: &Arc<Shared>, value: Value<'_>) -> PyResult<PyValue> {
    match value.key() {
        Some(key) => Ok(PyValue::new(graph, key)),
        // A fault of the graph follows, and replaces this error.
        None => Err(EmitError::new_err("the value is poison")),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyGraph>()
}
