//! Verifying what is new in a plan that grew.
//!
//! A plan that was verified cannot be changed, only made longer, here: what a longer plan has beyond it is appended and
//! looked at, and its beginning, which nobody looks at, is not taken. So the whole keeps every rule if what is new
//! does: rows of slabs and bound numbers only become more, kernels and fields that steps name stay, rows once written
//! stay written. Where that is not how the longer plan differs, it is verified from its beginning.

use super::order::Order;
use super::{Since, Verified, VerifyErrors, examine};
use crate::plan::Plan;
use std::sync::Arc;

/// What was found out about a plan when it was verified, to go on from when it has grown.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    /// The plan that it is about.
    identity: Option<u64>,
    order: Order,
}

impl Plan {
    /// Checks every rule, and keeps what is needed to go on when the plan has [grown](Verified::<Plan>::grow).
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn verify_to_grow(self, examined: &mut Examined) -> Result<Verified<Self>, VerifyErrors> {
        *examined = Examined::default();
        examine(&self, Since::default(), &mut examined.order)?;
        let verified = Verified::new(self);
        examined.identity = Some(verified.identity);
        Ok(verified)
    }
}

impl Verified<Plan> {
    /// The plan with what a longer one has beyond it; of what it has itself only outputs, certificate and structure
    /// are taken from there. The work is linear in what is new, if `examined` is what was found out about this plan
    /// and the longer one begins with it; else it is that of [`Plan::verify`] on the longer one.
    ///
    /// # Errors
    /// As [`Plan::verify`]. The plan is gone then.
    pub fn grow(mut self, longer: &Plan, examined: &mut Examined) -> Result<Self, VerifyErrors> {
        if examined.identity.take() != Some(self.identity) || !begins(&self.thing, longer) {
            return longer.clone().verify_to_grow(examined);
        }
        let plan = &mut self.thing;
        let since = Since { kernels: plan.kernels.len(), steps: plan.steps.len(), waves: plan.waves.len() };
        append(plan, longer);
        examine(&self.thing, since, &mut examined.order)?;
        let grown = Self { before: Some(self.identity), ..Self::new(self.thing) };
        examined.identity = Some(grown.identity);
        Ok(grown)
    }
}

/// Whether a longer plan may be one that grew from this: all that steps name is there, and no less of it.
fn begins(plan: &Plan, longer: &Plan) -> bool {
    let slabs = plan.slabs.iter().zip(&longer.slabs);
    let lengths = |plan: &Plan| {
        [
            plan.slabs.len(),
            plan.steps.len(),
            plan.waves.len(),
            plan.operands.len(),
            plan.places.len(),
            plan.store_args.len(),
            plan.lanes.len(),
            plan.tables.len(),
            plan.words as usize,
            plan.floats as usize,
        ]
    };
    plan.mode == longer.mode
        && plan.module == longer.module
        && plan.reductions.is_empty()
        && longer.reductions.is_empty()
        && lengths(plan).iter().zip(lengths(longer)).all(|(&own, other)| own <= other)
        && plan.stores == longer.stores
        && longer.fields.starts_with(&plan.fields)
        && plan.kernels.len() <= longer.kernels.len()
        && plan.kernels.iter().zip(&longer.kernels).all(|(own, other)| Arc::ptr_eq(own, other))
        && slabs.clone().all(|(own, other)| own.kind == other.kind && own.fields == other.fields)
        && slabs.clone().all(|(own, other)| own.rows <= other.rows)
}

/// Appends what is new. Whatever the beginning of the longer plan says, it is not read.
fn append(plan: &mut Plan, longer: &Plan) {
    fn rest<T: Clone>(own: &mut Vec<T>, longer: &[T]) {
        own.extend_from_slice(&longer[own.len()..]);
    }
    for (own, other) in plan.slabs.iter_mut().zip(&longer.slabs) {
        own.rows = other.rows;
    }
    rest(&mut plan.slabs, &longer.slabs);
    rest(&mut plan.fields, &longer.fields);
    rest(&mut plan.kernels, &longer.kernels);
    rest(&mut plan.steps, &longer.steps);
    rest(&mut plan.waves, &longer.waves);
    rest(&mut plan.operands, &longer.operands);
    rest(&mut plan.places, &longer.places);
    rest(&mut plan.store_args, &longer.store_args);
    rest(&mut plan.lanes, &longer.lanes);
    rest(&mut plan.tables, &longer.tables);
    (plan.structure, plan.words, plan.floats) = (longer.structure, longer.words, longer.floats);
    plan.outputs.clone_from(&longer.outputs);
    plan.certificate = longer.certificate;
}
