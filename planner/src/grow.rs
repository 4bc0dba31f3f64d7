//! Plans that grow with their graph: what was executed stays where it is, only what is new is planned.
//!
//! *Needs* a graph that only grew since the plan was made: nodes were appended, none changed.
//! *Ensures* that the grown plan begins with the steps that it had, bit for bit, and ends with those
//! of the values that are wanted now and were not there; rows keep their numbers and slabs only get
//! longer. So the whole is an ordinary plan of the whole graph, which verifies and is proved as such,
//! and executing it from the first new step on, over the rows that the earlier steps left, makes
//! the same bits as executing all of it.
//!
//! *How a runtime keeps memory.* It keeps the slabs of the last run. A [`Delta`] says which steps
//! and waves are new. Before they are executed every slab is extended to the rows that the plan now
//! declares: the fields of a slab grow at their ends, and new slabs come after the old. Bound
//! numbers are appended too: the pools of the grown graph begin with those of the graph before.
//!
//! *What it costs.* A field for each type instead of one for each place where results meet, because
//! what meets later is not known: so `h` and `c` of a cell take turns in one slab, and more operands
//! are read through tables than in a plan made at once. Planning is linear in what is new, as far as it
//! is what was emitted last; steps are appended in place. An
//! node that was emitted long ago and is wanted now has all that were emitted since looked at.
//! The bound in the certificate is that of the new steps.

use crate::{PlanError, Planner, Request};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{FieldId, Mode, Place, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const NONE: u32 = u32::MAX;

/// Where values are that were planned before.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Per value of the earlier graph its field and row; the field is [`NONE`] where it has none.
    places: Vec<(FieldId, u32)>,
    /// Which plan it is that grows, by a number of its own; 0 of plans that do not.
    plan: u64,
}

/// A copy grows on its own.
impl Clone for Placed {
    fn clone(&self) -> Self {
        Self { places: self.places.clone(), ..Self::growing() }
    }
}

impl Placed {
    /// Nothing, of a plan that will grow.
    fn growing() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { places: Vec::new(), plan: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// The number of the plan that grows; none of plans that do not.
    pub(crate) fn plan(&self) -> Option<u64> {
        (self.plan != 0).then_some(self.plan)
    }

    /// Whether the results of a node, which begin with this value, are there.
    #[inline]
    pub(crate) fn has(&self, results: u32) -> bool {
        self.places.get(results as usize).is_some_and(|place| place.0 != FieldId(NONE))
    }

    pub(crate) fn get(&self, value: ValueId) -> Option<(FieldId, u32)> {
        self.places.get(value.index()).copied().filter(|place| place.0 != FieldId(NONE))
    }

    pub(crate) fn set(&mut self, value: ValueId, place: (FieldId, u32)) {
        if self.places.len() <= value.index() {
            self.places.resize(value.index() + 1, (FieldId(NONE), 0));
        }
        self.places[value.index()] = place;
    }
}

/// A plan that grows with its graph, in [`Mode::Grow`].
#[derive(Clone, Debug)]
pub struct Grown {
    pub(crate) plan: Plan,
    pub(crate) placed: Placed,
}

/// What growing added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The new steps.
    pub steps: Range<usize>,
    /// The waves that they form: no wave holds old and new steps.
    pub waves: Range<usize>,
}

impl Grown {
    /// The whole plan as it stands.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The whole plan, which grows no more.
    #[must_use]
    pub fn into_plan(self) -> Plan {
        self.plan
    }

    /// The field and row of a value, if the plan makes it.
    #[must_use]
    pub fn place(&self, value: ValueId) -> Option<(FieldId, u32)> {
        self.placed.get(value)
    }
}

impl Planner {
    /// A plan that can [grow](Planner::grow); its mode is [`Mode::Grow`] whatever the request says.
    ///
    /// # Errors
    /// As [`Planner::plan`]; and [`PlanError::NotTraining`] if gradients are wanted.
    pub fn begin(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Grown, PlanError> {
        let request = Request { mode: Mode::Grow, ..request.clone() };
        let mut placed = Placed::growing();
        let plan = self.plan_after(graph, &request, (None, &mut placed))?;
        Ok(Grown { plan, placed })
    }

    /// Appends the steps of what is wanted now and was not there. The outputs are those of this request.
    ///
    /// The graph must be the one that the plan was begun with, longer: that is not checked, and a
    /// plan of another graph fails its proof.
    ///
    /// # Errors
    /// As [`Planner::begin`]; the plan is then as it was.
    pub fn grow(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        grown: &mut Grown,
    ) -> Result<Delta, PlanError> {
        let request = Request { mode: Mode::Grow, ..request.clone() };
        let (steps, waves) = (grown.plan.steps.len(), grown.plan.waves.len());
        let Grown { plan, placed } = grown;
        *plan = self.plan_after(graph, &request, (Some(plan), placed))?;
        Ok(Delta { steps: steps..grown.plan.steps.len(), waves: waves..grown.plan.waves.len() })
    }
}

/// Notes where the new steps of a plan put the values of a graph.
pub(crate) fn note(plan: &Plan, graph: &GraphData, from: usize, placed: &mut Placed) {
    for step in &plan.steps[from..] {
        for (lane, &node) in plan.lanes(step).iter().enumerate() {
            for (value, &place) in graph.arena.results(node).zip(plan.places(step)) {
                let row = match place {
                    Place::Rows { start, .. } => start + lane as u32,
                    Place::Table { at, .. } => plan.tables[at as usize + lane],
                    Place::Edges { .. } => unreachable!("forward steps write rows"),
                };
                placed.set(ValueId::new(value), (place.field(), row));
            }
        }
    }
}
