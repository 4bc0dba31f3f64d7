//! The layout problem, free of any graph: slabs of rows, and batches whose slots name rows lane by lane.
//!
//! Rows of all slabs have global numbers, slab after slab. Inside a slab, the rows that existed before come first; then each
//! batch takes the next rows for its results, lane after lane. The caller guarantees this, and nothing is checked.

use crate::ids::BlockId;
use autobatch_ir::plan::SlabId;
use std::ops::Range;

/// Why a problem cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutError {
    /// Row numbers and table offsets have 31 bits.
    TooLarge,
}

/// One result or operand of a batch, over all its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(pub(crate) u32);

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
    pub(crate) from: [u32; 2],
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
    pub(crate) first_slot: u32,
    pub(crate) end_slot: u32,
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
    pub(crate) batch: u32,
    pub(crate) lane: u32,
}

impl Writer {
    /// The row existed before.
    const NONE: Writer = Writer { batch: u32::MAX, lane: u32::MAX };
}

/// The limit of rows, lanes, slots and entries. One bit of their numbers stays free for marks.
pub(crate) const TOO_MANY: u32 = 1 << 31;

/// Slabs of rows, and the batches that write and read them, in execution order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutProblem {
    /// The first global row of each slab.
    slab_base: Vec<u32>,
    /// The rows of each slab that existed before.
    before: Vec<u32>,
    pub(crate) rows: u32,
    pub(crate) batches: Vec<Batch>,
    pub(crate) slots: Vec<Slot>,
    /// Global rows, slot after slot, lane after lane.
    pub(crate) pool: Vec<u32>,
    pub(crate) lanes: u32,
    /// The lane that writes each row.
    writers: Vec<Writer>,
    /// The last slot that reads each row, or `u32::MAX`.
    pub(crate) last_readers: Vec<u32>,
    /// The next row of each slab while batches are added.
    next_row: Vec<u32>,
}

impl LayoutProblem {
    /// Starts a new problem in the memory of the last one. `slabs` holds the rows of each slab; the first `before` rows of each
    /// exist already, and no batch writes them.
    ///
    /// # Errors
    /// If there are 2^31 rows or more.
    pub(crate) fn restart(&mut self, slabs: &[u32], before: &[u32]) -> Result<(), LayoutError> {
        self.slab_base.clear();
        (self.rows, self.lanes) = (0, 0);
        self.batches.clear();
        self.slots.clear();
        self.pool.clear();
        for &rows in slabs {
            self.slab_base.push(self.rows);
            let total = self.rows.checked_add(rows).filter(|&total| total < TOO_MANY);
            self.rows = total.ok_or(LayoutError::TooLarge)?;
        }
        self.before.clear();
        self.before.extend_from_slice(before);
        // The batches write every other row, so stale entries are never read.
        self.writers.resize(self.rows as usize, Writer::NONE);
        self.last_readers.clear();
        self.last_readers.resize(self.rows as usize, u32::MAX);
        self.next_row.clone_from(&self.slab_base);
        for (next, &rows) in self.next_row.iter_mut().zip(before) {
            self.writers[*next as usize..(*next + rows) as usize].fill(Writer::NONE);
            *next += rows;
        }
        Ok(())
    }

    /// Adds the next batch. Its results take the next rows of their slabs. Returns where its operand columns begin in
    /// [`LayoutProblem::pool`]: the caller writes the global rows of every operand there, column after column. After all columns of
    /// all batches are written, the caller calls [`LayoutProblem::settle`].
    ///
    /// Needs: the batches fill the slabs exactly, every operand row is written by an earlier batch or existed before, and all
    /// entries fit a `u32`.
    pub(crate) fn add_known(&mut self, lanes: u32, results: &[KnownSlot], operands: &[KnownSlot]) -> u32 {
        let batch = self.batches.len() as u32;
        let first_slot = self.slots.len() as u32;
        for &(slab, bytes) in results {
            let next = &mut self.next_row[slab.index()];
            let (rows, start) = (*next..*next + lanes, self.pool.len() as u32);
            *next += lanes;
            let written = &mut self.writers[rows.start as usize..rows.end as usize];
            (0..).zip(written).for_each(|(lane, writer)| *writer = Writer { batch, lane });
            self.pool.extend(rows);
            self.push_slot(Role::Result, (slab, bytes), start);
        }
        let columns = self.pool.len() as u32;
        for (start, &slot) in (columns..).step_by(lanes.max(1) as usize).zip(operands) {
            self.push_slot(Role::Operand, slot, start);
        }
        self.pool.resize(columns as usize + operands.len() * lanes as usize, 0);
        let end_slot = self.slots.len() as u32;
        self.batches.push(Batch { lanes, first_lane: self.lanes, first_slot, end_slot });
        self.lanes += lanes;
        columns
    }

