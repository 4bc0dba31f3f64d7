//! The stores that an update changes.

use super::super::Stores;
use autobatch_ir::plan::StoreId;
use autobatch_ir::{ParamId, States as HostStates, Weights};

/// Stores that a device changes.
pub trait StoresMut: Stores {
    /// Gives a store a new version, because the device changed its elements.
    fn renew(&mut self, store: StoreId);
}

/// The stores of an update plan: the parameters of a module and the states of an optimiser.
#[derive(Debug)]
pub struct Trained<'a> {
    /// The parameters.
    pub weights: &'a mut Weights,
    /// The states, in the order of the plan's stores.
    pub states: &'a mut HostStates,
}

impl Stores for Trained<'_> {
    fn values(&self, store: StoreId) -> &[f32] {
        match store.index().checked_sub(self.weights.len()) {
            None => self.weights.get(ParamId::new(store.index())),
            Some(state) => self.states.iter().nth(state).map_or(&[], |state| state.values()),
        }
    }

    fn version(&self, store: StoreId) -> u64 {
        match store.index().checked_sub(self.weights.len()) {
            None => self.weights.version(ParamId::new(store.index())),
            Some(state) => self.states.iter().nth(state).map_or(0, |state| state.version()),
        }
    }
}

impl StoresMut for Trained<'_> {
    fn renew(&mut self, store: StoreId) {
        match store.index().checked_sub(self.weights.len()) {
            None => self.weights.renew(ParamId::new(store.index())),
            Some(state) => {
                if let Some(state) = self.states.as_mut_slice().get_mut(state) {
                    state.renew();
                }
            }
        }
    }
}
