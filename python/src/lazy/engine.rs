//! The parameters that recorded calls read, and the session that executes their graphs.

use super::cells::Methods;
use super::dims::Dims;
use super::tensor::extents;
use super::{Fail, Made, Recording};
use crate::error::raised;
use crate::session::{PySession, options, released};
use autobatch::Session;
use autobatch::ir::Weights;
use autobatch::ir::module::{Init, Module, ModuleBuilder, Param, ParamKind, Table};
use autobatch::ir::types::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::collections::HashMap;
use std::sync::Arc;

/// A parameter of torch.
pub(super) struct Known {
    reference: Py<PyWeakrefReference>,
    pub(super) name: String,
    pub(super) dims: Dims,
    pub(super) is_table: bool,
    param: Param,
}

impl Known {
    /// The engine's parameter.
    pub(super) fn param(&self) -> Param {
        self.param
    }

    /// The parameter as a table to look up.
    pub(super) fn table(&self) -> Table {
        Table::of_param(self.param)
    }
}

/// The parameters of one or several modules, and their session.
pub(super) struct Engine {
    pub(super) params: Vec<Known>,
    by_address: HashMap<usize, usize>,
    module: Arc<Module>,
    session: Py<PySession>,
    options: (usize, String),
    /// The methods that blocks called.
    pub(super) methods: Methods,
}

impl Engine {
    pub(super) fn module(&self) -> &Arc<Module> {
        &self.module
    }

    pub(super) fn session(&self) -> &Py<PySession> {
        &self.session
    }

    /// The parameters that live.
    pub(super) fn living<'py>(&self, py: Python<'py>) -> impl Iterator<Item = Bound<'py, PyAny>> {
        self.params.iter().filter_map(move |known| known.reference.bind(py).upgrade())
    }

    /// The same parameters in another module of the IR, which declares them too.
    fn known_in(&self, py: Python<'_>, module: &Module) -> Vec<Known> {
        let own = self.params.iter().filter_map(|known| {
            Some(Known {
                reference: known.reference.clone_ref(py),
                name: known.name.clone(),
                dims: known.dims.clone(),
                is_table: known.is_table,
                param: module.param(&known.name)?,
            })
        });
        own.collect()
    }

    /// An engine for the body of a cell, which a builder of a module traces. It does not hold that module, because the builder
    /// needs it alone when the cell ends.
    pub(super) fn for_tracing(&self, py: Python<'_>, module: &Module) -> Self {
        Self {
            params: self.known_in(py, module),
            by_address: self.by_address.clone(),
            module: Arc::clone(&self.module),
            session: self.session.clone_ref(py),
            options: self.options.clone(),
            methods: Methods::default(),
        }
    }

    /// An engine with the same parameters and more cells.
    pub(super) fn with_module(&self, py: Python<'_>, module: Arc<Module>) -> PyResult<Self> {
        let session = session_over(py, &module, &self.options)?;
        let (params, methods) = (self.known_in(py, &module), self.methods.for_module(py, &module));
        let (by_address, options) = (self.by_address.clone(), self.options.clone());
        Ok(Self { params, by_address, module, session, options, methods })
    }

    /// The number of a parameter.
    fn number(&self, param: &Bound<'_, PyAny>) -> Option<usize> {
        let number = *self.by_address.get(&(param.as_ptr() as usize))?;
        // A parameter that was freed may have left its address to another one.
        let same = self.params[number].reference.bind(param.py()).upgrade().is_some_and(|own| own.is(param));
        same.then_some(number)
    }
}

impl Recording<'_, '_> {
    /// The number of a parameter; `None` for what is no parameter.
    pub(super) fn param(&self, any: &Bound<'_, PyAny>) -> Made<Option<usize>> {
        let (py, kind) = (any.py(), any.get_type());
        let parameter = self.torch.parameter.bind(py);
        if !kind.is(parameter) && (kind.is(self.torch.tensor.bind(py)) || !any.is_instance(parameter)?) {
            return Ok(None);
        }
        match self.engine.number(any) {
            Some(number) => Ok(Some(number)),
            None => Err(Fail::Unknown { param: any.clone().unbind(), table: false }),
        }
    }
}

