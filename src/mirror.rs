//! The values that training changes, and the location of their newest version.
//!
//! On the CPU the host always holds them. A GPU keeps what it updates. The host's copy is then a *mirror*:
//! the whole state of an earlier update, with the version numbers of the device's state. Reading stores the
//! newest state beside the mirror, and the next update turns it into the mirror. After a device loss,
//! training continues from the mirror. Reading after every step would cost more than the step.

use crate::error::Result;
use autobatch_ir::{States, Weights};
use std::sync::{Arc, OnceLock};

/// Parameters and the optimiser's states.
#[derive(Clone, Debug)]
pub(crate) struct Trained {
    pub(crate) weights: Arc<Weights>,
    pub(crate) states: States,
}

/// A state that may be older than the device's.
#[derive(Debug)]
pub(crate) struct Mirror {
    here: Trained,
    /// The newest state, once it has been read.
    read: OnceLock<Trained>,
    /// The number of updates that the device is ahead.
    ahead: u64,
}

impl Mirror {
    pub(crate) fn new(weights: Arc<Weights>) -> Self {
        Self { here: Trained { weights, states: States::default() }, read: OnceLock::new(), ahead: 0 }
    }

    /// Returns the newest state; `read` fills in the device's values.
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

    /// Returns the mirror. Its values may be old; its versions are the newest.
    pub(crate) fn host_copy(&self) -> &Trained {
        &self.here
    }

    /// Counts the updates of the newest state.
    pub(crate) fn updates(&self) -> u64 {
        self.here.states.updates() + self.ahead
    }

    /// Turns the newest state into the mirror if it has been read. Returns whether the mirror is the newest state.
    pub(crate) fn settle(&mut self) -> bool {
        if let Some(newest) = self.read.take() {
            (self.here, self.ahead) = (newest, 0);
        }
        self.ahead == 0
    }

    /// Returns what an update changes on the host: everything, or the versions alone.
    pub(crate) fn changing(&mut self) -> &mut Trained {
        &mut self.here
    }

    /// Records an update whose values are only on the device.
    pub(crate) fn mark_stale(&mut self) {
        self.ahead += 1;
    }

    /// Goes back to the newest state on the host. Returns the number of lost updates.
    pub(crate) fn fall_back(&mut self) -> u64 {
        self.settle();
        std::mem::take(&mut self.ahead)
    }

    /// Replaces the state, on the host and on the device.
    pub(crate) fn replace(&mut self, here: Trained) {
        *self = Self { here, read: OnceLock::new(), ahead: 0 };
    }
}
