//! The row-order problem, free of any graph: slabs of rows, and batches whose slots name them lane by lane.
//!
//! Contract: everything inside a [`Problem`] is checked when it is added, so planners index without looking. A row is the
//! result of at most one lane. Rows of all slabs are numbered globally, slab after slab; because a slab is one block of
//! that numbering, "consecutive" means the same there as inside the slab.

pub(super) mod known;

use super::LayoutError;
use std::fmt;
use std::ops::Range;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl $name {
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A block of rows of equal type.
    SlabId,
    "s"
);
id!(
    /// A batch: lanes that run as one kernel.
    BatchId,
    "b"
);
id!(
    /// One result or operand of a batch, over all its lanes.
    SlotId,
    "slot"
);

/// Whether a batch writes the slot's rows or reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Written: each row by one lane of one batch.
    Result,
    /// Read.
    Operand,
}

/// A slot as it is added: lane `i` names row `rows[i]` of the slab.
#[derive(Clone, Copy, Debug)]
pub struct SlotSpec<'a> {
    /// Written or read.
    pub role: Role,
    /// Where the rows live.
    pub slab: SlabId,
    /// Bytes moved per row: what reading it through a table costs.
    pub bytes: u32,
    /// One row per lane, in ascending order of the lanes' node ids.
    pub rows: &'a [u32],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) role: Role,
    pub(crate) bytes: u32,
    /// First entry in the row pool; there is one per lane.
    pub(crate) start: u32,
    pub(crate) slab: SlabId,
    /// Some row is named twice: the slot can be a shared row or a table, never a range.
    pub(crate) repeats: bool,
    /// The first slot of the batch with the same role and rows (another field of one record); itself where there is none.
    pub(crate) same_as: SlotId,
    /// The batches that wrote its lowest and its highest row, if rows are numbered in batch order: all others that wrote some of
    /// them lie between these. [`Writer::NOBODY`]'s where that is not known.
    pub(crate) from: [u32; 2],
}

impl Slot {
    /// What [`Slot::from`] says before it is known.
    pub(crate) const FROM_ANYWHERE: [u32; 2] = [Writer::NOBODY.batch; 2];
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) lanes: u32,
    /// First entry in the concatenation of all batches' lanes.
    pub(crate) first_lane: u32,
    pub(crate) first_slot: u32,
    pub(crate) end_slot: u32,
}

/// The lane that writes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) batch: u32,
    pub(crate) lane: u32,
}

impl Writer {
    /// The row comes from outside.
    pub(crate) const NOBODY: Writer = Writer { batch: u32::MAX, lane: u32::MAX };
}

/// Rows, lanes, slots and their entries are fewer, so that one bit of their numbers is free for marks.
pub(crate) const TOO_MANY: u32 = 1 << 31;

/// Slabs of rows and the batches that write and read them, in the order in which they run.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// Where each slab begins in the global numbering.
    slab_base: Vec<u32>,
    rows: u32,
    batches: Vec<Batch>,
    slots: Vec<Slot>,
    /// Global rows, slot after slot, lane after lane.
    pool: Vec<u32>,
    lanes: u32,
    /// Per row the lane that writes it.
    writers: Vec<Writer>,
    /// Rows that some batch writes.
    written_rows: u32,
    /// Per row the last slot that named it; in a problem of [`Problem::add_known`], the last that read it.
    seen: Vec<u32>,
    /// Whether rows are numbered batch after batch, lane after lane, and each is written.
    in_order: bool,
    /// The next row of each slab, while rows are numbered in order.
    next_row: Vec<u32>,
}

impl Problem {
    /// A problem without rows.
    pub fn new() -> Problem {
        Problem::default()
    }

    /// Adds a slab of `rows` rows.
    pub fn add_slab(&mut self, rows: u32) -> Result<SlabId, LayoutError> {
        let total = self.rows.checked_add(rows).filter(|&t| t < TOO_MANY).ok_or(LayoutError::TooLarge)?;
        let id = SlabId(self.slab_base.len() as u32);
        self.slab_base.push(self.rows);
        self.rows = total;
        self.in_order = false;
        Ok(id)
    }

