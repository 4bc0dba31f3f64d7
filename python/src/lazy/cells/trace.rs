//! Traces modules as cells.

use super::pattern::{Pattern, Results, Traits, literal};
use super::{CALLS_BEFORE_TRACE, Cell};
use crate::error::raised;
use crate::lazy::engine::{Engine, PyEngine};
use crate::lazy::tensor::{Form, Tensor};
use crate::lazy::{Block, Fail, Lazy, Made, Recording, Slot, SlotState, State};
use autobatch::ir::graph::ValueKey;
use autobatch::ir::module::ModuleBuilder;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use std::sync::{Arc, Weak};

impl Block {
    /// Traces the modules that came often. Nothing may be recorded and not computed.
    pub(super) fn trace_all(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let engine = Arc::clone(&self.lock()?.engine);
        let mut wishes = Vec::new();
        for called in engine.modules.0.lock().values_mut() {
            let Some(module) = called.module.bind(py).upgrade() else { continue };
            let (often, rest): (Vec<_>, Vec<_>) =
                called.patterns.drain(..).partition(|(_, calls)| *calls >= CALLS_BEFORE_TRACE);
            called.patterns = rest;
            // All cells of a module have the guards of the last one, so none may stay from before a change.
            if !often.is_empty() && !called.cells.is_empty() && !called.guards_hold(py, self.epoch()) {
                called.trace_again();
            }
            wishes.extend(often.into_iter().map(|(pattern, _)| (module.clone(), pattern)));
        }
        if wishes.is_empty() {
            return Ok(());
        }
        let mut builder = ModuleBuilder::extending(engine.module());
        for (module, pattern) in wishes {
            let traced = self.trace(&mut builder, &engine, &module, &pattern);
            let mut modules = engine.modules.0.lock();
            let Some(called) = modules.get_mut(&(module.as_ptr() as usize)) else { continue };
            match traced {
                Ok((cell, guards)) => {
                    called.cells.push(cell);
                    called.guards = Some(PyWeakrefReference::new(&guards)?.unbind());
                }
                Err(Fail::Raised(error)) => {
                    if !error.is_instance_of::<PyException>(py) {
                        return Err(error);
                    }
                    called.refuse(error.value(py).to_string());
                }
                Err(Fail::Refused(why)) => called.refuse(why),
                Err(Fail::Poison | Fail::Unknown { .. }) => called.refuse("the graph refuses it".to_owned()),
            }
            if let Some(fault) = builder.take_fault() {
                called.refuse(fault.to_string());
            }
        }
        let module = builder.build().map_err(|error| raised(error.into()))?;
        let extended = Arc::new(engine.with_module(py, module)?);
        self.torch
            .replace_engine
            .bind(py)
            .call1((PyEngine::of(engine), PyEngine::of(Arc::clone(&extended))))?;
        self.begin(extended)
    }

    /// Begins an empty graph over an engine.
    pub(in crate::lazy) fn begin(&self, engine: Arc<Engine>) -> PyResult<()> {
        let mut state = self.lock()?;
        let (ops, flushes, flushed) = (state.ops, state.flushes, state.flushed);
        *state = State { ops, flushes, flushed, ..State::new(engine) };
        Ok(())
    }

    /// Traces a call with a pattern as a cell.
    fn trace<'py>(
        self: &Arc<Self>,
        builder: &mut ModuleBuilder,
        engine: &Arc<Engine>,
        module: &Bound<'py, PyAny>,
        pattern: &Pattern,
    ) -> Made<(Cell, Bound<'py, PyAny>)> {
        let py = module.py();
        let name = cell_name(module, builder.cells())?;
        let mut types = Vec::new();
        pattern.args.iter().try_for_each(|(_, argument)| argument.types(&mut types))?;
        let Some((graph, ports)) = builder.begin_cell(&name, &types) else { return Err(Fail::Poison) };
        let tracing = Arc::new(engine.for_tracing(py, &graph.data().module));
        let before = {
            let mut state = self.lock()?;
            let (ops, flushes) = (state.ops, state.flushes);
            let fresh = State { ops, flushes, graph, is_tracing: true, ..State::new(tracing) };
            std::mem::replace(&mut *state, fresh)
        };
        let made = self.trace_call(module, pattern, &ports);
        let traced = std::mem::replace(&mut *self.lock()?, before);
        traced.slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.lose());
        let (results, keys, guards) = made?;
        let keys: Vec<Option<ValueKey>> = keys.into_iter().map(Some).collect();
        let cell = builder.end_cell(&name, traced.graph, &keys);
        if let Some(fault) = builder.take_fault() {
            return Err(Fail::refused(fault.to_string()));
        }
        Ok((Cell { pattern: pattern.clone(), name, cell, results: Arc::new(results) }, guards))
    }

    /// Calls a module on the ports of a cell. Returns what it returned, with the values in it, and what its code can read.
    fn trace_call<'py>(
        self: &Arc<Self>,
        module: &Bound<'py, PyAny>,
        pattern: &Pattern,
        ports: &[ValueKey],
    ) -> Made<(Results, Vec<ValueKey>, Bound<'py, PyAny>)> {
        let py = module.py();
        let (mut given, mut positional, named) = (Vec::new(), Vec::new(), PyDict::new(py));
        let mut ports = ports.iter().copied();
        for (name, argument) in &pattern.args {
            let object = argument.object(py, self, &mut ports, &mut given)?;
            match name {
                Some(name) => named.set_item(name, object)?,
                None => positional.push(object),
            }
        }
        let args = (module, PyTuple::new(py, positional)?, named, pattern.enabled);
        let made = self.torch.trace_call.bind(py).call1(args)?;
        let (guards, made): (Bound<'py, PyAny>, Bound<'py, PyAny>) = made.extract()?;
        for (slot, key) in &given {
            let same = matches!(&*slot.state.lock(), SlotState::Pending(Tensor { form: Form::Whole(now), .. }) if now == key);
            if !same {
                return Err(Fail::refused("it changes an argument in place"));
            }
        }
        let mut state = self.lock()?;
        let State { engine, graph, existing, .. } = &mut *state;
        let recording = Recording {
            py,
            torch: &self.torch,
            block: self,
            engine,
            graph,
            existing,
            enabled: false,
            grad: false,
            is_tracing: true,
        };
        let mut keys = Vec::new();
        let results = recording.traced_results(&made, &given, &mut keys)?;
        if let Some(fault) = graph.take_fault() {
            return Err(Fail::refused(fault.to_string()));
        }
        if keys.is_empty() {
            return Err(Fail::refused("it returns no tensor"));
        }
        Ok((results, keys, guards))
    }
}

impl Recording<'_, '_> {
    /// Reads what a traced call returned.
    fn traced_results(
        &self,
        any: &Bound<'_, PyAny>,
        given: &[(Arc<Slot>, ValueKey)],
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
            keys.push(self.key(self.whole(&tensor)?)?);
            return Ok(Results::Tensor(keys.len() - 1, Traits::of(&tensor)));
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
}

/// A name for the cell of a module.
fn cell_name(module: &Bound<'_, PyAny>, cells: usize) -> PyResult<String> {
    let class = module.get_type().name()?.to_string();
    let plain = class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && class.starts_with(|c: char| c.is_ascii_alphabetic());
    Ok(format!("{}_{cells}", if plain { &*class } else { "module" }))
}
