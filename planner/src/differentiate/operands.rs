//! The operands of the reverse: lists of contributions, and rows of live lanes.

use super::emitter::Emitter;
use super::kernel::RowSource;
use super::reverse_steps::ReverseStep;
use crate::ids::{PartId, SaveId};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Address, FieldId, Place, Plan, PortRole, StepOperand};

/// Rows that a reduction takes from a step.
#[derive(Clone, Copy)]
pub(super) enum ReducedRows {
    /// One for each lane of the forward step.
    OfAll(StepOperand),
    /// One for each live lane.
    OfLive(StepOperand),
}

impl Emitter<'_> {
    /// The field of a register that forward steps save.
    pub(super) fn saved(&self, back: &ReverseStep, save: SaveId) -> FieldId {
        let first = self.sigs[back.sig].saved.expect("signatures with saved registers have fields for them");
        FieldId(first.0 + save.0)
    }

    /// The field of a part that reductions take.
    pub(super) fn part(&self, back: &ReverseStep, part: PartId) -> FieldId {
        self.part_of(back.sig, part)
    }

    /// The field of a part of a signature that reductions or pulls take.
    pub(super) fn part_of(&self, sig: SigId, part: PartId) -> FieldId {
        let first = self.sigs[sig].parts.expect("signatures with parts have fields for them");
        FieldId(first.0 + part.0)
    }

    /// The operand of a port in reverse: rows of live lanes.
    pub(super) fn operand(&self, plan: &mut Plan, back: &ReverseStep, role: PortRole) -> StepOperand {
        let of_all = self.forward_rows(plan, back, role);
        only_lanes(plan, of_all, self.reverse_steps.lanes(back), plan.steps[back.step].rows)
    }

    /// The rows of a port in reverse, for all lanes of the forward step.
    fn forward_rows(&self, plan: &Plan, back: &ReverseStep, role: PortRole) -> StepOperand {
        let step = &plan.steps[back.step];
        match role {
            PortRole::Operand(place) => plan.operands(step)[place as usize],
            PortRole::Result(result) => match plan.places(step)[result as usize] {
                Place::Rows { field, start } => StepOperand::rows(field, start, 1),
                Place::Table { field, at } => StepOperand::of_field(field, Address::Table { at }),
                Place::Edges { .. } => unreachable!("forward steps write rows"),
            },
            PortRole::Saved(save) => StepOperand::rows(self.saved(back, SaveId(save)), back.saved, 1),
            PortRole::Gradient(_)
            | PortRole::Contributions
            | PortRole::Arriving
            | PortRole::Item(_)
            | PortRole::Readers(_) => unreachable!("the rows belong to the node, not to its readers"),
        }
    }

    /// The rows that a reduction takes from a step, by its lanes.
    pub(super) fn reduced_rows(&self, plan: &Plan, back: &ReverseStep, from: RowSource) -> ReducedRows {
        match from {
            RowSource::Port(role) => ReducedRows::OfAll(self.forward_rows(plan, back, role)),
            RowSource::Part(part) => {
                ReducedRows::OfLive(StepOperand::rows(self.part(back, part), back.parts, 1))
            }
            RowSource::Contribution(id) => {
                let own = &self.reverse_steps.rows(back)[id.index()];
                ReducedRows::OfLive(StepOperand::rows(own.field, own.first, 1))
            }
        }
    }
}

/// Appends lists to the tables; gives the operand that names them.
pub(super) fn segments<'a>(
    tables: &mut Vec<u32>,
    field: FieldId,
    lists: impl ExactSizeIterator<Item = &'a [u32]>,
) -> StepOperand {
    StepOperand::of_field(
        field,
        Address::of_lists(tables, lists, |tables, list| tables.extend_from_slice(list)),
    )
}

/// The operand with a list for each lane, by whose offsets a step writes edges.
pub(super) fn with_offsets(plan: &mut Plan, operand: StepOperand, lanes: u32) -> StepOperand {
    match operand.address {
        Address::Groups { .. } => {
            let all: Vec<u32> = (0..lanes).collect();
            let address = operand.address.of_lanes(&mut plan.tables, &plan.groups, &all);
            StepOperand { address, ..operand }
        }
        _ => operand,
    }
}

/// An operand of some lanes of a step of `rows` rows.
pub(super) fn only_lanes(plan: &mut Plan, operand: StepOperand, lanes: &[u32], rows: u32) -> StepOperand {
    match lanes.len() == rows as usize {
        true => operand,
        false => {
            let address = operand.address.of_lanes(&mut plan.tables, &plan.groups, lanes);
            StepOperand { address, ..operand }
        }
    }
}
