//! Optimiser state between updates: moments, accumulators, master copies, moving averages.
//!
//! States complement [`Weights`]. Their order is that of the stores of the update plan, and each has
//! a name. A checkpoint contains [`States::iter`] and [`States::updates`]; restoring calls
//! [`States::set`] for each name and [`States::set_updates`].

use crate::getters::getters;
use crate::id::ParamId;
use crate::recipe::{AVERAGE, StateInit};
use crate::types::Type;
use crate::weights::{Weights, fresh_version};

/// The states of all parameters that an optimiser updates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct States {
    states: Vec<State>,
    updates: u64,
}

/// One state of one parameter.
#[derive(Clone, Debug)]
pub struct State {
    name: String,
    role: String,
    param: ParamId,
    ty: Type,
    values: Vec<f32>,
    version: u64,
}

/// Ignores versions.
impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, role, param, ty, values, version: _ } = self;
        (name, role, param, ty, values) == (&other.name, &other.role, &other.param, &other.ty, &other.values)
    }
}

/// Why states were not created or not restored.
#[expect(missing_docs, reason = "the message of each error names its fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatesError {
    /// The optimiser has no state with this name.
    #[error("expected a state of the optimiser, found {0}; restore with the optimiser that was saved")]
    Unknown(String),
    /// The number of values differs.
    #[error("{name}: expected {expected} values, found {found}; give one for each element")]
    Length { name: String, expected: usize, found: usize },
    /// There is not enough memory.
    #[error(
        "{name} needs {bytes} bytes, which the system cannot allocate; choose an optimiser with fewer states"
    )]
    Memory { name: String, bytes: u64 },
}

crate::debug_as_display!(StatesError);

impl State {
    pub(crate) fn new(
        name: String,
        role: &str,
        param: ParamId,
        ty: Type,
        init: StateInit,
        weights: &Weights,
    ) -> Result<Self, StatesError> {
        let elements = ty.shape.elements();
        let mut values = Vec::new();
        if values.try_reserve_exact(elements).is_err() {
            return Err(StatesError::Memory { name, bytes: 4 * elements as u64 });
        }
        match init {
            StateInit::Fill(number) => values.resize(elements, number),
            StateInit::Param => values.extend_from_slice(weights.get(param)),
        }
        Ok(Self { name, role: role.to_owned(), param, ty, values, version: fresh_version() })
    }

    getters! {
        /// Its name, which is also the name of its store.
        name(self) -> &str = &self.name;
        /// Its role for its parameter: `m`, `master`, `average`.
        role(self) -> &str = &self.role;
        /// The parameter.
        param(self) -> ParamId = self.param;
        /// Its type.
        ty(self) -> Type = self.ty;
        /// Its values, row by row.
        values(self) -> &[f32] = &self.values;
        /// A number that changes with each mutable access, as [`Weights::version`].
        version(self) -> u64 = self.version;
    }

    /// Mutable access to its values. The version changes immediately.
    pub fn values_mut(&mut self) -> &mut Vec<f32> {
        self.version = fresh_version();
        &mut self.values
    }

    /// Records that a device changed the values, as [`Weights::renew`].
    pub fn renew(&mut self) {
        self.version = fresh_version();
    }

    /// Stores the values that belong to the current version.
    ///
    /// # Errors
    /// If the number of values differs from the state's.
    pub fn receive(&mut self, values: &[f32]) -> Result<(), StatesError> {
        let (expected, found) = (self.values.len(), values.len());
        if expected != found {
            return Err(StatesError::Length { name: self.name.clone(), expected, found });
        }
        self.values.copy_from_slice(values);
        Ok(())
    }
}

impl States {
    pub(crate) const fn new(states: Vec<State>) -> Self {
        Self { states, updates: 0 }
    }

    /// Every state, in the order of the stores of the update plan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &State> {
        self.states.iter()
    }

    /// Mutable access for executors. The number of values of a state must not change.
    pub fn as_mut_slice(&mut self) -> &mut [State] {
        &mut self.states
    }

    getters! {
        /// The number of states.
        len(self) -> usize = self.states.len();
        /// Whether the optimiser has no state.
        is_empty(self) -> bool = self.states.is_empty();
        /// The number of executed updates; the next update has number `updates() + 1`.
        updates(self) -> u64 = self.updates;
        /// The state with this name.
        get(self, name: &str) -> Option<&State> = self.states.iter().find(|state| state.name == name);
    }

    /// Sets the number of executed updates, after an update or when restoring a checkpoint.
    pub fn set_updates(&mut self, updates: u64) {
        self.updates = updates;
    }

    /// Replaces the values of the state with this name.
    ///
    /// # Errors
    /// If there is no such state, or the number of values differs.
    pub fn set(&mut self, name: &str, values: &[f32]) -> Result<(), StatesError> {
        let Some(state) = self.states.iter_mut().find(|state| state.name == name) else {
            return Err(StatesError::Unknown(name.to_owned()));
        };
        state.receive(values)?;
        state.renew();
        Ok(())
    }

    /// A copy of the weights with parameters replaced by their moving averages; `None` if there are no averages.
    #[must_use]
    pub fn averages(&self, weights: &Weights) -> Option<Weights> {
        let mut averaged: Option<Weights> = None;
        for state in self.states.iter().filter(|state| state.role == AVERAGE) {
            let averaged = averaged.get_or_insert_with(|| weights.clone());
            averaged.get_mut(state.param).copy_from_slice(&state.values);
        }
        averaged
    }
}
