//! The outputs of a plan.

use super::Places;
use crate::ids::RowId;
use crate::order::Rows;
use crate::pipeline::Context;
use crate::storage::Storage;
use autobatch_ir::plan::{FieldId, OutputKey, Plan, PlanOutput};

/// Adds the outputs of the graph under their names, and the wanted values of the request under their ids. `found` is working
/// memory.
pub(super) fn add_outputs(
    context: &Context<'_>,
    found: &mut Vec<(FieldId, RowId)>,
    storage: &Storage,
    rows: &Rows,
    plan: &mut Plan,
) {
    let places = Places { graph: context.graph, existing: context.existing, storage, rows };
    let output = |key, (field, row): (FieldId, RowId)| PlanOutput { key, field, row: row.0 };
    let own = context.graph.outputs.iter();
    plan.outputs.extend(own.map(|own| output(OutputKey::named(&own.name), places.of(own.value))));
    // A minibatch wants thousands of values. A loop of its own finds their places, so that many cache misses are in flight at once.
    found.clear();
    found.extend(context.request.wanted.iter().map(|&value| places.of(value)));
    let wanted = context.request.wanted.iter().zip(found.iter());
    plan.outputs.extend(wanted.map(|(&value, &place)| output(OutputKey::Value(value), place)));
}
