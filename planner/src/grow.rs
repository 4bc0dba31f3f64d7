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

use crate::error::PlanError;
use crate::existing::ExistingRows;
use crate::planner::Planner;
use crate::request::Request;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{FieldId, Mode, Plan};
use std::ops::Range;

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
        let mut plan = Plan::default();
        self.write(graph, &request, &existing, &mut plan, None)?;
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
        self.write(graph, &request, existing, plan, None)?;
        existing.add(graph, plan, steps);
        Ok(Delta { steps: steps..plan.steps.len(), waves: waves..plan.waves.len() })
    }
}
