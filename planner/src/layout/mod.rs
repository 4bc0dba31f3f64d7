//! Row layout: the place of every row in its slab, and the order of the lanes in every batch.
//!
//! A step reads an operand directly if its rows are consecutive and ascending in lane order; otherwise it reads them through a
//! table. The layout chooses both orders so that few rows need a table. It knows nothing of graphs: `order` translates batches
//! into a [`Problem`] and reads the [`Layout`] back.
//!
//! [`propagated_with`] makes one pass from the last batch to the first, in which producers take the order of their consumers.
//! Its cost is linear but for sorting. A search with PQ-trees over all batches was removed: it gathered 0 to 9 % fewer rows, took
//! 7 to 12 times as long to plan, and steps did not execute faster (`bench`, inference and training of sst, lattice and chars).
//!
//! The result never depends on what the pass assumed: [`Access`] is measured on the finished orders.

mod problem;
mod propagate;
mod readers;
#[cfg(test)]
mod tests;

pub(crate) use problem::{KnownSlot, Problem, Role};
pub(crate) use propagate::{Memory, propagated_with, widest};

use problem::{Batch, Slot};

/// Why a problem cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutError {
    /// Row numbers and table offsets have 31 bits.
    TooLarge,
}

/// How a slot reaches its rows in lane order. Places count from the start of the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Lane `i` is at `start + i`.
    Range { start: u32 },
    /// Lane `i` is at `start + i * step`. The step is neither 0 nor 1, and negative if the rows descend.
    Strided { start: u32, step: i64 },
    /// Every lane names the row at this place.
    Shared { place: u32 },
    /// Lanes need a table of row numbers.
    Gathered,
}

impl Access {
    /// The access of lanes whose rows are at these places, in lane order.
    fn of(places: impl Iterator<Item = u32>) -> Self {
        let mut places = places.map(i64::from);
        let Some(first) = places.next() else {
            return Access::Range { start: 0 };
        };
        let start = first as u32;
        let Some(second) = places.next() else {
            return Access::Range { start };
        };
        let step = second - first;
        let mut last = second;
        for place in places {
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

    /// Whether a plan reads such rows through a table. A plan has no operands with a negative stride.
    const fn needs_table(self) -> bool {
        matches!(self, Access::Gathered | Access::Strided { step: ..0, .. })
    }
}

/// Operand rows that plans read through tables; layouts compare by rows, then by bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Gathered {
    rows: u64,
    bytes: u64,
}

/// The chosen orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// For each global row its place in its slab.
    places: Vec<u32>,
    /// The lanes of each batch in execution order, batch after batch.
    lanes: Vec<u32>,
    /// The access of each slot.
    access: Vec<Access>,
    gathered: Gathered,
}

impl Layout {
    /// Measures the access of every slot under the given orders, in the memory `access`.
    fn measured(problem: &Problem, places: Vec<u32>, lanes: Vec<u32>, mut access: Vec<Access>) -> Layout {
        let gathered = measure(problem, &mut access, |batch, slot, rows| {
            let order = significant(slot, &lanes[batch.span()]);
            Access::of(order.iter().map(|&lane| places[rows[lane as usize] as usize]))
        });
        Layout { places, lanes, access, gathered }
    }

    /// The places of all rows by global number, the lanes of all batches, and the access of every slot.
    pub(crate) fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<Access>) {
        (self.places, self.lanes, self.access)
    }
}

/// The lanes that decide the access of a slot. Results are consecutive in lane order, so their first lane suffices.
fn significant<'a>(slot: &Slot, lanes: &'a [u32]) -> &'a [u32] {
    match slot.role {
        Role::Result => &lanes[..lanes.len().min(1)],
        Role::Operand => lanes,
    }
}

/// Measures every slot with `access_of`, equal slots once, and sums the rows that need tables.
fn measure(
    problem: &Problem,
    access: &mut Vec<Access>,
    access_of: impl Fn(&Batch, &Slot, &[u32]) -> Access,
) -> Gathered {
    access.clear();
    access.reserve(problem.slot_count() as usize);
    let mut gathered = Gathered::default();
    for batch in problem.all_batches() {
        for slot in problem.batch_slots(batch) {
            let found = match access.get(slot.same_as.0 as usize) {
                Some(&known) => known,
                None => access_of(batch, slot, problem.slot_rows(slot, batch.lanes)),
            };
            if found.needs_table() {
                gathered.rows += u64::from(batch.lanes);
                gathered.bytes += u64::from(batch.lanes) * u64::from(slot.bytes);
            }
            access.push(found);
        }
    }
    gathered
}
