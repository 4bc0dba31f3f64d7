//! The certificate: the quality of a plan in numbers that a verifier recomputes.
//!
//! The bound is a bound on forward batches, so the certificate counts the batches of the reverse separately.

use super::Plan;
use serde::{Deserialize, Serialize};

/// The quality of a plan, in numbers that the verifier recomputes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Forward steps that compute nodes. Steps that only bring in bindings, constants and parameters do not count.
    pub batches: u32,
    /// Steps of the reverse without seeds of losses. Nothing bounds them.
    #[serde(default)]
    pub reverse_batches: u32,
    /// No schedule has fewer batches than this.
    pub bound: u32,
    /// Rows moved by steps that only move rows.
    pub copied: u64,
    /// Operand rows read through a table.
    pub gathered: u64,
    /// Operand rows read at a constant distance from each other.
    pub direct: u64,
    /// Bytes of all slabs.
    pub slab_bytes: u64,
}

impl Certificate {
    /// How many batches exceed the bound, as a share of the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.bound == 0 { 0.0 } else { f64::from(self.batches) / f64::from(self.bound) - 1.0 }
    }
}

impl Plan {
    /// How many steps precede the reverse, which begins with the first step whose kernel declares roles. All steps, if there is
    /// no reverse.
    #[must_use]
    pub fn forward_steps(&self) -> usize {
        let in_reverse = |step| self.kernel(step).roles.is_some();
        self.steps.iter().position(in_reverse).unwrap_or(self.steps.len())
    }
}
