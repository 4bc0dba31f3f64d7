//! Row order: where every row lies in its slab and in which order the lanes of every batch run.
//!
//! An operand whose rows are consecutive and ascending in the order of the lanes is read in place; any other goes through a
//! table. This folder chooses both orders so that few rows are gathered. It knows nothing of graphs: a pass translates batches
//! into a [`Problem`] and reads the [`Layout`] back.
//!
//! * [`batch_order`]: rows in the order of the batches, lanes as they came. The measure of the others.
//! * [`propagated`]: one pass from the last batch to the first lets producers lie in the order in which consumers read.
//!   Linear but for sorting, the default.
//!
//! ```
//! use autobatch_planner::layout::{Access, Problem, Role, SlotSpec, batch_order, propagated};
//! # fn main() -> Result<(), autobatch_planner::layout::LayoutError> {
//! let mut problem = Problem::new();
//! let slab = problem.add_slab(6)?;
//! let slot = |role, rows| SlotSpec { role, slab, bytes: 512, rows };
//! problem.add_batch(4, &[slot(Role::Result, &[0, 1, 2, 3])])?;
//! let node = problem.add_batch(2, &[slot(Role::Result, &[4, 5]), slot(Role::Operand, &[3, 0]), slot(Role::Operand, &[1, 2])])?;
//! // As they came, the left children 3 and 0 descend; propagation lays the leaves out as 3 0 | 1 2.
//! assert_eq!(batch_order(&problem).counts().gathered_operands(), 2);
//! let layout = propagated(&problem);
//! assert_eq!(layout.places(&problem, slab), [1, 2, 3, 0, 4, 5]);
//! let operands: Vec<Access> = problem.slots(node).skip(1).map(|slot| layout.access(slot)).collect();
//! assert_eq!(operands, [Access::Range { start: 0 }, Access::Range { start: 2 }]);
//! # Ok(())
//! # }
//! ```
//!
//! Whatever a planner believes, [`Access`] is measured on the finished orders, and [`check`] proves a layout on its own.

mod check;
mod error;
mod problem;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod random;
mod sequence;
#[cfg(test)]
mod tests;

pub use check::check;
pub use error::LayoutError;
pub(crate) use problem::known::KnownSlot;
pub use problem::{BatchId, Problem, Role, SlabId, SlotId, SlotSpec};
pub(crate) use sequence::{Memory, propagated_with, widest};
pub use sequence::{batch_order, propagated};

use problem::{Batch, Slot};

/// How a slot reaches its rows when the lanes run in their order. Places are counted inside the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Lane `i` is at `start + i`.
    Range {
        /// Place of the first lane's row.
        start: u32,
    },
    /// Lane `i` is at `start + i * step`; the step is neither 0 nor 1, and negative where the rows descend.
    Strided {
        /// Place of the first lane's row.
        start: u32,
        /// Distance from lane to lane.
        step: i64,
    },
    /// Every lane names the row at this place.
    Shared {
        /// The place.
        place: u32,
    },
    /// Lanes need a table of row numbers.
    Gathered,
}

/// Rows by access, summed over slots and lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operand rows read as ranges.
    pub range: u64,
    /// Operand rows read with a positive step.
    pub strided: u64,
    /// Operand rows read with a negative step; plans have no such operand, so these count as gathered.
    pub descending: u64,
    /// Operand rows of slots that name one row for all lanes.
    pub shared: u64,
    /// Operand rows read through a table.
    pub gathered: u64,
    /// Result rows written as ranges.
    pub result_range: u64,
    /// Result rows written through a table.
    pub result_gathered: u64,
    /// Bytes moved through tables.
    pub gathered_bytes: u64,
}

impl Counts {
    /// Operand rows read without a table.
    pub fn direct_operands(&self) -> u64 {
        self.range + self.strided + self.shared
    }

    /// Operand rows that need a table.
    pub fn gathered_operands(&self) -> u64 {
        self.gathered + self.descending
    }

    /// What layouts are compared by: rows through tables, then their bytes.
    fn cost(&self) -> (u64, u64) {
        (self.gathered_operands() + self.result_gathered, self.gathered_bytes)
    }

    fn add(&mut self, slot: &Slot, lanes: u32, access: Access) {
        let rows = u64::from(lanes);
        let (place, needs_table) = match (slot.role, access) {
            (Role::Result, Access::Range { .. }) => (&mut self.result_range, false),
            (Role::Result, _) => (&mut self.result_gathered, true),
            (Role::Operand, Access::Range { .. }) => (&mut self.range, false),
            (Role::Operand, Access::Strided { step: 0.., .. }) => (&mut self.strided, false),
            (Role::Operand, Access::Strided { .. }) => (&mut self.descending, true),
            (Role::Operand, Access::Shared { .. }) => (&mut self.shared, false),
            (Role::Operand, Access::Gathered) => (&mut self.gathered, true),
        };
        *place += rows;
        if needs_table {
            self.gathered_bytes += rows * u64::from(slot.bytes);
        }
    }
}

