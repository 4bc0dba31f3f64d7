//! Problems whose author vouches for them: rows are numbered batch after batch, and nothing is checked.

use super::{Batch, Problem, Role, SlabId, Slot, SlotId, Writer};
use crate::layout::LayoutError;

/// A slot of [`Problem::add_known`]: the slab of its rows, and the bytes moved per row.
pub(crate) type KnownSlot = (SlabId, u32);

impl Problem {
    /// Forgets everything but its memory and takes slabs of these sizes, for batches that [`Problem::add_known`] adds. Of each
    /// slab so many rows are there `before`: nobody writes them.
    pub(crate) fn restart(&mut self, slabs: &[u32], before: &[u32]) -> Result<(), LayoutError> {
        self.slab_base.clear();
        (self.rows, self.lanes) = (0, 0);
        self.batches.clear();
        self.slots.clear();
        self.pool.clear();
        for &rows in slabs {
            self.add_slab(rows)?;
        }
        // Batches come to name every row, so what a slot of the memory held before is never read.
        self.writers.resize(self.rows as usize, Writer::NOBODY);
        self.written_rows = self.rows - before.iter().sum::<u32>();
        self.seen.clear();
        self.seen.resize(self.rows as usize, u32::MAX);
        self.next_row.clone_from(&self.slab_base);
        for (next, &rows) in self.next_row.iter_mut().zip(before) {
            self.writers[*next as usize..(*next + rows) as usize].fill(Writer::NOBODY);
            *next += rows;
        }
        self.in_order = true;
        Ok(())
    }

    /// Adds the next batch without looking at what its author knows: results take the next rows of their slabs, and there is room
    /// for the global rows of all operands, column after column. Says where the columns begin in [`Problem::pool`];
    /// [`Problem::settle`] follows when those of all batches were written there.
    ///
    /// Needs: the batches of the problem fill its slabs exactly, operands were written earlier, and all entries fit a `u32`.
    pub(crate) fn add_known(&mut self, lanes: u32, results: &[KnownSlot], operands: &[KnownSlot]) -> u32 {
        let batch = self.batches.len() as u32;
        let first_slot = self.slots.len() as u32;
        let from = Slot::FROM_ANYWHERE;
        for &(slab, bytes) in results {
            let next = &mut self.next_row[slab.index()];
            let (rows, start) = (*next..*next + lanes, self.pool.len() as u32);
            *next += lanes;
            let written = &mut self.writers[rows.start as usize..rows.end as usize];
            (0..).zip(written).for_each(|(lane, writer)| *writer = Writer { batch, lane });
            self.pool.extend(rows);
            let same_as = SlotId(self.slots.len() as u32);
            self.slots.push(Slot { role: Role::Result, bytes, start, slab, repeats: false, same_as, from });
        }
        let columns = self.pool.len() as u32;
        for (start, &(slab, bytes)) in (columns..).step_by(lanes.max(1) as usize).zip(operands) {
            let same_as = SlotId(self.slots.len() as u32);
            self.slots.push(Slot { role: Role::Operand, bytes, start, slab, repeats: false, same_as, from });
        }
        self.pool.resize(columns as usize + operands.len() * lanes as usize, 0);
        let end_slot = self.slots.len() as u32;
        self.batches.push(Batch { lanes, first_lane: self.lanes, first_slot, end_slot });
        self.lanes += lanes;
        columns
    }

    /// The first row of a result of the batch that [`Problem::add_known`] added last.
    pub(crate) fn first_row(&self, result: u32) -> u32 {
        let first_slot = self.batches.last().map_or(0, |batch| batch.first_slot);
        self.pool[self.slots[(first_slot + result) as usize].start as usize]
    }

    /// Global rows, slot after slot, lane after lane.
    pub(crate) fn pool(&mut self) -> &mut [u32] {
        &mut self.pool
    }

    /// Finds out which operand slots name the same rows, which name some twice, who wrote what they read, and who reads each row
    /// last, once the columns of all batches are written.
    pub(crate) fn settle(&mut self) {
        let Self { batches, slots, pool, seen, writers, .. } = self;
        for batch in &*batches {
            let rows_from = |start: u32| &pool[start as usize..(start + batch.lanes) as usize];
            for id in batch.first_slot..batch.end_slot {
                let (before, rest) = slots.split_at_mut(id as usize);
                let Some(slot) = rest.first_mut().filter(|slot| slot.role == Role::Operand) else { continue };
                let rows = rows_from(slot.start);
                let same = |other: &&Slot| {
                    other.role == Role::Operand && other.slab == slot.slab && rows_from(other.start) == rows
                };
                match before[batch.first_slot as usize..].iter().find(same) {
                    Some(twin) => (slot.repeats, slot.same_as) = (twin.repeats, twin.same_as),
                    None => {
                        let (mut repeats, mut low, mut high) = (false, u32::MAX, 0);
                        for &row in rows {
                            repeats |= std::mem::replace(&mut seen[row as usize], id) == id;
                            (low, high) = (low.min(row), high.max(row));
                        }
                        slot.repeats = repeats;
                        let writer = |row: u32| writers.get(row as usize).unwrap_or(&Writer::NOBODY);
                        slot.from = [low, high].map(|row| writer(row).batch);
                    }
                }
            }
        }
    }
}
