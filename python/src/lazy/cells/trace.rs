//! Traces methods as cells.

use super::pattern::{Pattern, Results, Traits, literal};
use super::{CALLS_BEFORE_TRACE, Cell, FORWARD, Method};
use crate::error::raised;
use crate::lazy::engine::{Engine, PyEngine};
use crate::lazy::tensor::{Form, Tensor};
use crate::lazy::{Block, Fail, Lazy, Made, Recording, Slot, SlotState, State};
use autobatch::ir::graph::ValueKey;
use autobatch::ir::module::ModuleBuilder;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use std::sync::{Arc, Weak};

/// The guards whose comparison costs as much as the recording of an op.
const GUARDS_PER_OP: u64 = 50;

impl Block {
    /// Traces the methods that came often. Nothing may be recorded and not computed.
    pub(super) fn trace_all(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let engine = Arc::clone(&self.lock()?.engine);
        let mut wishes = Vec::new();
        for called in engine.methods.0.lock().values_mut() {
            let Some(module) = called.module.bind(py).upgrade() else { continue };
            let (often, rest): (Vec<_>, Vec<_>) =
                called.patterns.drain(..).partition(|(_, calls)| *calls >= CALLS_BEFORE_TRACE);
            called.patterns = rest;
            // All cells of a method have the guards of the last one, so none may stay from before a change.
            if !often.is_empty() && !called.cells.is_empty() && !called.guards_hold(py, self.epoch(), 0) {
                called.trace_again();
            }
            let name = called.name.bind(py);
            wishes.extend(often.into_iter().map(|(pattern, _)| (module.clone(), name.clone(), pattern)));
        }
        if wishes.is_empty() {
            return Ok(());
        }
        let mut builder = ModuleBuilder::extending(engine.module());
        for (module, name, pattern) in wishes {
            let method = Method { module: &module, name: &name, run: 0 };
            let traced = self.trace(&mut builder, &engine, &method, &pattern);
            let mut methods = engine.methods.0.lock();
            let Some(called) = methods.get_mut(&method.key()) else { continue };
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
                Err(Fail::Poison | Fail::Known | Fail::Unknown { .. }) => {
                    called.refuse("the graph refuses it".to_owned())
                }
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
        method: &Method<'_, 'py>,
        pattern: &Pattern,
    ) -> Made<(Cell, Bound<'py, PyAny>)> {
        let py = method.module.py();
        let name = cell_name(method, builder.cells())?;
        let mut types = Vec::new();
        pattern.args.iter().try_for_each(|(_, argument)| argument.types(&mut types))?;
        let Some((graph, ports)) = builder.begin_cell(&name, &types) else { return Err(Fail::Poison) };
        let tracing = Arc::new(engine.for_tracing(py, &graph.data().module));
        let (ops, before) = {
            let mut state = self.lock()?;
            let (ops, flushes) = (state.ops, state.flushes);
            let fresh = State { ops, flushes, graph, is_tracing: true, ..State::new(tracing) };
            (ops, std::mem::replace(&mut *state, fresh))
        };
        let made = self.trace_call(method, pattern, &ports);
        let traced = std::mem::replace(&mut *self.lock()?, before);
        traced.slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.lose());
        let (results, keys, guards) = made?;
        let (count, ops) = (guards.len()? as u64, traced.ops - ops);
        if count > GUARDS_PER_OP * (1 + ops) {
            return Err(Fail::refused(format!("it can read {count} values and has {ops} ops only")));
        }
        let keys: Vec<Option<ValueKey>> = keys.into_iter().map(Some).collect();
        let cell = builder.end_cell(&name, traced.graph, &keys);
        if let Some(fault) = builder.take_fault() {
            return Err(Fail::refused(fault.to_string()));
        }
        Ok((Cell { pattern: pattern.clone(), name, cell, results: Arc::new(results) }, guards))
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
        for (slot, key) in &given {
            let same = matches!(&*slot.state.lock(), SlotState::Pending(Tensor { form: Form::Whole(now), .. }) if now == key);
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

impl Recording<'_, '_> {
    /// Reads what a traced call returned.
    fn traced_results(
        &mut self,
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
        keys.push(self.key(self.whole(tensor)?)?);
        Ok(Results::Tensor(keys.len() - 1, Traits::of(tensor)))
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
