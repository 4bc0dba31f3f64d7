//! Plans that grow with their graph: executed steps stay, and only new nodes are planned.
//!
//! *Needs* a graph that only grew since the plan was made: nodes were appended, none changed. *Ensures* that the grown plan begins
//! with its earlier steps, bit for bit, and ends with the steps of newly wanted values. Rows keep their numbers, and slabs only
//! get longer. So the result is an ordinary plan of the whole graph, with ordinary verification and proof. Executing it from the
//! first new step on, over the rows of the earlier steps, gives the same bits as executing all of it.
//!
//! *Memory of a runtime.* The runtime holds the slabs of the last run. A [`Delta`] names the new steps and waves. Before the runtime
//! executes them, it extends every slab to the rows that the plan now declares: the fields of a slab grow at their ends, and new
//! slabs come after the old. It appends bindings too: the pools of the grown graph begin with those of the graph before.
//!
//! *Cost.* A growing plan has one field for each type instead of one for each set of results that arrive at one port, because later
//! arrivals are unknown. So `h` and `c` of a cell interleave in one slab, and more operands are gathered than in a plan made at
//! once. Planning is linear in the nodes from the first newly needed one to the last. A node that was emitted long ago and is
//! wanted now therefore costs a visit of all nodes since. The certificate's bound is that of the new steps.

use crate::ids::RowId;
use crate::{PlanError, Planner, Request};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{FieldId, Mode, Place, Plan};
use std::ops::Range;
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
    fn growing() -> Self {
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

    /// Notes that a list is read, and those that it grew from.
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
    fn add(&mut self, graph: &GraphData, plan: &Plan, first_step: usize) {
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

/// A plan that grows with its graph, in [`Mode::Grow`].
#[derive(Clone, Debug)]
pub struct Grown {
    plan: Plan,
    existing: ExistingRows,
}

/// The steps and waves that one growth added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The new steps.
    pub steps: Range<usize>,
    /// The waves that they form. No wave holds both old and new steps.
    pub waves: Range<usize>,
}

impl Grown {
    /// The whole plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The whole plan, which no longer grows.
    #[must_use]
    pub fn into_plan(self) -> Plan {
        self.plan
    }

    /// The field and row of a value, if the plan computes it.
    #[must_use]
    pub fn place(&self, value: ValueId) -> Option<(FieldId, u32)> {
        self.existing.get(value).map(|(field, row)| (field, row.0))
    }
}

impl Planner {
    /// Makes a plan that can [grow](Planner::grow). Its mode is [`Mode::Grow`] in any case.
    ///
    /// # Errors
    /// As [`Planner::plan`]; and [`PlanError::NotTraining`] if the request has gradients.
    pub fn begin(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Grown, PlanError> {
        let request = Request { mode: Mode::Grow, ..request.clone() };
        let mut existing = ExistingRows::growing();
        let plan = self.run(graph, &request, &existing, None, &mut |_| {})?;
        existing.add(graph, &plan, 0);
        Ok(Grown { plan, existing })
    }

    /// Appends the steps of newly wanted values. The outputs are those of this request.
    ///
    /// The graph must extend the graph that the plan began with. The planner does not check this; a plan of another graph fails its
    /// proof.
    ///
    /// # Errors
    /// As [`Planner::begin`]; the plan then stays as it was.
    pub fn grow(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        grown: &mut Grown,
    ) -> Result<Delta, PlanError> {
        let request = Request { mode: Mode::Grow, ..request.clone() };
        let Grown { plan, existing } = grown;
        let (steps, waves) = (plan.steps.len(), plan.waves.len());
        *plan = self.run(graph, &request, existing, Some(plan), &mut |_| {})?;
        existing.add(graph, plan, steps);
        Ok(Delta { steps: steps..plan.steps.len(), waves: waves..plan.waves.len() })
    }
}
