//! The layout problem, free of any graph: slabs of rows, and batches whose slots name rows lane by lane.
//!
//! Rows of all slabs have global numbers, slab after slab. Inside a slab, the rows that existed before come first; then each
//! batch takes the next rows for its results, lane after lane. The caller guarantees this, and nothing is checked.

use crate::ids::{BatchId, BlockId, Lane, ProvisionalRow, SlotId};
use crate::index_vec::IndexVec;
use autobatch_ir::plan::SlabId;
use bytemuck::TransparentWrapper;
use std::ops::Range;

/// Why a problem cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutError {
    /// Row numbers and table offsets have 31 bits.
    TooLarge,
}

/// No slot.
const NO_SLOT: SlotId = SlotId(u32::MAX);

/// Whether a batch writes the rows of a slot or reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Each row is written by one lane of one batch.
    Result,
    /// Lanes may read the same row.
    Operand,
}

/// A slot of [`LayoutProblem::add_known`]: the slab of its rows, and the bytes moved per row.
pub(crate) type KnownSlot = (SlabId, u32);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) role: Role,
    /// Bytes moved per row.
    pub(crate) bytes: u32,
    /// First entry in the row pool, which has one entry per lane.
    pub(crate) start: u32,
    pub(crate) slab: SlabId,
    /// Whether two lanes name the same row. Such a slot is a shared row or a table, never a range.
    pub(crate) repeats: bool,
    /// The first operand of the batch that names the same rows (another field of one record), or the slot itself.
    pub(crate) same_as: SlotId,
    /// The batches that wrote the lowest and the highest row. Every other writer of its rows lies between them. Rows that
    /// existed before have the writer [`Writer::NONE`].
    pub(crate) from: [BatchId; 2],
}

impl Slot {
    /// Whether the layout may choose an order for the slot: an operand without repeated rows.
    pub(crate) fn is_plannable(&self) -> bool {
        self.role == Role::Operand && !self.repeats
    }

    /// Whether the slot reads the results of one batch only.
    pub(crate) fn reads_one_batch(&self) -> bool {
        self.from[0] == self.from[1]
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) lanes: u32,
    /// First entry in the concatenated lanes of all batches.
    pub(crate) first_lane: u32,
    pub(crate) first_slot: SlotId,
    pub(crate) end_slot: SlotId,
}

impl Batch {
    /// The entries of the batch in the concatenated lanes of all batches.
    pub(super) fn span(&self) -> Range<usize> {
        self.first_lane as usize..(self.first_lane + self.lanes) as usize
    }
}

/// The lane that writes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) batch: BatchId,
    pub(crate) lane: Lane,
}

impl Writer {
    /// The row existed before.
    const NONE: Writer = Writer { batch: BatchId(u32::MAX), lane: Lane(u32::MAX) };
}

/// The limit of rows, lanes, slots and entries. One bit of their numbers stays free for marks.
pub(crate) const TOO_MANY: u32 = 1 << 31;

/// Slabs of rows, and the batches that write and read them, in execution order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutProblem {
    /// The first row of each slab.
    slab_base: Vec<ProvisionalRow>,
    /// The rows of each slab that existed before.
    before: Vec<u32>,
    pub(crate) rows: u32,
    pub(crate) batches: IndexVec<BatchId, Batch>,
    pub(crate) slots: IndexVec<SlotId, Slot>,
    /// Rows, slot after slot, lane after lane.
    pub(crate) pool: Vec<ProvisionalRow>,
    pub(crate) lanes: u32,
    /// The lane that writes each row.
    writers: IndexVec<ProvisionalRow, Writer>,
    /// The last slot that reads each row, or [`NO_SLOT`].
    pub(crate) last_readers: IndexVec<ProvisionalRow, SlotId>,
    /// The next row of each slab while batches are added.
    next_row: Vec<ProvisionalRow>,
}