    /// Adds the next batch. On error the problem is as before.
    ///
    /// Fields of one record share row numbers: slots of equal role that name the same rows in the same order are allowed, also
    /// as results, and are planned once with their bytes added.
    pub fn add_batch(&mut self, lanes: u32, slots: &[SlotSpec<'_>]) -> Result<BatchId, LayoutError> {
        self.admit(lanes, slots)?;
        self.in_order = false;
        let id = BatchId(self.batches.len() as u32);
        let first_slot = self.slots.len() as u32;
        self.writers.resize(self.rows as usize, Writer::NOBODY);
        self.seen.resize(self.rows as usize, u32::MAX);
        for spec in slots {
            if let Err(error) = self.push_slot(first_slot, spec) {
                self.withdraw(first_slot as usize);
                return Err(error);
            }
        }
        self.batches.push(Batch {
            lanes,
            first_lane: self.lanes,
            first_slot,
            end_slot: self.slots.len() as u32,
        });
        self.lanes += lanes;
        Ok(id)
    }

    /// Whether rows are numbered in batch order, so that batch order leaves each row where it is.
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Per global row the last slot that reads it, or a number that no slot has, in a problem of [`Problem::add_known`].
    pub(crate) fn last_readers(&self) -> &[u32] {
        &self.seen
    }

    fn admit(&self, lanes: u32, slots: &[SlotSpec<'_>]) -> Result<(), LayoutError> {
        let entries = u64::from(lanes) * slots.len() as u64 + self.pool.len() as u64;
        let lanes_after = u64::from(self.lanes) + u64::from(lanes);
        let slots_after = self.slots.len() as u64 + slots.len() as u64;
        if entries.max(lanes_after).max(slots_after) >= u64::from(TOO_MANY) {
            return Err(LayoutError::TooLarge);
        }
        for (slot, spec) in (0u32..).zip(slots) {
            if spec.slab.index() >= self.slab_base.len() {
                return Err(LayoutError::UnknownSlab { slab: spec.slab, slabs: self.slab_base.len() as u32 });
            }
            if spec.rows.len() as u64 != u64::from(lanes) {
                return Err(LayoutError::LaneCount { slot, found: spec.rows.len() as u32, expected: lanes });
            }
        }
        Ok(())
    }

    fn push_slot(&mut self, first_slot: u32, spec: &SlotSpec<'_>) -> Result<(), LayoutError> {
        let base = self.slab_base[spec.slab.index()];
        let count = self.slab_rows(spec.slab);
        let id = self.slots.len() as u32;
        let start = self.pool.len() as u32;
        let twin = (first_slot..id).find(|&other| {
            let other = &self.slots[other as usize];
            let rows = &self.pool[other.start as usize..][..spec.rows.len()];
            other.role == spec.role
                && other.slab == spec.slab
                && spec.rows.iter().zip(rows).all(|(row, known)| known - base == *row)
        });
        let same_as = SlotId(twin.unwrap_or(id));
        self.slots.push(Slot {
            role: spec.role,
            bytes: spec.bytes,
            start,
            slab: spec.slab,
            repeats: false,
            same_as,
            from: Slot::FROM_ANYWHERE,
        });
        if let Some(twin) = twin {
            let rows = self.slots[twin as usize].start as usize;
            self.pool.extend_from_within(rows..rows + spec.rows.len());
            self.slots[id as usize].repeats = self.slots[twin as usize].repeats;
            return Ok(());
        }
        for (lane, &row) in (0u32..).zip(spec.rows) {
            if row >= count {
                return Err(LayoutError::UnknownRow { slab: spec.slab, row, rows: count });
            }
            let global = base + row;
            if spec.role == Role::Result {
                let writer = &mut self.writers[global as usize];
                if *writer != Writer::NOBODY {
                    return Err(LayoutError::WrittenTwice { slab: spec.slab, row });
                }
                *writer = Writer { batch: self.batches.len() as u32, lane };
                self.written_rows += 1;
            }
            let again = std::mem::replace(&mut self.seen[global as usize], id) == id;
            self.slots[id as usize].repeats |= again;
            self.pool.push(global);
        }
        Ok(())
    }

    /// Takes back the slots from `first_slot` on.
    fn withdraw(&mut self, first_slot: usize) {
        for slot in &self.slots[first_slot..] {
            let start = slot.start as usize;
            let end =
                self.slots.iter().map(|s| s.start as usize).find(|&s| s > start).unwrap_or(self.pool.len());
            for &row in &self.pool[start..end] {
                self.seen[row as usize] = u32::MAX;
                let writer = &mut self.writers[row as usize];
                if slot.role == Role::Result && *writer != Writer::NOBODY {
                    *writer = Writer::NOBODY;
                    self.written_rows -= 1;
                }
            }
        }
        let pool = self.slots.get(first_slot).map_or(self.pool.len(), |s| s.start as usize);
        self.pool.truncate(pool);
        self.slots.truncate(first_slot);
    }

    /// Rows of all slabs.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// How many slabs there are.
    pub fn slabs(&self) -> u32 {
        self.slab_base.len() as u32
    }

    /// Rows of one slab; none of an unknown one.
    pub fn slab_rows(&self, slab: SlabId) -> u32 {
        self.span(slab).len() as u32
    }

    /// The slab's global rows; empty for an unknown slab.
    pub(crate) fn numbers(&self, slab: SlabId) -> Range<u32> {
        let base = |index: usize| self.slab_base.get(index).copied().unwrap_or(self.rows);
        base(slab.index())..base(slab.index() + 1)
    }

    /// The same, to index by.
    pub(crate) fn span(&self, slab: SlabId) -> Range<usize> {
        self.numbers(slab).start as usize..self.numbers(slab).end as usize
    }

    /// How many batches there are.
    pub fn batches(&self) -> u32 {
        self.batches.len() as u32
    }

    /// The batch's slots, in the order in which they were added; none of an unknown batch.
    pub fn slots(&self, batch: BatchId) -> impl Iterator<Item = SlotId> + use<> {
        let slots = |batch: &Batch| batch.first_slot..batch.end_slot;
        let slots = self.batches.get(batch.index()).map_or(0..0, slots);
        slots.map(SlotId)
    }

    /// Whether the slot is written or read; `None` for an unknown slot.
    pub fn role(&self, slot: SlotId) -> Option<Role> {
        self.slots.get(slot.index()).map(|s| s.role)
    }

    /// The slab of the slot's rows; `None` for an unknown slot.
    pub fn slab(&self, slot: SlotId) -> Option<SlabId> {
        self.slots.get(slot.index()).map(|s| s.slab)
    }

    /// How many slots all batches have.
    pub fn slot_count(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn all_batches(&self) -> &[Batch] {
        &self.batches
    }

    pub(crate) fn slot(&self, slot: usize) -> &Slot {
        &self.slots[slot]
    }

    /// The batch's result slots, each record once.
    pub(crate) fn results(&self, batch: &Batch) -> impl Iterator<Item = &Slot> {
        let own = |&(id, slot): &(u32, &Slot)| slot.role == Role::Result && slot.same_as.0 == id;
        (batch.first_slot..batch.end_slot).zip(self.batch_slots(batch)).filter(own).map(|(_, slot)| slot)
    }

    pub(crate) fn batch_slots(&self, batch: &Batch) -> &[Slot] {
        &self.slots[batch.first_slot as usize..batch.end_slot as usize]
    }

    /// The global rows of a slot of a batch with `lanes` lanes.
    pub(crate) fn slot_rows(&self, slot: &Slot, lanes: u32) -> &[u32] {
        self.entries_from(slot.start, lanes)
    }

    /// The global rows of `lanes` entries of slots, from one on.
    pub(crate) fn entries_from(&self, first: u32, lanes: u32) -> &[u32] {
        &self.pool[first as usize..(first + lanes) as usize]
    }

    /// Global rows that no batch writes, ascending.
    pub(crate) fn unwritten(&self) -> impl Iterator<Item = u32> + '_ {
        let any = self.written_rows < self.rows;
        let rows = if any { 0..self.rows } else { 0..0 };
        rows.filter(|&row| self.writer(row) == Writer::NOBODY)
    }

    /// The lane that writes a global row.
    pub(crate) fn writer(&self, row: u32) -> Writer {
        self.writers.get(row as usize).copied().unwrap_or(Writer::NOBODY)
    }

    /// Entries of all slots.
    pub(crate) fn entries(&self) -> usize {
        self.pool.len()
    }

    pub(crate) fn slab_of_row(&self, row: u32) -> SlabId {
        SlabId(self.slab_base.partition_point(|&base| base <= row) as u32 - 1)
    }

    pub(crate) fn all_lanes(&self) -> u32 {
        self.lanes
    }
}
