//! What a plan says of its own quality.

use serde::{Deserialize, Serialize};

/// How good the plan is, in numbers that the verifier recomputes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Steps that compute applications; those that only bring in bound numbers, constants and
    /// parameters are not counted.
    pub batches: u32,
    /// No schedule has fewer batches than this.
    pub bound: u32,
    /// Rows moved by steps that do nothing else.
    pub copied: u64,
    /// Operand rows read through a table.
    pub tabled: u64,
    /// Operand rows read in place.
    pub direct: u64,
    /// Bytes of all slabs.
    pub slab_bytes: u64,
}

impl Certificate {
    /// How many batches more than the bound, as a share of the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.bound == 0 { 0.0 } else { f64::from(self.batches) / f64::from(self.bound) - 1.0 }
    }
}