impl LayoutProblem {
    /// Starts a new problem in the memory of the last one. `sizes` holds the number of rows of each slab; the first
    /// `before` rows of each exist already, and no batch writes them.
    ///
    /// # Errors
    /// If there are 2^31 rows or more.
    pub(crate) fn restart(&mut self, sizes: &[u32], before: &[u32]) -> Result<(), LayoutError> {
        self.slab_base.clear();
        (self.rows, self.lanes) = (0, 0);
        self.batches.clear();
        self.slots.clear();
        self.pool.clear();
        for &rows in sizes {
            self.slab_base.push(ProvisionalRow(self.rows));
            let total = self.rows.checked_add(rows).filter(|&total| total < TOO_MANY);
            self.rows = total.ok_or(LayoutError::TooLarge)?;
        }
        self.before.clear();
        self.before.extend_from_slice(before);
        // The batches write every other row, so stale entries are never read.
        self.writers.resize(self.rows as usize, Writer::NONE);
        self.last_readers.refill(self.rows as usize, NO_SLOT);
        self.next_row.clone_from(&self.slab_base);
        for (next, &rows) in self.next_row.iter_mut().zip(before) {
            let own = *next..ProvisionalRow(next.0 + rows);
            *next = own.end;
            self.writers[own].fill(Writer::NONE);
        }
        Ok(())
    }

    /// Adds the next batch. Its results take the next rows of their slabs. Returns where its operand columns begin in
    /// [`LayoutProblem::pool`]: the caller writes the provisional rows of every operand there, column after column.
    /// After all columns of all batches are written, the caller calls [`LayoutProblem::settle`].
    ///
    /// Needs: the batches fill the slabs exactly, every operand row is written by an earlier batch or existed before, and all
    /// entries fit a `u32`.
    pub(crate) fn add_known(&mut self, lanes: u32, results: &[KnownSlot], operands: &[KnownSlot]) -> u32 {
        let (batch, first_slot) = (self.batches.next_id(), self.slots.next_id());
        for &(slab, bytes) in results {
            let next = &mut self.next_row[slab.index()];
            let (rows, start) = (next.0..next.0 + lanes, self.pool.len() as u32);
            *next = ProvisionalRow(rows.end);
            let written = &mut self.writers[ProvisionalRow(rows.start)..*next];
            (0..).map(Lane).zip(written).for_each(|(lane, writer)| *writer = Writer { batch, lane });
            self.pool.extend(rows.map(ProvisionalRow));
            self.push_slot(Role::Result, (slab, bytes), start);
        }
        let columns = self.pool.len() as u32;
        for (start, &slot) in (columns..).step_by(lanes.max(1) as usize).zip(operands) {
            self.push_slot(Role::Operand, slot, start);
        }
        self.pool.resize(columns as usize + operands.len() * lanes as usize, ProvisionalRow(0));
        let end_slot = self.slots.next_id();
        self.batches.push(Batch { lanes, first_lane: self.lanes, first_slot, end_slot });
        self.lanes += lanes;
        columns
    }

    fn push_slot(&mut self, role: Role, (slab, bytes): KnownSlot, start: u32) {
        let same_as = self.slots.next_id();
        let from = [Writer::NONE.batch; 2];
        self.slots.push(Slot { role, bytes, start, slab, repeats: false, same_as, from });
    }

