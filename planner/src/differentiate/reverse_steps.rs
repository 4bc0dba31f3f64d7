//! The steps of the reverse: their live lanes, and rows for their contributions and parts.

use super::edit::{add_slab, grow};
use super::kernel::GradientRows;
use super::signatures::Signatures;
use crate::error::PlanError;
use crate::ids::ReverseId;
use crate::index_vec::IndexVec;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, SigId};
use autobatch_ir::plan::{FieldId, Plan, StepOperand};
use autobatch_ir::types::Type;
use std::ops::Range;
use std::sync::Arc;

/// No step, no field.
const NONE: u32 = u32::MAX;

/// A forward step and its step in reverse.
pub(super) struct ReverseStep {
    /// The forward step.
    pub(super) step: usize,
    pub(super) sig: SigId,
    /// The first row of the parts that reductions take.
    pub(super) parts: u32,
    /// The first row of the registers that the forward step saves.
    pub(super) saved: u32,
    /// Its lanes among those of all steps.
    pub(super) lanes: Range<usize>,
    rows: Range<usize>,
}

/// The rows of a contribution; none if it is pulled.
pub(super) struct Rows {
    pub(super) field: FieldId,
    pub(super) first: u32,
    before: Range<usize>,
}

impl Rows {
    /// Whether no step over the lanes makes them.
    pub(super) fn are_pulled(&self) -> bool {
        self.field == FieldId(NONE)
    }
}

/// All steps of the reverse, descending by forward step. Their memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct ReverseSteps {
    pub(super) all: IndexVec<ReverseId, ReverseStep>,
    /// Per node its step and its lane there.
    at: Vec<(ReverseId, u32)>,
    /// The live lanes of all steps.
    lanes: Vec<u32>,
    /// The rows of all contributions of all steps.
    rows: Vec<Rows>,
    /// Per lane how many edges precede it, for all contributions that are edges.
    before: Vec<u32>,
}

/// The field of the contributions to the gradients of each field of values. Its memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct ContributionFields(Vec<FieldId>);

impl ContributionFields {
    /// Forgets the fields of the plan before.
    pub(super) fn begin(&mut self) {
        self.0.clear();
    }

    pub(super) fn get(&self, field: FieldId) -> Option<FieldId> {
        self.0.get(field.index()).copied().filter(|&found| found != FieldId(NONE))
    }

    pub(super) fn get_or_add(&mut self, plan: &mut Plan, field: FieldId) -> FieldId {
        self.get(field).unwrap_or_else(|| {
            let made = add_slab(plan, &[plan.field(field).ty]);
            self.0.resize(self.0.len().max(field.index() + 1), FieldId(NONE));
            self.0[field.index()] = made;
            made
        })
    }
}

impl ReverseSteps {
    /// Finds the steps with live lanes, last first, and allocates rows for their contributions, parts and saved registers.
    pub(super) fn collect(
        &mut self,
        plan: &mut Plan,
        graph: &GraphData,
        live: &[bool],
        sigs: &mut Signatures,
        fields: &mut ContributionFields,
    ) -> Result<(), PlanError> {
        let Self { all, at, lanes, rows, before } = self;
        all.clear();
        at.clear();
        at.resize(graph.arena.len(), (ReverseId(NONE), 0));
        lanes.clear();
        rows.clear();
        before.clear();
        for number in (0..plan.steps.len()).rev() {
            let step = plan.steps[number].clone();
            let sig = graph.arena.node(plan.lanes(&step)[0]).sig;
            let facts = &mut sigs[sig];
            let Some(derivative) = facts.derivative().map(Arc::clone) else { continue };
            let (back, first_lane, first_row) = (all.next_id(), lanes.len(), rows.len());
            for (lane, node) in (0..).zip(plan.lanes(&step)) {
                if live[node.index()] {
                    at[node.index()] = (back, (lanes.len() - first_lane) as u32);
                    lanes.push(lane);
                }
            }
            let own = &lanes[first_lane..];
            if own.is_empty() {
                continue;
            }
            for of in &derivative.gradients {
                if of.rows == GradientRows::Pulled {
                    let before = before.len()..before.len();
                    rows.push(Rows { field: FieldId(NONE), first: 0, before });
                    continue;
                }
                let operand = plan.operands(&step)[of.operand as usize];
                let first_before = before.len();
                let count = match operand.is_list() && of.rows == GradientRows::Edges {
                    true => edges_before(plan, operand, own, before),
                    false => own.len() as u32,
                };
                let field = operand.field().expect("bindings get no gradients");
                let ty = graph.ty(graph.sigs.get(sig).operands[of.operand as usize]).element();
                // A port where only empty lists arrive names any field. Its contributions have no reader.
                let field = match plan.field(field).ty == ty {
                    true => fields.get_or_add(plan, field),
                    false => add_slab(plan, &[ty]),
                };
                let first = grow(plan, field, count)?;
                rows.push(Rows { field, first, before: first_before..before.len() });
            }
            let count = own.len() as u32;
            let parts = own_rows(plan, &mut facts.parts, &derivative.parts, count)?;
            let saved = own_rows(plan, &mut facts.saved, &derivative.saves, step.rows)?;
            let (lanes, rows) = (first_lane..lanes.len(), first_row..rows.len());
            all.push(ReverseStep { step: number, sig, parts, saved, lanes, rows });
        }
        Ok(())
    }

    /// The step of a live node, and its lane there.
    #[inline]
    pub(super) fn of(&self, node: NodeId) -> Option<(&ReverseStep, u32)> {
        let (back, lane) = self.at[node.index()];
        Some((self.all.get(back)?, lane))
    }

    /// The place of a live node's lane among the live lanes of all steps.
    #[inline]
    pub(super) fn lane_of(&self, node: NodeId) -> Option<usize> {
        let (back, lane) = self.at[node.index()];
        Some(self.all.get(back)?.lanes.start + lane as usize)
    }

    /// The number of live lanes of all steps.
    pub(super) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// The live lanes.
    pub(super) fn lanes(&self, back: &ReverseStep) -> &[u32] {
        &self.lanes[back.lanes.clone()]
    }

    /// The rows of each contribution of a step.
    pub(super) fn rows(&self, back: &ReverseStep) -> &[Rows] {
        &self.rows[back.rows.clone()]
    }

    /// Per lane how many edges precede it; empty for rows that are no edges.
    pub(super) fn before(&self, rows: &Rows) -> &[u32] {
        &self.before[rows.before.clone()]
    }
}

/// Appends per lane how many edges precede it; gives the number of all.
fn edges_before(plan: &Plan, operand: StepOperand, lanes: &[u32], before: &mut Vec<u32>) -> u32 {
    lanes.iter().fold(0, |total, &lane| {
        before.push(total);
        total + plan.list_rows(operand, lane).map_or(0, |(_, list)| list.len() as u32)
    })
}

/// Adds rows to the fields that belong to a signature, and the fields if there are none; gives the first row.
fn own_rows(
    plan: &mut Plan,
    first: &mut Option<FieldId>,
    types: &[Type],
    rows: u32,
) -> Result<u32, PlanError> {
    if types.is_empty() {
        return Ok(0);
    }
    let first = *first.get_or_insert_with(|| add_slab(plan, types));
    grow(plan, first, rows)
}
