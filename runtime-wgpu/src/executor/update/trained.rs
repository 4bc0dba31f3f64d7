//! The stores that an update changes.

use super::super::Stores;
use super::super::memory::Memory;
use super::gradients::ArenaGradients;
use crate::compile::Updates;
use crate::error::GpuError;
use autobatch_ir::plan::{BindError, StoreId, StoreKind, UpdatePlan};
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

/// Checks that every store of the plan exists in its size. Returns the gradients.
pub(super) fn check<'m>(
    plan: &UpdatePlan,
    updates: &Updates,
    stores: &dyn StoresMut,
    memory: &Memory,
    gradients: Option<&'m ArenaGradients>,
) -> Result<&'m ArenaGradients, GpuError> {
    let wrong = |number: usize, found: usize| {
        GpuError::from(BindError::Store {
            name: plan.stores[number].name.clone(),
            expected: plan.stores[number].ty.shape.elements(),
            found,
        })
    };
    let Some(gradients) = gradients else { return Err(wrong(plan.stores.len().saturating_sub(1), 0)) };
    for (number, store) in plan.stores.iter().enumerate() {
        let found = match store.kind {
            StoreKind::Grad(of) => gradients.gradient(of).map_or(0, |run| run.1 as usize),
            StoreKind::Param(_) | StoreKind::State(_) => stores.values(StoreId(number as u32)).len(),
        };
        if found != store.ty.shape.elements() {
            return Err(wrong(number, found));
        }
    }
    for (number, store) in plan.stores[..updates.params].iter().enumerate() {
        let found = memory.held.get(number).map_or(0, |held| held.0.shape.elements());
        if found != store.ty.shape.elements() {
            return Err(wrong(number, found));
        }
    }
    Ok(gradients)
}
