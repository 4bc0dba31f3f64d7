//! Traces methods as cells and templates.

use super::pattern::{Pattern, Results, Traits, literal};
use super::{CALLS_BEFORE_TEMPLATE, CALLS_BEFORE_TRACE, Cell, Computation, FORWARD, Method, NEVER};
use crate::error::raised;
use crate::lazy::engine::{Engine, PyEngine};
use crate::lazy::tensor::{Form, Tensor};
use crate::lazy::{Block, Fail, Lazy, Made, Recording, Slot, SlotState, State, Trace};
use autobatch::ir::Graph;
use autobatch::ir::graph::rebuild::Renaming;
use autobatch::ir::graph::{GraphData, Template, ValueKey};
use autobatch::ir::id::ValueId;
use autobatch::ir::module::{Module, ModuleBuilder};
use autobatch::ir::plan::Mode;
use autobatch::planner::passes::{self, Selection, in_chains, optimize};
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use std::sync::{Arc, Weak};

/// The guards whose comparison costs as much as the recording of an op.
const GUARDS_PER_OP: u64 = 50;

/// A method to trace, with the pattern of its calls.
type Wish<'py> = (Bound<'py, PyAny>, Bound<'py, PyString>, Pattern);

/// A traced call: what it computes and returns, and what its code can read.
type Traced<'py> = (Computation, Arc<Results>, Bound<'py, PyAny>);

impl Block {
    /// Traces the methods that came often: first as cells, which need an engine with another module, then as templates over that
    /// module. Nothing may be recorded and not computed.
    pub(super) fn trace_all(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let engine = Arc::clone(&self.lock()?.engine);
        let mut builder = ModuleBuilder::extending(engine.module());
        let (mut cells, mut others) = (0, Vec::new());
        for (module, name, pattern) in self.wishes(py, &engine, false) {
            let method = Method { module: &module, name: &name, run: 0 };
            let traced = self.trace_cell(&mut builder, &engine, &method, &pattern);
            // A template takes more than a cell, such as numbers that the code binds.
            if builder.take_fault().is_some() || traced.is_err() {
                others.push((module, name, pattern));
                continue;
            }
            engine.note_traced(py, &method, &pattern, traced)?;
            cells += 1;
        }
        if cells > 0 {
            let module = builder.build().map_err(|error| raised(error.into()))?;
            self.extend(py, &engine, module)?;
        }
        let engine = Arc::clone(&self.lock()?.engine);
        let mut wishes = self.wishes(py, &engine, true);
        wishes.extend(others);
        if wishes.is_empty() {
            return Ok(());
        }
        // Each template may add cells, which further ones share.
        let (mut over, mut all) = (Arc::clone(engine.module()), Vec::new());
        for (module, name, pattern) in wishes {
            let method = Method { module: &module, name: &name, run: 0 };
            let traced = self.trace_template(&engine, &over, &method, &pattern);
            if let Ok((Computation::Template(template), ..)) = &traced {
                over = Arc::clone(template.module());
            }
            all.push((module, name, pattern, traced));
        }
        let engine = match Arc::ptr_eq(&over, engine.module()) {
            true => engine,
            false => self.extend(py, &engine, over)?,
        };
        for (module, name, pattern, traced) in all {
            let method = Method { module: &module, name: &name, run: 0 };
            let traced = traced.and_then(|(computation, results, guards)| {
                Ok((computation.over(engine.module()).ok_or(Fail::Poison)?, results, guards))
            });
            engine.note_traced(py, &method, &pattern, traced)?;
        }
        Ok(())
    }

    /// Goes on with the same engine over a module with more cells.
    fn extend(
        self: &Arc<Self>,
        py: Python<'_>,
        engine: &Arc<Engine>,
        module: Arc<Module>,
    ) -> PyResult<Arc<Engine>> {
        let extended = Arc::new(engine.with_module(py, module)?);
        let (old, new) = (PyEngine::of(Arc::clone(engine)), PyEngine::of(Arc::clone(&extended)));
        self.torch.replace_engine.bind(py).call1((old, new))?;
        self.begin(Arc::clone(&extended))?;
        Ok(extended)
    }

