//! `Module`: the parameters, tables and cells of a model.

use crate::error::{BusyError, ClosedError, EmitError, raised};
use crate::graph::{Current, Shared, current, wrap};
use crate::site::Place;
use crate::types::{PyType, dtype, shape};
use crate::value::{Index, PyValue, floats};
use autobatch::ir::graph::{Arg, ValueKey};
use autobatch::ir::module::{CellOfAny, Init, Module, ModuleBuilder, Param, ParamKind, Table};
use autobatch::ir::types::DType;
use parking_lot::Mutex;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

/// The parameters, tables and cells of a model. The first session or trainer closes it: from then on it declares nothing.
#[pyclass(frozen, name = "Module", module = "autobatch")]
pub(crate) struct PyModule_ {
    state: Mutex<State>,
}

enum State {
    Open(ModuleBuilder),
    /// The body of this cell runs.
    Tracing(String),
    Closed(Arc<Module>),
}

impl PyModule_ {
    /// Closes the module and returns it.
    pub(crate) fn close(&self) -> PyResult<Arc<Module>> {
        let mut state = self.state.lock();
        if let State::Tracing(cell) = &*state {
            return Err(ClosedError::new_err(format!(
                "cell {cell:?} is being traced; make the session after its body"
            )));
        }
        let module = match std::mem::replace(&mut *state, State::Tracing(String::new())) {
            State::Open(builder) => builder.build().map_err(|error| raised(error.into()))?,
            State::Closed(module) => module,
            State::Tracing(_) => unreachable!("checked above"),
        };
        *state = State::Closed(Arc::clone(&module));
        Ok(module)
    }

    /// Passes the open builder to `f`, which declares. Declarations name the line that runs in Python.
    pub(crate) fn declare<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut ModuleBuilder) -> PyResult<R>,
    ) -> PyResult<R> {
        let mut state = self.state.lock();
        let builder = state.open()?;
        builder.set_site(Place::current(py).map(|place| place.site()));
        let declared = f(builder);
        match builder.take_fault() {
            Some(fault) => Err(raised(fault.into())),
            None => declared,
        }
    }

    fn trace(
        &self,
        py: Python<'_>,
        name: &str,
        ports: &[Py<PyType>],
        body: &Bound<'_, PyAny>,
    ) -> PyResult<PyCell> {
        let ports: Vec<_> = ports.iter().map(|port| port.get().ty).collect();
        let (mut builder, graph, keys) = {
            let mut state = self.state.lock();
            let builder = state.open()?;
            builder.set_site(Place::current(py).map(|place| place.site()));
            let begun = builder.begin_cell(name, &ports);
            if let Some(fault) = builder.take_fault() {
                return Err(EmitError::new_err(fault.to_string()));
            }
            let (graph, keys) = begun.ok_or_else(|| EmitError::new_err("the cell could not be begun"))?;
            match std::mem::replace(&mut *state, State::Tracing(name.to_owned())) {
                State::Open(builder) => (builder, graph, keys),
                _ => return Err(BusyError::new_err("another thread declares in this module")),
            }
        };
        let shared = Shared::new(graph, None);
        let results = {
            let _current = Current::new(&shared);
            let args = PyTuple::new(py, keys.iter().map(|&key| PyValue::new(&shared, key)))?;
            body.call1(args).and_then(|results| results_of(&results))
        };
        let traced = match (shared.close(), results) {
            (Some(graph), Ok((keys, alone))) => {
                let keys: Vec<Option<ValueKey>> = keys.into_iter().map(Some).collect();
                let cell = builder.end_cell(name, graph, &keys);
                match builder.take_fault() {
                    Some(fault) => Err(EmitError::new_err(fault.to_string())),
                    None => Ok(PyCell { cell, name: name.to_owned(), alone }),
                }
            }
            (_, Err(error)) => Err(error),
            (None, _) => Err(BusyError::new_err("another thread uses the body of the cell")),
        };
        *self.state.lock() = State::Open(builder);
        traced
    }
}

impl State {
    fn open(&mut self) -> PyResult<&mut ModuleBuilder> {
        match self {
            Self::Open(builder) => Ok(builder),
            Self::Tracing(cell) => Err(ClosedError::new_err(format!(
                "cell {cell:?} is being traced; declare its parameters before it"
            ))),
            Self::Closed(_) => Err(ClosedError::new_err(
                "a session or trainer uses the module; declare all parameters and cells before making it",
            )),
        }
    }
}

