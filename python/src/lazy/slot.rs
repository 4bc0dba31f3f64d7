//! A recorded tensor, whose elements wait, are computed or are lost.

use super::dims::Dims;
use super::stand_in::StandIn;
use super::tensor::Tensor;
use super::{Block, Fail, Made, dims};
use crate::error::RecordError;
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Arc, Weak};

/// The part of a recorded tensor that its block refers to.
pub(super) struct Slot {
    pub(super) block: Arc<Block>,
    pub(super) state: Mutex<SlotState>,
    /// The tensors that share memory with it in torch: views of it, and what it is a view of.
    pub(super) family: Mutex<Option<Arc<Family>>>,
}

pub(super) type Family = Mutex<Vec<Weak<Slot>>>;

impl Slot {
    /// The tensors that share memory with this one.
    pub(super) fn family(self: &Arc<Self>) -> Arc<Family> {
        let mut family = self.family.lock();
        Arc::clone(family.get_or_insert_with(|| Arc::new(Mutex::new(vec![Arc::downgrade(self)]))))
    }

    /// Whether another living tensor views the same memory.
    pub(super) fn shares_memory(self: &Arc<Self>) -> bool {
        self.family.lock().as_ref().is_some_and(|family| {
            let members = family.lock();
            members.iter().filter_map(Weak::upgrade).any(|member| !Arc::ptr_eq(&member, self))
        })
    }

    /// Replaces the elements, as an op in place does. Other tensors that share its memory would have to change too.
    pub(super) fn change(self: &Arc<Self>, tensor: Tensor) -> Made<()> {
        let others = self.shares_memory();
        *self.family.lock() = None;
        let mut state = self.state.lock();
        match &*state {
            _ if others => Err(Fail::refused("it changes in place a tensor whose memory other tensors view")),
            SlotState::Pending(old) if old.dims == tensor.dims && old.kind == tensor.kind => {
                *state = SlotState::Pending(tensor);
                Ok(())
            }
            SlotState::Pending(old) => {
                let (old, new) = (dims::written(&old.dims), dims::written(&tensor.dims));
                Err(Fail::refused(format!("it changes a tensor of shape {old} in place into {new}")))
            }
            SlotState::Computed(_) | SlotState::Index(_) | SlotState::Lost => {
                Err(Fail::refused("it changes a computed tensor in place"))
            }
        }
    }
}

/// A tensor of one int.
#[derive(Clone, Copy)]
pub(super) struct Index {
    pub(super) int: i64,
    /// Whether it has an extent: `torch.tensor([3])`, not `torch.tensor(3)`.
    pub(super) has_extent: bool,
}

impl Index {
    pub(super) fn dims(self) -> Dims {
        Dims::from_slice(if self.has_extent { &[1] } else { &[] })
    }
}

pub(super) enum SlotState {
    Pending(Tensor),
    Computed(Py<PyAny>),
    /// A tensor of one int that torch has not made yet: most are indices that no function of torch sees.
    Index(Index),
    /// Its block ended with an error.
    Lost,
}

/// A tensor that is recorded and not computed yet. It behaves as the tensor: what needs its elements computes them.
#[pyclass(frozen, name = "Lazy", module = "autobatch.torch", weakref)]
#[repr(C)]
pub(crate) struct Lazy {
    /// Must come first.
    pub(super) stand_in: StandIn,
    pub(super) slot: Arc<Slot>,
}

impl Lazy {
    /// The tensor, if it waits in this block; `None` if it is computed. A tensor that waits in another block is computed.
    pub(super) fn pending_in(&self, block: &Arc<Block>) -> PyResult<Option<Tensor>> {
        match &*self.slot.state.lock() {
            SlotState::Pending(tensor) if Arc::ptr_eq(&self.slot.block, block) => Ok(Some(tensor.clone())),
            SlotState::Lost => Err(lost()),
            SlotState::Pending(_) | SlotState::Index(_) | SlotState::Computed(_) => Ok(None),
        }
    }

    /// The tensor, if it is not computed.
    pub(super) fn pending(&self) -> Option<Tensor> {
        match &*self.slot.state.lock() {
            SlotState::Pending(tensor) => Some(tensor.clone()),
            SlotState::Computed(_) | SlotState::Index(_) | SlotState::Lost => None,
        }
    }

    /// An index that torch has not made.
    pub(super) fn of_index(block: &Arc<Block>, index: Index) -> Self {
        let slot = Slot {
            block: Arc::clone(block),
            state: Mutex::new(SlotState::Index(index)),
            family: Mutex::new(None),
        };
        Self { stand_in: block.torch.stand_in, slot: Arc::new(slot) }
    }

    /// The int, if it is an index that torch has not made.
    pub(super) fn index(&self) -> Option<Index> {
        match *self.slot.state.lock() {
            SlotState::Index(index) => Some(index),
            _ => None,
        }
    }

    /// The tensor of torch, if it is computed.
    pub(super) fn known(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if let Some(index) = self.index() {
            let torch = &self.slot.block.torch;
            let _unwatched = torch.unwatched(py)?;
            let made = match index.has_extent {
                true => torch.make.call1(py, (vec![index.int],))?,
                false => torch.make.call1(py, (index.int,))?,
            };
            *self.slot.state.lock() = SlotState::Computed(made);
        }
        match &*self.slot.state.lock() {
            SlotState::Computed(tensor) => Ok(Some(tensor.clone_ref(py))),
            SlotState::Lost => Err(lost()),
            SlotState::Pending(_) | SlotState::Index(_) => Ok(None),
        }
    }

    /// The tensor of torch. Computes what was recorded in its block so far, after `each` has let the other instances record.
    pub(super) fn computed(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(tensor) = self.known(py)? {
            return Ok(tensor);
        }
        let block = &self.slot.block;
        if block.lock()?.trace.is_open() {
            return Err(reads());
        }
        let wait = block.wait.lock().as_ref().map(|wait| wait.clone_ref(py));
        if let Some(wait) = wait {
            wait.call0(py)?;
            if let Some(tensor) = self.known(py)? {
                return Ok(tensor);
            }
        }
        block.flush(py)?;
        self.known(py)?.ok_or_else(|| PyRuntimeError::new_err("a recorded tensor was not computed"))
    }
}

/// The error of a trace that needs elements.
pub(super) fn reads() -> PyErr {
    RecordError::new_err("its code reads a number that it computes")
}

pub(super) fn lost() -> PyErr {
    RecordError::new_err(
        "this tensor was recorded in a block that ended with an error, so it has no elements",
    )
}
