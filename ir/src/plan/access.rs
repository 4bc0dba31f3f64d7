//! The rows and bindings that the lanes of a step read and write.

use super::{FieldId, List, Origin, Place, Plan, StepOperand};
use std::ops::Range;

impl Plan {
    /// The row that a lane reads; `None` if the operand is a list or a binding.
    #[inline]
    #[must_use]
    pub fn operand_row(&self, operand: StepOperand, lane: u32) -> Option<(FieldId, u32)> {
        Some((operand.field()?, operand.address.of_lane(&self.tables, lane)?))
    }

    /// The field and the rows of the list that a lane reads; `None` if the operand is no list.
    #[inline]
    #[must_use]
    pub fn list_rows(&self, operand: StepOperand, lane: u32) -> Option<(FieldId, List<'_>)> {
        Some((operand.field()?, operand.address.list_of_lane(&self.tables, &self.groups, lane)?))
    }

    /// The first bound word that a lane reads; `None` if the operand is no bound word.
    #[inline]
    #[must_use]
    pub fn bound_word(&self, operand: StepOperand, lane: u32) -> Option<u32> {
        if operand.origin == Origin::Words { operand.address.of_lane(&self.tables, lane) } else { None }
    }

    /// The first bound float that a lane reads; `None` if the operand is no bound float.
    #[inline]
    #[must_use]
    pub fn bound_float(&self, operand: StepOperand, lane: u32) -> Option<u32> {
        if operand.origin == Origin::Floats { operand.address.of_lane(&self.tables, lane) } else { None }
    }

    /// The rows that a lane writes: one, or for edges one per value of the lane's list.
    #[inline]
    #[must_use]
    pub fn result_rows(&self, place: Place, lane: u32) -> Range<u32> {
        let entry = |at: u32| self.tables[(at + lane) as usize];
        match place {
            Place::Rows { start, .. } => start + lane..start + lane + 1,
            Place::Table { at, .. } => entry(at)..entry(at) + 1,
            Place::Edges { start, offsets, .. } => start + entry(offsets)..start + entry(offsets + 1),
        }
    }
}