/// The chosen orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Per global row its place inside its slab.
    places: Vec<u32>,
    /// Per batch, one after the other, the lanes in the order in which they run.
    lanes: Vec<u32>,
    /// Per slot.
    access: Vec<Access>,
    counts: Counts,
}

impl Layout {
    /// Measures what the given orders make of every slot; `access` is memory. The lanes of every batch write their results one
    /// behind the other as they run.
    fn measured(problem: &Problem, places: Vec<u32>, lanes: Vec<u32>, mut access: Vec<Access>) -> Layout {
        access.clear();
        access.reserve(problem.slot_count() as usize);
        let counts = count(problem, &mut access, |batch, slot, rows| {
            let order = telling(slot, lanes_of(&lanes, batch));
            measure(order.iter().map(|&lane| places[rows[lane as usize] as usize]))
        });
        Layout { places, lanes, access, counts }
    }

    /// The place of a row in its slab; `None` for an unknown row.
    pub fn place(&self, problem: &Problem, slab: SlabId, row: u32) -> Option<u32> {
        self.places(problem, slab).get(row as usize).copied()
    }

    /// The places of all rows of a slab; empty for an unknown slab.
    pub fn places(&self, problem: &Problem, slab: SlabId) -> &[u32] {
        self.places.get(problem.span(slab)).unwrap_or(&[])
    }

    /// The lanes of a batch in the order in which they run, as indices into the rows that were added.
    pub fn lanes(&self, problem: &Problem, batch: BatchId) -> &[u32] {
        problem.all_batches().get(batch.index()).map_or(&[], |batch| lanes_of(&self.lanes, batch))
    }

    /// How the slot reaches its rows.
    pub fn access(&self, slot: SlotId) -> Access {
        self.access.get(slot.index()).copied().unwrap_or(Access::Gathered)
    }

    /// Rows by access.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Maximal runs of consecutive ascending rows in the gathered operands: how many pieces block copies would need.
    pub fn gathered_runs(&self, problem: &Problem) -> u64 {
        let mut runs = 0;
        for batch in problem.all_batches() {
            let order = lanes_of(&self.lanes, batch);
            for (index, slot) in (batch.first_slot as usize..).zip(problem.batch_slots(batch)) {
                if slot.role == Role::Operand && self.access[index] == Access::Gathered {
                    let rows = problem.slot_rows(slot, batch.lanes);
                    let place = |lane: &u32| self.places[rows[*lane as usize] as usize];
                    runs += 1 + order.windows(2).filter(|w| place(&w[0]) + 1 != place(&w[1])).count() as u64;
                }
            }
        }
        runs
    }

    /// The places of all rows by their global numbers, each inside its slab; the lanes of all batches, one after the other; and
    /// the access of every slot.
    pub(crate) fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<Access>) {
        (self.places, self.lanes, self.access)
    }

    /// The cheaper of two layouts; the first on a tie.
    fn better(self, other: Layout) -> Layout {
        if other.counts.cost() < self.counts.cost() { other } else { self }
    }
}

fn lanes_of<'a>(lanes: &'a [u32], batch: &Batch) -> &'a [u32] {
    &lanes[batch.first_lane as usize..(batch.first_lane + batch.lanes) as usize]
}

/// What must be looked at to know where all is that the lanes, in their order, name, if results follow each other: of those the
/// first.
fn telling<'a>(slot: &Slot, lanes: &'a [u32]) -> &'a [u32] {
    match slot.role {
        Role::Result => &lanes[..lanes.len().min(1)],
        Role::Operand => lanes,
    }
}

/// Measures every slot, each record once, with `measure`, which is given the batch, the slot and the rows of its lanes.
fn count(
    problem: &Problem,
    access: &mut Vec<Access>,
    measure: impl Fn(&Batch, &Slot, &[u32]) -> Access,
) -> Counts {
    let mut counts = Counts::default();
    for batch in problem.all_batches() {
        for slot in problem.batch_slots(batch) {
            let found = match access.get(slot.same_as.index()) {
                Some(&known) => known,
                None => measure(batch, slot, problem.slot_rows(slot, batch.lanes)),
            };
            counts.add(slot, batch.lanes, found);
            access.push(found);
        }
    }
    counts
}

/// How places are reached that the lanes, in their order, name.
fn measure(places: impl Iterator<Item = u32>) -> Access {
    let mut seen = places.map(i64::from);
    let Some(first) = seen.next() else {
        return Access::Range { start: 0 };
    };
    let start = first as u32;
    let Some(second) = seen.next() else {
        return Access::Range { start };
    };
    let step = second - first;
    let mut last = second;
    for place in seen {
        if place - last != step {
            return Access::Gathered;
        }
        last = place;
    }
    match step {
        0 => Access::Shared { place: start },
        1 => Access::Range { start },
        _ => Access::Strided { start, step },
    }
}