/// A session over a module. It takes the weights over from torch before each execution.
fn session_over(
    py: Python<'_>,
    module: &Arc<Module>,
    (threads, device): &(usize, String),
) -> PyResult<Py<PySession>> {
    let weights = Weights::try_init(module, 0).map_err(|error| raised(error.into()))?;
    let options = options(device, None, *threads, None, None)?;
    let session =
        released(py, || Session::with_options(module, Arc::new(weights), options)).map_err(raised)?;
    Py::new(py, PySession::of(Arc::clone(module), session))
}

/// An engine, as Python holds it.
#[pyclass(frozen, name = "Engine", module = "autobatch.torch")]
pub(crate) struct PyEngine {
    engine: Arc<Engine>,
}

impl PyEngine {
    pub(super) fn of(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

#[pymethods]
impl PyEngine {
    /// An engine over parameters: each with its name, and whether it is a table of rows that are looked up. It traces the
    /// methods that `like` traced.
    #[new]
    #[pyo3(signature = (params, *, threads = 0, device = "cpu", like = None))]
    fn new(
        py: Python<'_>,
        params: Vec<(String, Bound<'_, PyAny>, bool)>,
        threads: usize,
        device: &str,
        like: Option<&Self>,
    ) -> PyResult<Self> {
        let mut builder = ModuleBuilder::new("batch");
        let (mut known, mut by_address) = (Vec::with_capacity(params.len()), HashMap::new());
        for (name, parameter, is_table) in params {
            let dtype = parameter.getattr("dtype")?.to_string();
            if dtype != "torch.float32" {
                return Err(PyTypeError::new_err(format!(
                    "parameter {name} is {dtype}; the engine computes in float32: call .float() on the module"
                )));
            }
            let dims = extents(&parameter)?;
            let extent = |at: usize| dims[at] as usize;
            let shape = match dims.len() {
                0 => vec![1],
                // The weight of a convolution, which multiplies windows as vectors.
                3 => vec![extent(0), extent(1) * extent(2)],
                rank => (0..rank).map(extent).collect(),
            };
            let kind = if is_table { ParamKind::Table } else { ParamKind::Param };
            let param = builder.param_stored_as(&name, kind, DType::F32, &shape[..], Init::Constant(0.0));
            by_address.insert(parameter.as_ptr() as usize, known.len());
            let reference = PyWeakrefReference::new(&parameter)?.unbind();
            known.push(Known { reference, name, dims, is_table, param });
        }
        let module = builder.build().map_err(|error| raised(error.into()))?;
        let options = (threads, device.to_owned());
        let session = session_over(py, &module, &options)?;
        let methods = like.map(|like| like.engine.methods.for_module(py, &module)).unwrap_or_default();
        Ok(Self { engine: Arc::new(Engine { params: known, by_address, module, session, options, methods }) })
    }

    /// The number of threads that execute; 0 for all cores.
    #[getter]
    fn threads(&self) -> usize {
        self.engine.options.0
    }

    /// The session.
    #[getter]
    fn session(&self, py: Python<'_>) -> Py<PySession> {
        self.engine.session.clone_ref(py)
    }

    /// The living parameters: each with its name, and whether it is a table.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyAny>, bool)> {
        let own = self.engine.params.iter();
        own.filter_map(|known| {
            Some((known.name.clone(), known.reference.bind(py).upgrade()?, known.is_table))
        })
        .collect()
    }

    /// Whether it knows a parameter.
    fn knows(&self, param: &Bound<'_, PyAny>) -> bool {
        self.engine.number(param).is_some()
    }

    /// Whether all its parameters live.
    #[getter]
    fn is_alive(&self, py: Python<'_>) -> bool {
        self.engine.params.iter().all(|known| known.reference.bind(py).upgrade().is_some())
    }
}
