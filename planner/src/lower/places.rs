//! Where the values of a plan are.

use crate::grow::ExistingRows;
use crate::ids::RowId;
use crate::order::Rows;
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::FieldId;

/// Finds the field and row of needed values.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) graph: &'a GraphData,
    pub(crate) existing: &'a ExistingRows,
    pub(crate) storage: &'a Storage,
    pub(crate) rows: &'a Rows,
}

impl Places<'_> {
    /// The field and row of a value; of a constant, those of its first copy.
    pub(crate) fn of(&self, value: ValueId) -> (FieldId, RowId) {
        match self.existing.get(value) {
            Some(place) => place,
            None => {
                let node = self.graph.arena.node(self.graph.arena.producer(value));
                let own = &self.storage.sigs[node.sig.index()];
                let (field, _) = own.results[value.index() - node.results as usize];
                (field, RowId(self.rows.rows[self.rows.row_of[value.index()] as usize]))
            }
        }
    }
}