/// Reads what the body of a cell returned: a value, or a tuple or list of values.
fn results_of(results: &Bound<'_, PyAny>) -> PyResult<(Vec<ValueKey>, bool)> {
    if let Ok(value) = results.cast::<PyValue>() {
        return Ok((vec![value.get().key()], true));
    }
    let wrong =
        || PyTypeError::new_err(format!("a cell returns a value or a tuple of values, found {results:?}"));
    let keys = results.try_iter().map_err(|_| wrong())?.map(|value| {
        let value = value?;
        Ok(value.cast::<PyValue>().map_err(|_| wrong())?.get().key())
    });
    Ok((keys.collect::<PyResult<_>>()?, false))
}

/// Reads an initialiser: a number for a constant, an array for values, or what `ab.init` makes.
pub(crate) fn init(any: Option<&Bound<'_, PyAny>>) -> PyResult<Init> {
    let Some(any) = any else { return Ok(Init::Glorot(1.0)) };
    if let Ok(init) = any.cast::<PyInit>() {
        return Ok(init.get().init.clone());
    }
    if let Ok(number) = any.extract::<f32>() {
        return Ok(Init::Constant(number));
    }
    Ok(Init::Values(floats(any)?.1.into()))
}

#[pymethods]
impl PyModule_ {
    #[new]
    #[pyo3(signature = (name = "model"))]
    fn new(name: &str) -> Self {
        Self { state: Mutex::new(State::Open(ModuleBuilder::new(name))) }
    }

    /// Declares a parameter. Without an initialiser, a matrix gets Glorot's and a vector gets zeros.
    #[pyo3(signature = (name, shape, init = None, dtype = "f32"))]
    fn param(
        slf: &Bound<'_, Self>,
        name: &str,
        shape: &Bound<'_, PyAny>,
        init: Option<&Bound<'_, PyAny>>,
        dtype: &str,
    ) -> PyResult<PyParam> {
        let shape_ = self::shape(shape)?;
        let start = match init {
            None if shape_.rank() < 2 => Init::ZEROS,
            init => self::init(init)?,
        };
        let param = slf.get().stored(slf.py(), name, ParamKind::Param, shape_, start, dtype)?;
        Ok(PyParam { param, name: name.to_owned() })
    }

    /// Declares a table of `rows` rows of a width, to look up by index.
    #[pyo3(signature = (name, rows, width, init = None, dtype = "f32"))]
    fn table(
        slf: &Bound<'_, Self>,
        name: &str,
        rows: u32,
        width: u32,
        init: Option<&Bound<'_, PyAny>>,
        dtype: &str,
    ) -> PyResult<PyTable> {
        let start = match init {
            None => Init::Uniform(0.1),
            init => self::init(init)?,
        };
        let shape = autobatch::ir::Shape::new(&[rows, width])
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let param = slf.get().stored(slf.py(), name, ParamKind::Table, shape, start, dtype)?;
        let table = Table::of_param(param);
        Ok(PyTable { table, name: name.to_owned(), rows })
    }

    /// Traces a function once, as a cell: `@m.cell(ab.f32[8], ab.f32[8])`. The types are those of its arguments.
    #[pyo3(signature = (*ports, name = None))]
    fn cell(slf: Py<Self>, ports: Vec<Py<PyType>>, name: Option<String>) -> CellDecorator {
        CellDecorator { module: slf, ports, name }
    }

    /// The names and shapes of all parameters.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let module = self.close()?;
        let all = PyDict::new(py);
        for decl in &module.params {
            all.set_item(&decl.name, PyTuple::new(py, decl.ty.shape.dims())?)?;
        }
        Ok(all)
    }

    fn __repr__(&self) -> String {
        match &*self.state.lock() {
            State::Open(_) => "<autobatch.Module, open>".to_owned(),
            State::Tracing(cell) => format!("<autobatch.Module, tracing {cell}>"),
            State::Closed(module) => {
                format!(
                    "<autobatch.Module {}: {} parameters, {} cells>",
                    module.name,
                    module.params.len(),
                    module.cells.len()
                )
            }
        }
    }
}

impl PyModule_ {
    fn stored(
        &self,
        py: Python<'_>,
        name: &str,
        kind: ParamKind,
        shape: autobatch::ir::Shape,
        init: Init,
        stored_as: &str,
    ) -> PyResult<Param> {
        let stored_as: DType = dtype(stored_as)?;
        self.declare(py, |m| Ok(m.param_stored_as(name, kind, stored_as, shape, init)))
    }
}

/// An initialiser of a parameter, from the module `ab.init`.
#[pyclass(frozen, name = "Init", module = "autobatch")]
pub(crate) struct PyInit {
    init: Init,
}

#[pymethods]
impl PyInit {
    /// Every element is this number.
    #[staticmethod]
    fn constant(number: f32) -> Self {
        Self { init: Init::Constant(number) }
    }

    /// Uniform in `-a..a`.
    #[staticmethod]
    fn uniform(a: f32) -> Self {
        Self { init: Init::Uniform(a) }
    }