    /// The patterns that came often, with rows or without.
    fn wishes<'py>(&self, py: Python<'py>, engine: &Engine, with_rows: bool) -> Vec<Wish<'py>> {
        let mut wishes = Vec::new();
        let enough = if with_rows { CALLS_BEFORE_TEMPLATE } else { CALLS_BEFORE_TRACE };
        for called in engine.methods.0.lock().values_mut() {
            let Some(module) = called.module.bind(py).upgrade() else { continue };
            let is_wish = |pattern: &Pattern, calls| {
                (enough..NEVER).contains(&calls) && pattern.has_rows() == with_rows
            };
            let (often, rest): (Vec<_>, Vec<_>) =
                called.patterns.drain(..).partition(|(pattern, calls)| is_wish(pattern, *calls));
            called.patterns = rest;
            // All cells of a method have the guards of the last one, so none may stay from before a change.
            if !often.is_empty() && !called.cells.is_empty() && !called.guards_hold(py, self.epoch(), 0) {
                called.trace_again();
            }
            let name = called.name.bind(py);
            wishes.extend(often.into_iter().map(|(pattern, _)| (module.clone(), name.clone(), pattern)));
        }
        wishes
    }

    /// Begins an empty graph over an engine.
    pub(in crate::lazy) fn begin(&self, engine: Arc<Engine>) -> PyResult<()> {
        let mut state = self.lock()?;
        let (ops, flushes, flushed) = (state.ops, state.flushes, state.flushed);
        *state = State { ops, flushes, flushed, ..State::new(engine) };
        Ok(())
    }

    /// Traces a call with a pattern as a cell.
    fn trace_cell<'py>(
        self: &Arc<Self>,
        builder: &mut ModuleBuilder,
        engine: &Arc<Engine>,
        method: &Method<'_, 'py>,
        pattern: &Pattern,
    ) -> Made<Traced<'py>> {
        let name = cell_name(method, builder.cells())?;
        let Some((graph, ports)) = builder.begin_cell(&name, &pattern.types()?) else {
            return Err(Fail::Poison);
        };
        let tracing = Arc::new(engine.for_tracing(method.module.py(), &graph.data().module));
        let (graph, results, keys, guards) = self.trace_in(
            State { graph, trace: Trace::Cell, ..State::new(tracing) },
            method,
            pattern,
            &ports,
        )?;
        let keys: Vec<Option<ValueKey>> = keys.into_iter().map(Some).collect();
        let cell = builder.end_cell(&name, graph, &keys);
        Ok((Computation::Node(name, cell), Arc::new(results), guards))
    }

    /// Traces a call with a pattern as a template over a module, which extends that of the engine. Chains of ops on one row
    /// become cells, so that a row is few nodes.
    fn trace_template<'py>(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        over: &Arc<Module>,
        method: &Method<'_, 'py>,
        pattern: &Pattern,
    ) -> Made<Traced<'py>> {
        let (graph, inputs) = Template::begin(over, &pattern.types()?);
        let tracing = Arc::new(engine.for_tracing(method.module.py(), over));
        let state = State { graph, trace: Trace::Template, ..State::new(tracing) };
        let (graph, results, keys, guards) = self.trace_in(state, method, pattern, &inputs)?;
        let ids = keys.iter().map(|&key| graph.value(key)?.id()).collect::<Option<Vec<_>>>();
        let data = graph.finish().map_err(|error| Fail::refused(error.to_string()))?;
        let template = outlined(&data, inputs.len(), &ids.ok_or(Fail::Poison)?)?;
        Ok((Computation::Template(Arc::new(template)), Arc::new(results), guards))
    }

    /// Calls a method while the block has another state. Returns the graph of that state, what the method returned, with its
    /// values, and what its code can read.
    fn trace_in<'py>(
        self: &Arc<Self>,
        tracing: State,
        method: &Method<'_, 'py>,
        pattern: &Pattern,
        ports: &[ValueKey],
    ) -> Made<(Graph, Results, Vec<ValueKey>, Bound<'py, PyAny>)> {
        let before = std::mem::replace(&mut *self.lock()?, tracing);
        let made = self.trace_call(method, pattern, ports);
        let traced = std::mem::replace(&mut *self.lock()?, before);
        traced.slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.lose());
        let (results, keys, guards) = made?;
        let (count, ops) = (guards.len()? as u64, traced.ops);
        if count > GUARDS_PER_OP * (1 + ops) {
            return Err(Fail::refused(format!("it can read {count} values and has {ops} ops only")));
        }
        Ok((traced.graph, results, keys, guards))
    }

    /// Calls a method on the ports of a cell. Returns what it returned, with the values in it, and what its code can read.
    fn trace_call<'py>(
        self: &Arc<Self>,
        method: &Method<'_, 'py>,
        pattern: &Pattern,
        ports: &[ValueKey],
    ) -> Made<(Results, Vec<ValueKey>, Bound<'py, PyAny>)> {
        let py = method.module.py();
        let (mut given, mut positional, named) = (Vec::new(), Vec::new(), PyDict::new(py));
        let mut ports = ports.iter().copied();
        for (name, argument) in &pattern.args {
            let object = argument.object(py, self, &mut ports, &mut given)?;
            match name {
                Some(name) => named.set_item(name, object)?,
                None => positional.push(object),
            }
        }
        let args = (method.module, method.name, PyTuple::new(py, positional)?, named, pattern.enabled);
        let made = self.torch.trace_call.bind(py).call1(args)?;
        let (guards, made): (Bound<'py, PyAny>, Bound<'py, PyAny>) = made.extract()?;
        for (slot, form) in &given {
            let same = matches!(&*slot.state.lock(), SlotState::Pending(tensor) if tensor.form.is(form));
            if !same {
                return Err(Fail::refused("it changes an argument in place"));
            }
        }
        let mut state = self.lock()?;
        let mut recording = state.recording(py, self, false);
        let mut keys = Vec::new();
        let results = recording.traced_results(&made, &given, &mut keys)?;
        if let Some(fault) = recording.graph.take_fault() {
            return Err(Fail::refused(fault.to_string()));
        }
        if keys.is_empty() {
            return Err(Fail::refused("it returns no tensor"));
        }
        Ok((results, keys, guards))
    }
}

