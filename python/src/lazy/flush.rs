//! Executes what a block recorded.

use super::dims::Dims;
use super::engine::PyEngine;
use super::tensor::Kind;
use super::{Block, Fail, Slot, SlotState, State};
use crate::error::{RecordError, raised};
use crate::graph::Shared;
use crate::session::{PySession, released};
use crate::value::{PyValue, stacked};
use autobatch::ir::graph::ValueKey;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Recorded tensors of one shape and type.
#[derive(PartialEq, Eq, Hash)]
struct Alike {
    dims: Dims,
    kind: Kind,
    grad: bool,
}

/// Tensors alike, with their values.
type Group<'a> = (Alike, Vec<(ValueKey, &'a Arc<Slot>)>);

impl Block {
    /// Computes all living tensors that were recorded since the last flush.
    pub(super) fn flush(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let taken = {
            let mut state = self.lock()?;
            if state.trace.is_open() {
                return Err(super::slot::reads());
            }
            let (ops, flushes) = (state.ops, state.flushes);
            let fresh = State { ops, flushes, flushed: ops, ..State::new(Arc::clone(&state.engine)) };
            std::mem::replace(&mut *state, fresh)
        };
        let (engine, ops) = (Arc::clone(&taken.engine), taken.ops - taken.flushed);
        let waiting: Vec<Arc<Slot>> = taken.slots.iter().filter_map(Weak::upgrade).collect();
        match self.compute(py, taken, &waiting) {
            Ok(computed) => {
                self.lock()?.flushes += u64::from(computed);
                if computed { self.note_flush(py, &engine, ops) } else { Ok(()) }
            }
            Err(error) => {
                waiting.iter().for_each(|slot| slot.lose());
                Err(error)
            }
        }
    }

    /// Computes the waiting tensors. Returns whether there are any.
    fn compute(self: &Arc<Self>, py: Python<'_>, mut taken: State, waiting: &[Arc<Slot>]) -> PyResult<bool> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut places: HashMap<Alike, usize> = HashMap::new();
        for slot in waiting {
            let SlotState::Pending(tensor) = &*slot.state.lock() else { continue };
            let recording = taken.recording(py, self, false);
            let value = recording.whole(tensor).map_err(|fail| match fail {
                Fail::Raised(error) => error,
                Fail::Refused(why) => RecordError::new_err(why),
                Fail::Poison | Fail::Known | Fail::Unknown { .. } => {
                    RecordError::new_err("a result cannot be computed")
                }
            })?;
            let Some(key) = value.key() else { continue };
            let alike = || Alike { dims: tensor.dims.clone(), kind: tensor.kind, grad: tensor.grad };
            let place = *places.entry(alike()).or_insert_with(|| {
                groups.push((alike(), Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push((key, slot));
        }
        let State { engine, graph, existing, .. } = taken;
        if let Some(fault) = graph.take_fault() {
            return Err(RecordError::new_err(fault.to_string()));
        }
        if groups.is_empty() {
            return Ok(false);
        }
        // A gradient goes to the tensors with gradients alone.
        groups.sort_by_key(|(alike, _)| !alike.grad);
        self.draw(&graph, groups.iter().flat_map(|(_, members)| members.iter().map(|(key, _)| *key)));
        let shared = Shared::without_lines(graph);
        let values = PyList::empty(py);
        let shapes = PyList::empty(py);
        for (alike, members) in &groups {
            values.append(members.iter().map(|(key, _)| PyValue::new(&shared, *key)).collect::<Vec<_>>())?;
            shapes.append((alike.dims.to_vec(), alike.grad))?;
        }
        let (mut inputs, mut tensors) = (Vec::new(), Vec::new());
        for (key, tensor) in existing.inputs {
            inputs.push(PyValue::new(&shared, key));
            tensors.push(tensor);
        }
        let engine = PyEngine::of(Arc::clone(&engine));
        let made = self.torch.execute.bind(py).call1((engine, values, shapes, inputs, tensors))?;
        for (stacked, (_, members)) in made.try_iter()?.zip(&groups) {
            for (tensor, (_, slot)) in stacked?.try_iter()?.zip(members) {
                *slot.state.lock() = SlotState::Computed(tensor?.unbind());
            }
        }
        Ok(true)
    }

    /// Forgets what was recorded since the last flush.
    pub(super) fn lose(&self) -> PyResult<()> {
        let mut state = self.lock()?;
        let fresh = State::new(Arc::clone(&state.engine));
        let taken = std::mem::replace(&mut *state, fresh);
        taken.slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.lose());
        Ok(())
    }
}

impl Slot {
    pub(super) fn lose(&self) {
        let mut state = self.state.lock();
        if matches!(*state, SlotState::Pending(_)) {
            *state = SlotState::Lost;
        }
    }
}

#[pymethods]
impl PySession {
    /// Computes groups of values of one graph. The values of a group have one shape and become one array, one row a value.
    fn run_groups<'py>(
        &self,
        py: Python<'py>,
        groups: Vec<Vec<Py<PyValue>>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(first) = groups.iter().flatten().next() else { return Ok(Vec::new()) };
        let graph = Arc::clone(first.get().owner());
        let mut session = self.lock()?;
        graph.read(|graph| {
            let own = |value: &Py<PyValue>| value.get().get(graph);
            let values = groups.iter().flatten().map(own).collect::<PyResult<Vec<_>>>()?;
            let run = released(py, || session.run(graph, &values)).map_err(raised)?;
            let mut values = values.into_iter();
            let mut arrays = Vec::with_capacity(groups.len());
            for group in &groups {
                let mut words = Vec::new();
                let mut ty = None;
                for value in values.by_ref().take(group.len()) {
                    ty = Some(value.ty());
                    words.extend_from_slice(&run[value]);
                }
                arrays.push(stacked(py, group.len(), ty, words)?);
            }
            Ok(arrays)
        })
    }
}