    /// Finds equal operand slots, repeated rows, the writers of each slot and the last reader of each row. The columns of all
    /// batches must be written.
    pub(crate) fn settle(&mut self) {
        let Self { batches, slots, pool, last_readers, writers, .. } = self;
        for batch in batches.iter() {
            // Slices of plain numbers compare as memory.
            let rows_from = |start: u32| {
                ProvisionalRow::peel_slice(&pool[start as usize..(start + batch.lanes) as usize])
            };
            for id in (batch.first_slot.0..batch.end_slot.0).map(SlotId) {
                let (before, rest) = slots.split_at_mut(id.index());
                let Some(slot) = rest.first_mut().filter(|slot| slot.role == Role::Operand) else { continue };
                let rows = rows_from(slot.start);
                let same = |other: &&Slot| {
                    other.role == Role::Operand && other.slab == slot.slab && rows_from(other.start) == rows
                };
                // A twin has read all of these rows in this batch. So a batch of many slots seldom needs the search.
                let reader_of = |row: u32| last_readers[ProvisionalRow(row)];
                let read = rows.first().is_some_and(|&row| (batch.first_slot..id).contains(&reader_of(row)));
                let earlier = if read { &before[batch.first_slot.index()..] } else { &[] };
                if let Some(twin) = earlier.iter().find(same) {
                    (slot.repeats, slot.same_as) = (twin.repeats, twin.same_as);
                    continue;
                }
                let (mut repeats, mut low, mut high) = (false, u32::MAX, 0);
                for &row in rows {
                    let reader = &mut last_readers[ProvisionalRow(row)];
                    repeats |= std::mem::replace(reader, id) == id;
                    (low, high) = (low.min(row), high.max(row));
                }
                slot.repeats = repeats;
                slot.from =
                    [low, high].map(|row| writers.get(ProvisionalRow(row)).unwrap_or(&Writer::NONE).batch);
            }
        }
    }

    /// The first row of a block that the batch that was added last writes.
    pub(crate) fn first_row(&self, block: BlockId) -> ProvisionalRow {
        let slot = self.batches.ids().last().map_or(SlotId(0), |batch| self.block_slot(batch, block));
        self.pool[self.slots[slot].start as usize]
    }

    /// The slot of a block that a batch writes.
    pub(crate) fn block_slot(&self, batch: BatchId, block: BlockId) -> SlotId {
        SlotId(self.batches[batch].first_slot.0 + block.0)
    }

    /// Rows of each slab, in slab order: how many existed before, and the global numbers of all.
    pub(super) fn slabs(&self) -> impl Iterator<Item = (u32, Range<ProvisionalRow>)> + '_ {
        (0..).zip(&self.before).map(|(slab, &before)| (before, self.rows_of(SlabId(slab))))
    }

    /// The rows of a slab.
    pub(crate) fn rows_of(&self, slab: SlabId) -> Range<ProvisionalRow> {
        let base = |index: usize| self.slab_base.get(index).copied().unwrap_or(ProvisionalRow(self.rows));
        base(slab.index())..base(slab.index() + 1)
    }

    /// The slots of a batch: results, then operands.
    pub(crate) fn batch_slots(&self, batch: &Batch) -> &[Slot] {
        &self.slots[batch.first_slot..batch.end_slot]
    }

    /// The result slots of a batch.
    pub(super) fn results(&self, batch: &Batch) -> impl Iterator<Item = &Slot> {
        self.batch_slots(batch).iter().take_while(|slot| slot.role == Role::Result)
    }

    /// The provisional rows of a result. They are consecutive, lane after lane.
    pub(crate) fn result_rows(&self, slot: &Slot, batch: &Batch) -> Range<ProvisionalRow> {
        let first = self.pool[slot.start as usize];
        first..ProvisionalRow(first.0 + batch.lanes)
    }

    /// The first slot of each group of equal operands that the layout may order, with its number.
    pub(super) fn plannable<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> impl DoubleEndedIterator<Item = (SlotId, &'a Slot)> {
        let slots = self.batch_slots(batch).iter().enumerate();
        let slots = slots.map(|(place, slot)| (SlotId(batch.first_slot.0 + place as u32), slot));
        slots.filter(|&(id, slot)| slot.is_plannable() && slot.same_as == id)
    }

    /// The provisional rows of a slot of a batch with `lanes` lanes.
    pub(crate) fn slot_rows(&self, slot: &Slot, lanes: u32) -> &[ProvisionalRow] {
        self.entries_from(slot.start, lanes)
    }

    /// The provisional rows of `lanes` entries from `first` on.
    pub(super) fn entries_from(&self, first: u32, lanes: u32) -> &[ProvisionalRow] {
        &self.pool[first as usize..(first + lanes) as usize]
    }

    /// The lane that writes a provisional row.
    #[inline]
    pub(super) fn writer(&self, row: ProvisionalRow) -> Writer {
        self.writers[row]
    }
}