/// The template of a traced graph.
fn outlined(data: &GraphData, inputs: usize, results: &[ValueId]) -> Made<Template> {
    let named = |renaming: &Renaming, values: &[ValueId]| {
        values.iter().map(|&value| renaming.get(value)).collect::<Option<Vec<_>>>().ok_or(Fail::Poison)
    };
    let (chained, order) = in_chains(data);
    let results = named(&order, results)?;
    let outline =
        Selection::none().with("outline", true).map_err(|error| Fail::refused(error.to_string()))?;
    let optimized = optimize(&chained, &results, Mode::Infer, &outline, &mut passes::all);
    let optimized = optimized.map_err(|error| Fail::refused(error.to_string()))?;
    let results = named(&optimized.renaming, &results)?;
    Template::of(optimized.graph.into_owned(), inputs, results)
        .ok_or_else(|| Fail::refused("it returns an argument"))
}

impl Recording<'_, '_> {
    /// Reads what a traced call returned.
    fn traced_results(
        &mut self,
        any: &Bound<'_, PyAny>,
        given: &[(Arc<Slot>, Form)],
        keys: &mut Vec<ValueKey>,
    ) -> Made<Results> {
        if let Ok(lazy) = any.cast_exact::<Lazy>() {
            let lazy = lazy.get();
            if given.iter().any(|(slot, _)| Arc::ptr_eq(slot, &lazy.slot)) {
                return Err(Fail::refused("it returns an argument"));
            }
            if lazy.slot.shares_memory() {
                return Err(Fail::refused("it returns a view of another tensor"));
            }
            let Some(tensor) = lazy.pending_in(self.block)? else {
                return Err(Fail::refused("it returns a tensor that is not computed from its arguments"));
            };
            return self.traced_result(&tensor, keys);
        }
        // Such as the zeros of a first state.
        if any.get_type().is(self.torch.tensor.bind(self.py)) {
            if !any.getattr(intern!(self.py, "dtype"))?.is(self.torch.float32.bind(self.py)) {
                return Err(Fail::refused("it returns a tensor of ints or truth values that it makes"));
            }
            let constant = self.tensor(any)?;
            return self.traced_result(&constant, keys);
        }
        let mut all = |items: &Bound<'_, PyAny>| {
            items.try_iter()?.map(|item| self.traced_results(&item?, given, keys)).collect::<Made<Vec<_>>>()
        };
        if any.is_exact_instance_of::<PyTuple>() {
            return Ok(Results::Tuple(all(any)?));
        }
        if any.is_exact_instance_of::<PyList>() {
            return Ok(Results::List(all(any)?));
        }
        match literal(any)? {
            Some(_) => Ok(Results::Object(any.clone().unbind())),
            None => Err(Fail::refused(format!("it returns a {}", any.get_type().name()?))),
        }
    }

    /// Counts a tensor among the results of a traced call.
    fn traced_result(&self, tensor: &Tensor, keys: &mut Vec<ValueKey>) -> Made<Results> {
        if let (Trace::Template, Some(rows)) = (self.trace, tensor.as_rows()) {
            let first = keys.len();
            keys.extend_from_slice(rows);
            return Ok(Results::Rows(first, rows.len(), Traits::of(tensor)));
        }
        keys.push(self.key(self.whole(tensor)?)?);
        Ok(Results::Tensor(keys.len() - 1, Traits::of(tensor)))
    }
}

