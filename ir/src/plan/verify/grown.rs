//! Verification of the new part of a plan that grew.
//!
//! A verified plan cannot change, but it can grow here. The new part of a longer plan is appended and verified; the beginning
//! of the longer plan is ignored. The whole plan keeps every rule if the new part does: slabs and bound pools only grow,
//! kernels and fields that steps name stay, and written rows stay written. If the longer plan differs in another way, it is
//! verified from its beginning.

use super::order::Order;
use super::{Since, Verified, VerifyErrors, examine};
use crate::plan::Plan;
use std::sync::Arc;

/// The state of a verification, from which the verification of a grown plan continues.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    /// The identity of the verified plan.
    identity: Option<u64>,
    order: Order,
}

impl Plan {
    /// Checks every rule, and stores the state from which to continue after the plan has [grown](Verified::<Plan>::grow).
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
    /// The plan with the additional part of a longer one. Outputs, certificate and structure are those of the longer plan. The
    /// work is linear in the new part if `examined` is the state of this plan and the longer plan begins with it. Otherwise the
    /// longer plan is verified whole.
    ///
    /// # Errors
    /// As [`Plan::verify`]. The plan is dropped then.
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

/// Whether a longer plan has everything that the steps of a plan name.
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

/// Appends the new part. The beginning of the longer plan is not read.
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
