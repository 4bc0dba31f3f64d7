//! The normal form of a plan's pools: entries lie in the order in which steps name them.
//!
//! Steps point into pools of operands, places, store arguments, lanes and tables. The position of an entry has no meaning, but
//! plans are compared and hashed as data, and text does not spell positions. So there is one normal form. Step by step, the
//! pools hold its places, then its operands. Each appends its table when it is named; a list appends its offsets, counted
//! from 0, and then its rows. The operands of reductions come last; of their tables, equal ones are one. Planners and readers of text produce this form, and
//! [`Plan::normalise`] makes it.

use super::{Address, Group, GroupRange, Place, Plan, StepOperand, StoreId};
use crate::id::NodeId;
use std::ops::Range;

/// Working memory of normalisation: the lists of the plan before, reused for the next one.
#[derive(Clone, Debug, Default)]
pub struct Spare {
    operands: Vec<StepOperand>,
    groups: Vec<Group>,
    places: Vec<Place>,
    store_args: Vec<StoreId>,
    lanes: Vec<NodeId>,
    tables: Vec<u32>,
    of_reductions: ReductionTables,
}

impl Plan {
    /// Brings the pools into normal form and drops entries that no step names. A range that leaves its pool is cut, so this is
    /// safe for a plan that was not verified.
    pub fn normalise(&mut self) {
        self.normalise_with(&mut Spare::default());
    }

    /// [`normalise`](Self::normalise) with working memory, which gets the memory of the plan in exchange.
    pub fn normalise_with(&mut self, spare: &mut Spare) {
        let Spare { operands, groups, places, store_args, lanes, tables, of_reductions } = spare;
        emptied(operands, self.operands.capacity());
        emptied(groups, self.groups.capacity());
        emptied(places, self.places.capacity());
        emptied(store_args, self.store_args.capacity());
        emptied(lanes, self.lanes.capacity());
        emptied(tables, self.tables.capacity());
        let mut pools = Pools { tables, groups, old: &self.tables, old_groups: &self.groups };
        for step in &mut self.steps {
            let old = within(&self.places, &step.places);
            step.places = append(places, old.iter().map(|&old| pools.place(old, step.rows)));
            let old = within(&self.operands, &step.operands);
            let first = operands.len();
            for &old in old {
                let own = pools.operand(old, step.rows, &operands[first..]);
                operands.push(own);
            }
            step.operands = first as u32..operands.len() as u32;
            let old = within(&self.store_args, &step.stores);
            step.stores = append(store_args, old.iter().copied());
            step.lanes = append(lanes, within(&self.lanes, &step.lanes).iter().copied());
        }
        of_reductions.all.clear();
        for part in self.reductions.iter_mut().flat_map(|sum| &mut sum.parts) {
            part.x = part.x.map(|x| pools.reduced(x, part.lanes, of_reductions));
            part.dy = pools.reduced(part.dy, part.lanes, of_reductions);
        }
        exchange(&mut self.operands, operands);
        exchange(&mut self.groups, groups);
        exchange(&mut self.places, places);
        exchange(&mut self.store_args, store_args);
        exchange(&mut self.lanes, lanes);
        exchange(&mut self.tables, tables);
    }
}

/// Exchanges a list for its normal form, and empties the old list for the next one.
fn exchange<T>(list: &mut Vec<T>, normal: &mut Vec<T>) {
    std::mem::swap(list, normal);
    emptied(normal, list.capacity());
}

/// Empties a list and reserves capacity.
fn emptied<T>(list: &mut Vec<T>, capacity: usize) {
    list.clear();
    list.reserve(capacity);
}

/// The items of a range, as far as they exist.
pub(crate) fn within<'a, T>(items: &'a [T], range: &Range<u32>) -> &'a [T] {
    let end = (range.end as usize).min(items.len());
    &items[(range.start as usize).min(end)..end]
}

/// The words of a table from `at` on, as far as they exist.
pub(crate) fn table(tables: &[u32], at: u32, words: u32) -> &[u32] {
    let end = (at as usize).saturating_add(words as usize).min(tables.len());
    &tables[(at as usize).min(end)..end]
}

/// The offsets and rows of a list operand.
pub(crate) fn segments(tables: &[u32], offsets: u32, items: u32, rows: u32) -> (&[u32], &[u32]) {
    let offsets = table(tables, offsets, rows.saturating_add(1));
    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
    (offsets, table(tables, items.saturating_add(first), last.saturating_sub(first)))
}

