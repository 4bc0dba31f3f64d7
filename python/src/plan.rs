//! `Plan`: the plan of a graph, to print, to draw, to explain and to compare.

use crate::error::{AutobatchError, CheckpointError, PlanError};
use crate::graph::{PyGraph, Shared};
use crate::session::released;
use crate::value::{PyValue, own_value};
use autobatch::ir::GraphData;
use autobatch::ir::ValueId;
use autobatch::ir::files;
use autobatch::ir::graph::OutputKind;
use autobatch::ir::plan::Plan;
use autobatch::planner::schedule::Policy;
use autobatch::planner::{Planner, Request};
use autobatch_inspector::page::{Files, document};
use autobatch_inspector::why::{Question, why};
use autobatch_inspector::{load_policy, picture};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The nodes of the largest graph that is drawn. Browsers are slow with larger pictures.
pub(crate) const MAX_DRAWN: usize = 3000;
/// The nodes of the largest graph for which `policies` searches with a beam.
const MAX_SEARCHED: usize = 100_000;

/// The plan of a graph, as the model emitted it: batches, and the rows that they read and write.
#[pyclass(frozen, name = "Plan", module = "autobatch")]
pub(crate) struct PyPlan {
    shared: Arc<Shared>,
    /// The graph, whose outputs are the planned values.
    graph: GraphData,
    plan: Plan,
    policy: Policy,
}

/// Plans without the interpreter's lock.
fn planned(py: Python<'_>, graph: &GraphData, policy: &Policy) -> PyResult<Plan> {
    let schedule = load_policy(policy).map_err(|error| PlanError::new_err(error.to_string()))?;
    let plan = released(py, || Planner::new(schedule).plan(graph, &Request::default()));
    plan.map_err(|error| PlanError::new_err(error.to_string()))
}

impl PyPlan {
    /// Plans values of a graph; without any, those that no node reads.
    pub(crate) fn of(
        py: Python<'_>,
        shared: &Arc<Shared>,
        values: &[Py<PyValue>],
        policy: Option<&str>,
    ) -> PyResult<Self> {
        let policy: Policy = match policy {
            Some(policy) => policy.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?,
            None => Policy::default(),
        };
        let graph = shared.read(|graph| {
            let named = values.iter().map(|value| Ok(value.get().get(graph)?.id()));
            let mut wanted: Vec<ValueId> =
                named.collect::<PyResult<Vec<_>>>()?.into_iter().flatten().collect();
            let mut data = graph.data().clone();
            if wanted.is_empty() {
                wanted.extend(data.unread(&[]));
            }
            data.add_outputs(wanted.into_iter().map(|value| (value, OutputKind::Value)));
            Ok(data)
        })?;
        let plan = planned(py, &graph, &policy)?;
        Ok(Self { shared: Arc::clone(shared), graph, plan, policy })
    }

    /// Reads a value of the graph, or its name such as `%12`.
    fn value(&self, any: &Bound<'_, PyAny>) -> PyResult<ValueId> {
        if let Ok(value) = any.cast::<PyValue>() {
            let key = value.get().key();
            self.shared.read(|graph| own_value(graph, key).map(|_| ()))?;
            return match key.id().index() < self.graph.arena.values() {
                true => Ok(key.id()),
                false => Err(PyValueError::new_err(format!(
                    "{} was emitted after the plan was made; make a plan of the whole graph",
                    key.id()
                ))),
            };
        }
        let name: String = any.extract().map_err(|_| {
            PyTypeError::new_err(format!("expected a value or its name, such as \"%12\", found {any:?}"))
        })?;
        autobatch_inspector::names::parse_value(&self.graph, &name)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn write(path: &Path, bytes: &[u8]) -> PyResult<()> {
        files::write(path, bytes).map_err(|error| {
            let remedy = files::write_remedy(&error);
            CheckpointError::new_err(format!("{}: {error}; {remedy}", path.display()))
        })
    }
}

#[pymethods]
impl PyPlan {
    /// The number of batches.
    #[getter]
    fn batches(&self) -> u32 {
        self.plan.certificate.batches
    }

