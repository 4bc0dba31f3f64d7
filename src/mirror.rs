//! What training changes, and where its newest values are.
//!
//! On the processor they are always here. A GPU keeps what it updates: the copy here is then the *mirror*,
//! a whole state from so many updates ago, under the versions of what the device holds. Reading brings the
//! newest state beside the mirror, and the next update makes it the mirror. If the device is lost, the
//! mirror is all that there is, and training goes on from it.

use crate::error::Result;
use autobatch_ir::{States, Weights};
use std::sync::{Arc, OnceLock};

/// Parameters, and what an optimiser keeps for them.
#[derive(Clone, Debug)]
pub(crate) struct Trained {
    pub(crate) weights: Arc<Weights>,
    pub(crate) states: States,
}

/// A state that may be older than what a device holds.
#[derive(Debug)]
pub(crate) struct Mirror {
    here: Trained,
    /// The newest state, once it was read.
    read: OnceLock<Trained>,
    /// How many updates the device is ahead.
    ahead: u64,
}

impl Mirror {
    pub(crate) fn new(weights: Arc<Weights>) -> Self {
        Self { here: Trained { weights, states: States::default() }, read: OnceLock::new(), ahead: 0 }
    }

    /// The newest state; `read` fills in what a device holds.
    pub(crate) fn newest(&self, read: impl FnOnce(&mut Trained) -> Result<()>) -> Result<&Trained> {
        if self.ahead == 0 {
            return Ok(&self.here);
        }
        if let Some(newest) = self.read.get() {
            return Ok(newest);
        }
        let mut newest = self.here.clone();
        read(&mut newest)?;
        newest.states.set_updates(self.updates());
        Ok(self.read.get_or_init(|| newest))
    }

    /// The mirror: values may be old, versions are those of the newest.
    pub(crate) fn here(&self) -> &Trained {
        &self.here
    }

    /// How many updates were made of the newest state.
    pub(crate) fn updates(&self) -> u64 {
        self.here.states.updates() + self.ahead
    }

    /// Makes the newest state the mirror if it was read; says whether the mirror is the newest state.
    pub(crate) fn settle(&mut self) -> bool {
        if let Some(newest) = self.read.take() {
            (self.here, self.ahead) = (newest, 0);
        }
        self.ahead == 0
    }

    /// What an update changes here: all of it, or versions alone.
    pub(crate) fn changing(&mut self) -> &mut Trained {
        &mut self.here
    }

    /// Says that a device made an update whose values are not here.
    pub(crate) fn falls_behind(&mut self) {
        self.ahead += 1;
    }

    /// Goes back to the newest state that is here; gives how many updates are lost.
    pub(crate) fn fall_back(&mut self) -> u64 {
        self.settle();
        std::mem::take(&mut self.ahead)
    }

    /// Takes another state, whatever a device holds.
    pub(crate) fn replace(&mut self, here: Trained) {
        *self = Self { here, read: OnceLock::new(), ahead: 0 };
    }
}
