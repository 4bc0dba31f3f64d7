//! Rows of a growing plan.

use super::layout_input::LayoutInput;
use super::rows::Rows;
use crate::storage::Storage;

/// Appends the new rows of a growing plan to the existing ones, and maps rows that it reuses to where they are.
pub(super) fn append_to_existing(rows: &mut Rows, input: &LayoutInput, storage: &Storage) {
    let mut reused = input.reused.iter();
    for (slab_id, slab) in storage.slabs.entries() {
        let own = rows.problem.rows_of(slab_id);
        let own = &mut rows.rows[own];
        let (read, new) = own.split_at_mut(input.reused_rows[slab_id.index()] as usize);
        let offset = slab.rows - read.len() as u32;
        read.iter_mut().zip(&mut reused).for_each(|(row, reused)| *row = reused.row);
        new.iter_mut().for_each(|row| *row += offset);
    }
}