    /// A lower bound: no schedule of the graph has fewer batches.
    #[getter]
    fn bound(&self) -> u32 {
        self.plan.certificate.bound
    }

    /// The number of nodes of the graph.
    #[getter]
    fn nodes(&self) -> usize {
        self.graph.arena.len()
    }

    /// The policy that chose the batches.
    #[getter]
    fn policy(&self) -> String {
        self.policy.to_string()
    }

    /// The plan in words, a line for each step.
    fn text(&self) -> String {
        self.plan.to_text()
    }

    /// Why two values share a batch, or why they do not. A value is one of the graph, or its name such as `"%12"`.
    fn explain(&self, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<String> {
        let question = Question {
            values: [self.value(a)?, self.value(b)?],
            policy: self.policy.clone(),
            assumed: false,
            passes: false,
            forced: None,
        };
        let answer = why(&self.graph, &self.plan, &question);
        Ok(answer.map_err(|error| AutobatchError::new_err(error.to_string()))?.text.trim_end().to_owned())
    }

    /// The number of batches that each policy makes of the same graph, as a dict.
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let batches = PyDict::new(py);
        for policy in Policy::standard().into_iter().chain([Policy::Auto]) {
            if self.graph.arena.len() > MAX_SEARCHED && matches!(policy, Policy::Beam(_)) {
                continue;
            }
            py.check_signals()?;
            let plan = planned(py, &self.graph, &policy)?;
            batches.set_item(policy.to_string(), plan.certificate.batches)?;
        }
        Ok(batches)
    }

    /// Writes a page that shows the plan step by step in any browser, without a network. Returns its path.
    #[pyo3(signature = (path = PathBuf::from("plan.html")))]
    fn inspect(&self, path: PathBuf) -> PyResult<PathBuf> {
        let (graph, plan) = (self.graph.to_bytes(), self.plan.to_bytes());
        let page = document(Files {
            title: &self.graph.module.name,
            graph: Some(("graph.abg", &graph)),
            plan: Some(("plan.abp", &plan)),
        });
        Self::write(&path, page.as_bytes())?;
        Ok(path)
    }

    /// Writes the plan for the command line: `autobatch explain PATH`.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        Self::write(&path, &self.plan.to_bytes())
    }

    /// Writes the graph for the command line: `autobatch plan PATH`.
    fn save_graph(&self, path: PathBuf) -> PyResult<()> {
        Self::write(&path, &self.graph.to_bytes())
    }

    fn __repr__(&self) -> String {
        let (batches, bound) = (self.batches(), self.bound());
        let instances = self.graph.instances();
        format!(
            "<autobatch.Plan: {} nodes of {instances} instances in {batches} batches (at least {bound}), policy {}>",
            self.nodes(),
            self.policy
        )
    }

    /// The summary with a picture, for notebooks.
    fn _repr_html_(&self) -> String {
        let mut html = String::new();
        let text = self.__repr__();
        let _ = write!(html, "<p>{}</p>", text.trim_matches(['<', '>']));
        match self.nodes() <= MAX_DRAWN {
            true => html += &picture::graph(&self.graph, &self.plan, &self.policy.to_string()),
            false => html += "<p>A graph with more than 3,000 nodes is not drawn; inspect() shows it.</p>",
        }
        html
    }
}

#[pymethods]
impl PyGraph {
    /// The plan of values of this graph; without any, of those that no node reads. Nothing is executed.
    #[pyo3(signature = (*values, policy = None))]
    fn plan(&self, values: &Bound<'_, PyTuple>, policy: Option<&str>) -> PyResult<PyPlan> {
        let own = values.iter().map(|value| Ok(value.cast_into::<PyValue>()?.unbind()));
        PyPlan::of(values.py(), &self.shared, &own.collect::<PyResult<Vec<_>>>()?, policy)
    }

    /// The plan of the graph with a picture, for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(PyPlan::of(py, &self.shared, &[], None)?._repr_html_())
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPlan>()
}