impl Engine {
    /// Takes over what tracing a method gave.
    fn note_traced(
        &self,
        py: Python<'_>,
        method: &Method<'_, '_>,
        pattern: &Pattern,
        traced: Made<Traced<'_>>,
    ) -> PyResult<()> {
        let mut methods = self.methods.0.lock();
        let Some(called) = methods.get_mut(&method.key()) else { return Ok(()) };
        let why = match traced {
            Ok((computation, results, guards)) => {
                called.cells.push(Cell { pattern: pattern.clone(), computation, results });
                called.guards = Some(PyWeakrefReference::new(&guards)?.unbind());
                return Ok(());
            }
            Err(Fail::Raised(error)) if !error.is_instance_of::<PyException>(py) => return Err(error),
            Err(Fail::Raised(error)) => error.value(py).to_string(),
            Err(Fail::Refused(why)) => why,
            Err(Fail::Poison | Fail::Known | Fail::Unknown { .. }) => "the graph refuses it".to_owned(),
        };
        match called.cells.is_empty() {
            true => called.refuse(why),
            // Calls of this form alone are recorded op by op.
            false => called.patterns.push((pattern.clone(), NEVER)),
        }
        Ok(())
    }
}

/// A name for the cell of a method.
fn cell_name(method: &Method<'_, '_>, cells: usize) -> PyResult<String> {
    let class = method.module.get_type().name()?.to_string();
    let plain = class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && class.starts_with(|c: char| c.is_ascii_alphabetic());
    let class = if plain { &*class } else { "module" };
    let name = method.name.to_str()?;
    let plain = name != FORWARD && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    Ok(if plain { format!("{class}_{name}_{cells}") } else { format!("{class}_{cells}") })
}
