//! Outputs and the certificate of a plan.

use super::Places;
use crate::ids::RowId;
use crate::pipeline::Context;
use crate::schedule::Batches;
use autobatch_ir::plan::{FieldId, OutputKey, Plan, PlanOutput};

/// Scratch memory of [`add_outputs`].
#[derive(Debug, Default)]
pub(super) struct OutputMemory {
    /// The places of wanted values.
    places: Vec<(FieldId, RowId)>,
}

/// Adds the outputs of the graph under their names, and the wanted values of the request under their ids.
pub(super) fn add_outputs(
    context: &Context<'_>,
    memory: &mut OutputMemory,
    places: &Places<'_>,
    plan: &mut Plan,
) {
    let output = |key, (field, row): (FieldId, RowId)| PlanOutput { key, field, row: row.0 };
    let own = context.graph.outputs.iter();
    plan.outputs.extend(own.map(|own| output(OutputKey::named(&own.name), places.of(own.value))));
    // A minibatch wants thousands of values. A loop of its own finds their places, so that many cache misses are in flight at once.
    let found = &mut memory.places;
    found.clear();
    found.extend(context.request.wanted.iter().map(|&value| places.of(value)));
    let wanted = context.request.wanted.iter().zip(found.iter());
    plan.outputs.extend(wanted.map(|(&value, &place)| output(OutputKey::Value(value), place)));
}

/// Adds the steps from one on to the certificate.
pub(super) fn certify(plan: &mut Plan, first_step: usize, batches: &Batches) {
    let steps = &plan.steps[first_step..];
    let count = steps.iter().filter(|step| !plan.kernel(step).source).count();
    let moving = steps.iter().filter(|step| plan.kernel(step).only_moves());
    let copied: u64 = moving.map(|step| u64::from(step.rows) * step.places.len() as u64).sum();
    plan.certificate.copied += copied;
    plan.certificate.batches += count as u32;
    plan.certificate.bound = batches.bound.expect("the schedule stage computes a bound");
    plan.certificate.slab_bytes = plan.slab_bytes();
}