    fn push_slot(&mut self, role: Role, (slab, bytes): KnownSlot, start: u32) {
        let same_as = SlotId(self.slots.len() as u32);
        let from = [Writer::NONE.batch; 2];
        self.slots.push(Slot { role, bytes, start, slab, repeats: false, same_as, from });
    }

    /// Finds equal operand slots, repeated rows, the writers of each slot and the last reader of each row. The columns of all
    /// batches must be written.
    pub(crate) fn settle(&mut self) {
        let Self { batches, slots, pool, last_readers, writers, .. } = self;
        for batch in &*batches {
            let rows_from = |start: u32| &pool[start as usize..(start + batch.lanes) as usize];
            for id in batch.first_slot..batch.end_slot {
                let (before, rest) = slots.split_at_mut(id as usize);
                let Some(slot) = rest.first_mut().filter(|slot| slot.role == Role::Operand) else { continue };
                let rows = rows_from(slot.start);
                let same = |other: &&Slot| {
                    other.role == Role::Operand && other.slab == slot.slab && rows_from(other.start) == rows
                };
                // A twin has read all of these rows in this batch. So a batch of many slots seldom needs the search.
                let read = rows
                    .first()
                    .is_some_and(|&row| (batch.first_slot..id).contains(&last_readers[row as usize]));
                let earlier = if read { &before[batch.first_slot as usize..] } else { &[] };
                if let Some(twin) = earlier.iter().find(same) {
                    (slot.repeats, slot.same_as) = (twin.repeats, twin.same_as);
                    continue;
                }
                let (mut repeats, mut low, mut high) = (false, u32::MAX, 0);
                for &row in rows {
                    repeats |= std::mem::replace(&mut last_readers[row as usize], id) == id;
                    (low, high) = (low.min(row), high.max(row));
                }
                slot.repeats = repeats;
                slot.from = [low, high].map(|row| writers.get(row as usize).unwrap_or(&Writer::NONE).batch);
            }
        }
    }

    /// The first row of a block that the batch that was added last writes.
    pub(crate) fn first_row(&self, block: BlockId) -> u32 {
        let first_slot = self.batches.last().map_or(0, |batch| batch.first_slot);
        self.pool[self.slots[(first_slot + block.0) as usize].start as usize]
    }

    /// Rows of each slab, in slab order: how many existed before, and the global numbers of all.
    pub(super) fn slabs(&self) -> impl Iterator<Item = (u32, Range<u32>)> + '_ {
        (0..).zip(&self.before).map(|(slab, &before)| (before, self.numbers(SlabId(slab))))
    }

    /// The global rows of a slab.
    pub(crate) fn numbers(&self, slab: SlabId) -> Range<u32> {
        let base = |index: usize| self.slab_base.get(index).copied().unwrap_or(self.rows);
        base(slab.index())..base(slab.index() + 1)
    }

    /// The slots of a batch: results, then operands.
    pub(crate) fn batch_slots(&self, batch: &Batch) -> &[Slot] {
        &self.slots[batch.first_slot as usize..batch.end_slot as usize]
    }

    /// The result slots of a batch.
    pub(super) fn results(&self, batch: &Batch) -> impl Iterator<Item = &Slot> {
        self.batch_slots(batch).iter().take_while(|slot| slot.role == Role::Result)
    }

    /// The global rows of a result. They are consecutive, lane after lane.
    pub(super) fn result_rows(&self, slot: &Slot, batch: &Batch) -> Range<usize> {
        let first = self.pool[slot.start as usize] as usize;
        first..first + batch.lanes as usize
    }

    /// The first slot of each group of equal operands that the layout may order, with its number.
    pub(super) fn plannable<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> impl DoubleEndedIterator<Item = (u32, &'a Slot)> {
        let slots = self.batch_slots(batch).iter().enumerate();
        let slots = slots.map(|(place, slot)| (batch.first_slot + place as u32, slot));
        slots.filter(|&(id, slot)| slot.is_plannable() && slot.same_as.0 == id)
    }

    /// The global rows of a slot of a batch with `lanes` lanes.
    pub(crate) fn slot_rows(&self, slot: &Slot, lanes: u32) -> &[u32] {
        self.entries_from(slot.start, lanes)
    }

    /// The global rows of `lanes` entries from `first` on.
    pub(super) fn entries_from(&self, first: u32, lanes: u32) -> &[u32] {
        &self.pool[first as usize..(first + lanes) as usize]
    }

    /// The lane that writes a global row.
    #[inline]
    pub(super) fn writer(&self, row: u32) -> Writer {
        self.writers[row as usize]
    }
}
