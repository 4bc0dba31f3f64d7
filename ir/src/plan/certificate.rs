//! The certificate: how good a plan is, in numbers that others recompute. It compares like with
//! like: the bound is one on forward batches, so the batches of the reverse are counted apart.

use super::{Plan, Step};
use crate::id::AppId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How good the plan is, in numbers that the verifier recomputes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Forward steps that compute applications; those that only bring in bound numbers, constants and
    /// parameters are not counted.
    pub batches: u32,
    /// Steps of the reverse, which nothing bounds: the bound is one on forward batches. Seeds of
    /// losses are not counted.
    #[serde(default)]
    pub reverse_batches: u32,
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

impl Plan {
    /// How many steps come before the reverse: it begins with the first step whose first lane was
    /// computed before. All of them, if there is none. Constants are brought in as often as fields
    /// want them, which computes nothing.
    #[must_use]
    pub fn forward_steps(&self) -> usize {
        let largest = self.lanes.iter().map(|app| app.index()).max().unwrap_or(0);
        // Numbers of applications are dense; those of a file that lies are few.
        let mut dense = vec![0u64; if largest / 64 <= self.lanes.len() { largest / 64 + 1 } else { 0 }];
        let mut sparse = BTreeSet::new();
        let is_known = |dense: &[u64], sparse: &BTreeSet<AppId>, app: AppId| match dense.get(app.index() / 64)
        {
            Some(word) => word >> (app.index() % 64) & 1 == 1,
            None => sparse.contains(&app),
        };
        let again = |step: &Step| {
            let lanes = self.lanes.get(step.lanes.start as usize..step.lanes.end as usize).unwrap_or(&[]);
            if lanes.first().is_some_and(|&app| is_known(&dense, &sparse, app)) {
                return true;
            }
            if self.kernels.get(step.kernel.index()).is_some_and(|kernel| kernel.source) {
                return false;
            }
            for &app in lanes {
                match dense.get_mut(app.index() / 64) {
                    Some(word) => *word |= 1 << (app.index() % 64),
                    None => drop(sparse.insert(app)),
                }
            }
            false
        };
        self.steps.iter().position(again).unwrap_or(self.steps.len())
    }
}
