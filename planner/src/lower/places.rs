//! The field and row of every value, and the outputs of a plan.

use crate::context::Context;
use crate::ids::RowId;
use crate::order::Rows;
use crate::storage::Storage;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{FieldId, OutputKey, Plan, PlanOutput};

/// The fields and rows of the values of a graph: the products of all stages before lowering. A
/// [`Place`](autobatch_ir::plan::Place) of the plan is where one result of one step goes.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) storage: &'a Storage,
    pub(crate) rows: &'a Rows,
}

impl Places<'_> {
    /// The field and row of a value; of a constant, those of its first copy.
    pub(crate) fn of(&self, value: ValueId) -> (FieldId, RowId) {
        let Context { graph, existing, .. } = *self.context;
        match existing.get(value) {
            Some(place) => place,
            None => {
                let node = graph.arena.node(graph.arena.producer(value));
                let own = &self.storage.sigs[node.sig];
                let (field, _) = own.results[value.index() - node.results as usize];
                (field, RowId(self.rows.row(value)))
            }
        }
    }
}

/// Adds the outputs of the graph under their names, and the wanted values of the request under their ids. `found` is working
/// memory.
pub(super) fn add_outputs(places: &Places<'_>, found: &mut Vec<(FieldId, RowId)>, plan: &mut Plan) {
    let Context { graph, request, .. } = *places.context;
    let output = |key, (field, row): (FieldId, RowId)| PlanOutput { key, field, row: row.0 };
    let own = graph.outputs.iter();
    plan.outputs.extend(own.map(|own| output(OutputKey::named(&own.name), places.of(own.value))));
    // A minibatch wants thousands of values. A loop of its own finds their places, so that many cache misses are in flight at once.
    found.clear();
    found.extend(request.wanted.iter().map(|&value| places.of(value)));
    let wanted = request.wanted.iter().zip(found.iter());
    plan.outputs.extend(wanted.map(|(&value, &place)| output(OutputKey::Value(value), place)));
}
