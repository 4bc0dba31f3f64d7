//! Rows of a growing plan.

use super::layout_input::LayoutInput;
use super::rows::Rows;
use crate::storage::Storage;
use autobatch_ir::plan::SlabId;

/// Appends the new rows of a growing plan to the existing ones, and maps rows that it reuses to where they are.
pub(super) fn append_to_existing(rows: &mut Rows, input: &LayoutInput, storage: &Storage) {
    let mut reused = input.reused.iter();
    for (number, slab) in storage.slabs.iter().enumerate() {
        let own = rows.problem.numbers(SlabId(number as u32));
        let own = &mut rows.rows[own.start as usize..own.end as usize];
        let (read, new) = own.split_at_mut(input.reused_rows[number] as usize);
        let offset = slab.rows - read.len() as u32;
        read.iter_mut().zip(&mut reused).for_each(|(row, reused)| *row = reused.row);
        new.iter_mut().for_each(|row| *row += offset);
    }
}
