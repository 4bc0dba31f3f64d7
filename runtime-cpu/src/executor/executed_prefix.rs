//! Remembers which steps of a plan were executed, so that an executor can resume a plan that has grown.
//!
//! Memory safety does not depend on this: rows always exist, and indices in rows are clamped to the last row. Correct
//! values depend on it, because the plan to resume must begin with the executed steps.

use autobatch_ir::hash::StructureHash;
use autobatch_ir::plan::{Kernel, Mode, Place, Plan, Verified};
use std::ops::Range;
use std::sync::Arc;

/// The executed steps of a growing plan.
#[derive(Debug)]
pub(super) struct ExecutedPrefix {
    steps: usize,
    waves: usize,
    /// The identity of the executed plan.
    identity: u64,
    /// The kernels of the plan. A grown plan usually shares them, so the comparison is fast.
    kernels: Vec<Arc<Kernel>>,
    /// A hash of the steps, with all that they read and write.
    hash: StructureHash,
}

impl ExecutedPrefix {
    /// The prefix after a run, if the plan can grow. The plan begins with the prefix `before`.
    pub(super) fn of(plan: &Verified<Plan>, before: Option<Self>) -> Option<Self> {
        if plan.mode != Mode::Grow {
            return None;
        }
        let steps = plan.steps.len();
        let hash = match before {
            Some(Self { steps: executed, hash, .. }) => hashed(plan, executed..steps, hash),
            None => hashed(plan, 0..steps, StructureHash::default()),
        };
        let (waves, identity, kernels) = (plan.waves.len(), plan.identity(), plan.kernels.clone());
        Some(Self { steps, waves, identity, kernels, hash })
    }

    /// The first wave of `plan` that was not executed, if the plan begins with this prefix.
    pub(super) fn first_new_wave(&self, plan: &Verified<Plan>) -> Option<usize> {
        if plan.mode == Mode::Grow && plan.grew_from(self.identity) {
            return Some(self.waves);
        }
        let wave_ends = self.waves == 0 || plan.waves.get(self.waves - 1) == Some(&(self.steps as u32));
        let longer = plan.mode == Mode::Grow && self.steps <= plan.steps.len() && wave_ends;
        let begins = || hashed(plan, 0..self.steps, StructureHash::default()).value() == self.hash.value();
        (longer && plan.kernels.starts_with(&self.kernels) && begins()).then_some(self.waves)
    }
}

/// Adds steps of a plan to a hash, and the fields that they name.
fn hashed(plan: &Plan, steps: Range<usize>, mut hash: StructureHash) -> StructureHash {
    let mut push = |a: u32, b: u32| hash.push(u64::from(a) << 32 | u64::from(b));
    let table = |at: u32, count: u32| &plan.tables[at as usize..(at + count) as usize];
    for step in &plan.steps[steps] {
        push(step.kernel.0, step.rows);
        for &store in plan.stores(step) {
            push(store.0, 0);
        }
        for &operand in plan.operands(step) {
            operand.describe(plan, step.rows, &mut push);
        }
        for &place in plan.places(step) {
            push(place.field().0, plan.field(place.field()).width());
            match place {
                Place::Rows { start, .. } => push(6, start),
                Place::Table { at, .. } => table(at, step.rows).iter().for_each(|&row| push(7, row)),
                Place::Edges { start, offsets, .. } => push(start, offsets),
            }
        }
    }
    hash
}
