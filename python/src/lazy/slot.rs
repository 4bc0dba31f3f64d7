//! The elements of a recorded tensor: waiting, computed or lost.

use super::tensor::Tensor;
use super::{Block, Fail, Made, dims};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::sync::{Arc, Weak};

/// A recorded tensor.
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
            SlotState::Computed(_) | SlotState::Lost => {
                Err(Fail::refused("it changes a computed tensor in place"))
            }
        }
    }
}

pub(super) enum SlotState {
    Pending(Tensor),
    Computed(Py<PyAny>),
    /// Its block ended with an error.
    Lost,
}
