//! Elementwise stages on a tile, block of rows by block of rows: one instruction after the other, each over the rows
//! of the block.
//!
//! Blocks themselves gain nothing (within 1 % on trees, taggers and perceptrons of hidden 100 and 500): the divisions
//! of `tanh` and `sigmoid` fill the time, not the memory between instructions. But results that only their stage reads
//! need no room in the tile, so tiles are taller and products read their weights less often.

use super::program::{MOST_INPUTS, MapStage, Slot};
use super::tile::{Strip, Tile};
use crate::kernels::elementwise::{Elements, ElementsMut, run};
use std::ptr;

// Every unsafe function of this type needs what `StepContext::execute` needs.
#[allow(clippy::missing_safety_doc, reason = "said once, above")]
impl Tile<'_> {
    pub(super) unsafe fn map(&self, stage: &MapStage) {
        for first in (0..self.lanes.len()).step_by(stage.block_rows) {
            let rows = stage.block_rows.min(self.lanes.len() - first);
            for instr in &stage.instrs {
                let mut inputs = [Elements { base: ptr::null(), stride: 0, single: true }; MOST_INPUTS];
                for (to, slot) in inputs.iter_mut().zip(&instr.inputs[..instr.count]) {
                    let Strip { base, stride } = self.block(slot, first);
                    *to = Elements { base, stride, single: slot.single };
                }
                let Strip { base, stride } = self.block(&instr.output, first);
                let out = ElementsMut { base, stride };
                let (isa, inputs) = (self.step.isa, &inputs[..instr.count]);
                // SAFETY: as for this function; results of instructions overlap no operand.
                unsafe { run(isa, instr.code, instr.dtype, (rows, stage.width), inputs, out) };
            }
        }
    }

    /// The rows of a block that begins with this row of the tile.
    fn block(&self, slot: &Slot, first: usize) -> Strip {
        let Strip { base, stride } = self.register(slot.reg, slot.start);
        let skip = if slot.in_block { 0 } else { first * stride };
        Strip { base: base.wrapping_add(skip), stride }
    }
}