    /// Normal with this standard deviation.
    #[staticmethod]
    fn normal(deviation: f32) -> Self {
        Self { init: Init::Normal(deviation) }
    }

    /// Glorot's uniform distribution.
    #[staticmethod]
    #[pyo3(signature = (gain = 1.0))]
    fn glorot(gain: f32) -> Self {
        Self { init: Init::Glorot(gain) }
    }

    /// He's normal distribution.
    #[staticmethod]
    fn he() -> Self {
        Self { init: Init::He }
    }

    /// A random orthogonal matrix, times a gain.
    #[staticmethod]
    #[pyo3(signature = (gain = 1.0))]
    fn saxe(gain: f32) -> Self {
        Self { init: Init::Saxe(gain) }
    }
}

/// A parameter of a module. In an expression it stands for its value.
#[pyclass(frozen, name = "Param", module = "autobatch")]
pub(crate) struct PyParam {
    pub(crate) param: Param,
    name: String,
}

impl PyParam {
    pub(crate) fn new(param: Param, name: String) -> Self {
        Self { param, name }
    }
}

#[pymethods]
impl PyParam {
    /// The name of the parameter.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The parameter as a value of the current graph.
    pub(crate) fn value(&self, py: Python<'_>) -> PyResult<PyValue> {
        let graph = current()?;
        graph.emit(py, |g| wrap(&graph, g.param(self.param)))
    }

    fn __repr__(&self) -> String {
        format!("<autobatch.Param @{}>", self.name)
    }
}

/// A table of a module: `words[3]` is its row at an index, bound or computed.
#[pyclass(frozen, name = "Table", module = "autobatch")]
pub(crate) struct PyTable {
    pub(crate) table: Table,
    name: String,
    pub(crate) rows: u32,
}

#[pymethods]
impl PyTable {
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let by = Index::of(index)?;
        if let Index::Bound(index) = by
            && index >= self.rows
        {
            let (name, rows) = (&self.name, self.rows);
            return Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "row {index} of @{name}, which has {rows} rows"
            )));
        }
        let graph = match index.cast::<PyValue>() {
            Ok(value) => Arc::clone(value.get().owner()),
            Err(_) => current()?,
        };
        graph.emit(index.py(), |g| wrap(&graph, self.table.lookup(g, by.arg(g)?)))
    }

    fn __len__(&self) -> usize {
        self.rows as usize
    }

    /// The whole table as a parameter, for a tied output layer.
    fn as_param(&self) -> PyParam {
        PyParam { param: self.table.as_param(), name: self.name.clone() }
    }

    fn __repr__(&self) -> String {
        format!("<autobatch.Table @{}>", self.name)
    }
}

/// Traces the function that it decorates.
#[pyclass(frozen, module = "autobatch")]
pub(crate) struct CellDecorator {
    module: Py<PyModule_>,
    ports: Vec<Py<PyType>>,
    name: Option<String>,
}

#[pymethods]
impl CellDecorator {
    fn __call__(&self, body: &Bound<'_, PyAny>) -> PyResult<PyCell> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => body.getattr("__name__")?.extract()?,
        };
        self.module.get().trace(body.py(), &name, &self.ports, body)
    }
}

/// A cell: a function that was traced once. Calling it emits one node.
#[pyclass(frozen, name = "Cell", module = "autobatch")]
pub(crate) struct PyCell {
    pub(crate) cell: CellOfAny,
    name: String,
    /// Whether a call returns one value instead of a tuple.
    alone: bool,
}

#[pymethods]
impl PyCell {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let of_args =
            args.iter_borrowed().find_map(|arg| Some(Arc::clone(arg.cast::<PyValue>().ok()?.get().owner())));
        let graph = of_args.map_or_else(current, Ok)?;
        let emitted = graph.emit(py, |g| {
            let mut values = SmallVec::<[Arg<'_>; 8]>::new();
            for arg in args.iter_borrowed() {
                values.push(Index::of(&arg)?.arg(g)?);
            }
            let results = g.call_any(self.cell, values).into_iter().map(|value| wrap(&graph, value));
            Ok(results.collect::<SmallVec<[PyResult<PyValue>; 2]>>())
        })?;
        let mut results = emitted.into_iter();
        match results.next() {
            Some(only) if self.alone => Ok(only?.into_pyobject(py)?.into_any()),
            first => {
                let results = first.into_iter().chain(results).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, results)?.into_any())
            }
        }
    }

    /// The name of the cell.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<autobatch.Cell @{}>", self.name)
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyModule_>()?;
    m.add_class::<PyInit>()?;
    m.add_class::<PyParam>()?;
    m.add_class::<PyTable>()?;
    m.add_class::<CellDecorator>()?;
    m.add_class::<PyCell>()
}