fn append<T>(pool: &mut Vec<T>, items: impl Iterator<Item = T>) -> Range<u32> {
    let start = pool.len() as u32;
    pool.extend(items);
    start..pool.len() as u32
}

struct Pools<'a> {
    tables: &'a mut Vec<u32>,
    groups: &'a mut Vec<Group>,
    old: &'a [u32],
    old_groups: &'a [Group],
}

/// The tables of the reductions so far. Of equal tables there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct ReductionTables {
    all: Vec<ReductionTable>,
}

#[derive(Clone, Copy, Debug)]
struct ReductionTable {
    /// Its place in the pool that is brought into normal form.
    old: u32,
    at: u32,
    rows: u32,
}

/// The number of tables of reductions with which a new one is compared.
const MOST_COMPARED: usize = 64;

impl ReductionTables {
    fn recent(&self, rows: u32) -> impl Iterator<Item = &ReductionTable> {
        self.all.iter().rev().take(MOST_COMPARED).filter(move |known| known.rows == rows)
    }

    /// Gives the place of a table at the end of the tables, or that of an equal one before, and drops the copy then.
    pub(super) fn share(&mut self, tables: &mut Vec<u32>, at: u32, rows: u32) -> u32 {
        self.share_copy(tables, at, at, rows)
    }

    fn share_copy(&mut self, tables: &mut Vec<u32>, old: u32, at: u32, rows: u32) -> u32 {
        let own = table(tables, at, rows);
        let known =
            self.recent(rows).find(|known| table(tables, known.at, rows) == own).map(|known| known.at);
        match known {
            Some(known) => {
                tables.truncate(at as usize);
                known
            }
            None => {
                self.all.push(ReductionTable { old, at, rows });
                at
            }
        }
    }
}

impl Pools<'_> {
    /// An operand of a reduction.
    fn reduced(&mut self, operand: StepOperand, rows: u32, known: &mut ReductionTables) -> StepOperand {
        let Address::Table { at: old } = operand.address else { return self.operand(operand, rows, &[]) };
        // The same table needs no comparison.
        let same = known.recent(rows).find(|known| known.old == old).map(|known| known.at);
        let at = same.unwrap_or_else(|| {
            let at = self.table(old, rows);
            known.share_copy(self.tables, old, at, rows)
        });
        StepOperand { address: Address::Table { at }, ..operand }
    }

    fn table(&mut self, at: u32, rows: u32) -> u32 {
        append(self.tables, table(self.old, at, rows).iter().copied()).start
    }

    /// `earlier` are the operands of the step before this one.
    fn operand(&mut self, operand: StepOperand, rows: u32, earlier: &[StepOperand]) -> StepOperand {
        let address = match operand.address {
            Address::Steps { .. } => operand.address,
            Address::Table { at } => Address::Table { at: self.table(at, rows) },
            Address::Lists { offsets, items } => {
                let (old_offsets, old_items) = segments(self.old, offsets, items, rows);
                let first = old_offsets.first().copied().unwrap_or(0);
                let counted = old_offsets.iter().map(|offset| offset.saturating_sub(first));
                let offsets = append(self.tables, counted).start;
                let items = append(self.tables, old_items.iter().copied()).start;
                Address::Lists { offsets, items }
            }
            Address::Groups { first, count } => {
                let mark = (self.groups.len(), self.tables.len());
                for &group in within(self.old_groups, &(first..first.saturating_add(count))) {
                    let range = match group.range {
                        _ if group.len == 0 => GroupRange::Run { start: 0 },
                        run @ GroupRange::Run { .. } => run,
                        GroupRange::Table { at } => {
                            let own = self.table(at, group.len) as usize;
                            GroupRange::of_last(self.tables, own)
                        }
                    };
                    self.groups.push(Group { range, ..group });
                }
                let earlier = earlier.iter().map(|operand| operand.address);
                Address::of_last_groups(self.groups, self.tables, mark.0, mark.1, earlier)
            }
        };
        StepOperand { address, ..operand }
    }

    fn place(&mut self, place: Place, rows: u32) -> Place {
        match place {
            Place::Rows { .. } => place,
            Place::Table { field, at } => Place::Table { field, at: self.table(at, rows) },
            Place::Edges { field, start, offsets } => {
                let (old_offsets, _) = segments(self.old, offsets, 0, rows);
                let first = old_offsets.first().copied().unwrap_or(0);
                let counted = old_offsets.iter().map(|offset| offset.saturating_sub(first));
                Place::Edges { field, start, offsets: append(self.tables, counted).start }
            }
        }
    }
}
