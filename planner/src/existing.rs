//! The rows that a growing plan already has.

use crate::ids::RowId;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{FieldId, Place, Plan};
use std::sync::atomic::{AtomicU64, Ordering};

const NONE: u32 = u32::MAX;

/// The rows of values that a growing plan has.
#[derive(Debug, Default)]
pub(crate) struct ExistingRows {
    /// Per value of the earlier graph its field and row; field [`NONE`] if it has none.
    places: Vec<(FieldId, u32)>,
    /// Per value of the earlier graph whether it is a list all of whose items have rows. A step reads it, or a list that grew from it.
    lists: Vec<bool>,
    /// The number of the growing plan; 0 for plans that do not grow.
    plan: u64,
}

/// A copy grows on its own.
impl Clone for ExistingRows {
    fn clone(&self) -> Self {
        Self { places: self.places.clone(), lists: self.lists.clone(), ..Self::growing() }
    }
}

impl ExistingRows {
    /// The rows of a new growing plan: none.
    pub(crate) fn growing() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { plan: NEXT.fetch_add(1, Ordering::Relaxed), ..Self::default() }
    }

    /// The number of the growing plan; `None` for plans that do not grow.
    pub(crate) fn plan(&self) -> Option<u64> {
        (self.plan != 0).then_some(self.plan)
    }

    /// Whether the results of a node have rows; `first_result` is its first value.
    #[inline]
    pub(crate) fn has(&self, first_result: u32) -> bool {
        self.places.get(first_result as usize).is_some_and(|place| place.0 != FieldId(NONE))
    }

    pub(crate) fn get(&self, value: ValueId) -> Option<(FieldId, RowId)> {
        let place = self.places.get(value.index()).copied().filter(|place| place.0 != FieldId(NONE))?;
        Some((place.0, RowId(place.1)))
    }

    /// Whether a value is a list that the plan reads, so that all its items have rows.
    #[inline]
    pub(crate) fn has_list(&self, value: ValueId) -> bool {
        self.lists.get(value.index()).is_some_and(|&is_read| is_read)
    }

    /// Notes that a list is read, with the lists that it grew from.
    fn add_list(&mut self, graph: &GraphData, mut list: ValueId) {
        while !self.has_list(list) {
            if self.lists.len() <= list.index() {
                self.lists.resize(list.index() + 1, false);
            }
            self.lists[list.index()] = true;
            match graph.arena.appended(graph.arena.producer(list), &graph.sigs) {
                Some((from, _)) => list = from,
                None => return,
            }
        }
    }

    fn set(&mut self, value: ValueId, place: (FieldId, u32)) {
        if self.places.len() <= value.index() {
            self.places.resize(value.index() + 1, (FieldId(NONE), 0));
        }
        self.places[value.index()] = place;
    }

    /// Adds the rows of a plan's steps from `first_step` on.
    pub(crate) fn add(&mut self, graph: &GraphData, plan: &Plan, first_step: usize) {
        for step in &plan.steps[first_step..] {
            for (lane, &node) in plan.lanes(step).iter().enumerate() {
                for (value, &place) in graph.arena.results(node).zip(plan.places(step)) {
                    let row = match place {
                        Place::Rows { start, .. } => start + lane as u32,
                        Place::Table { at, .. } => plan.tables[at as usize + lane],
                        Place::Edges { .. } => unreachable!("forward steps write rows"),
                    };
                    self.set(ValueId::new(value), (place.field(), row));
                }
                for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                    if graph.arena.is_list(value, &graph.sigs) {
                        self.add_list(graph, value);
                    }
                }
            }
        }
    }
}
