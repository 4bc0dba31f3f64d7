//! The normal form of a plan's pools: what steps name lies in the order in which they name it.
//!
//! Steps point into pools of operands, places, store arguments, lanes and tables. Where in a pool
//! something lies means nothing, but plans are compared and hashed as data, and text says what a
//! step reads and not where that is kept. So there is one normal form: step by step, its places
//! one after another, then its operands, as text says them; the table of each appended when it is
//! met, for a list its offsets and then its rows, offsets counted from 0; the operands of reductions come
//! last. Planners produce it; a reader of text
//! produces it; [`Plan::normalise`] makes it.

use super::{Operand, Place, Plan, Store, StoreId};
use crate::id::NodeId;
use std::ops::Range;

/// Memory that plans are brought into normal form with, kept by whoever does that often: the lists that the last one had.
#[derive(Clone, Debug, Default)]
pub struct Spare {
    operands: Vec<Operand>,
    places: Vec<Place>,
    store_args: Vec<StoreId>,
    lanes: Vec<NodeId>,
    tables: Vec<u32>,
}

impl Plan {
    /// Brings the pools into normal form. What no step names is dropped; what leaves its pool is
    /// cut off there, so that this is safe on a plan that was not verified.
    pub fn normalise(&mut self) {
        self.normalise_with(&mut Spare::default());
    }

    /// [`normalise`](Self::normalise) into kept memory, which gets that of the plan in turn.
    pub fn normalise_with(&mut self, spare: &mut Spare) {
        let Spare { operands, places, store_args, lanes, tables } = spare;
        emptied(operands, self.operands.capacity());
        emptied(places, self.places.capacity());
        emptied(store_args, self.store_args.capacity());
        emptied(lanes, self.lanes.capacity());
        emptied(tables, self.tables.capacity());
        let mut pools = Pools { tables, old: &self.tables };
        for step in &mut self.steps {
            let old = within(&self.places, &step.places);
            step.places = append(places, old.iter().map(|&old| pools.place(old, step.rows)));
            let old = within(&self.operands, &step.operands);
            step.operands = append(operands, old.iter().map(|&old| pools.operand(old, step.rows)));
            let old = within(&self.store_args, &step.stores);
            step.stores = append(store_args, old.iter().copied());
            step.lanes = append(lanes, within(&self.lanes, &step.lanes).iter().copied());
        }
        for part in self.reductions.iter_mut().flat_map(|sum| &mut sum.parts) {
            part.x = part.x.map(|x| pools.operand(x, part.lanes));
            part.dy = pools.operand(part.dy, part.lanes);
        }
        exchange(&mut self.operands, operands);
        exchange(&mut self.places, places);
        exchange(&mut self.store_args, store_args);
        exchange(&mut self.lanes, lanes);
        exchange(&mut self.tables, tables);
    }
}

/// Exchanges a list for its normal form, and makes the old one ready to take as much.
fn exchange<T>(list: &mut Vec<T>, normal: &mut Vec<T>) {
    std::mem::swap(list, normal);
    emptied(normal, list.capacity());
}

/// Empties a list that will hold about as much as another; each is the other in turn.
fn emptied<T>(list: &mut Vec<T>, room: usize) {
    list.clear();
    list.reserve(room);
}

/// Whether text can name what a plan holds: stores are called as parameters may be, each otherwise,
/// and so are the fields of a slab.
///
/// # Errors
/// What cannot be named.
pub(crate) fn check_names(plan: &Plan) -> Result<(), String> {
    check_store_names(&plan.stores)?;
    let mut names: Vec<_> = plan.fields.iter().map(|field| (field.slab, field.name.as_str())).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{} has two fields called {:?}", pair[0].0, pair[0].1)),
        None => Ok(()),
    }
}

/// Whether text can name stores.
///
/// # Errors
/// The first name that is no word, or that two stores have.
pub(crate) fn check_store_names(stores: &[Store]) -> Result<(), String> {
    if let Some(store) = stores.iter().find(|store| !is_store_name(&store.name)) {
        return Err(format!("{:?} is no name of a store", store.name));
    }
    let mut names: Vec<&str> = stores.iter().map(|store| store.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two stores are called {}", pair[0])),
        None => Ok(()),
    }
}

fn is_store_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(crate::graph::text::lex::is_name)
}

/// The items that a range names, as far as there are such.
pub(crate) fn within<'a, T>(items: &'a [T], range: &Range<u32>) -> &'a [T] {
    let end = (range.end as usize).min(items.len());
    &items[(range.start as usize).min(end)..end]
}

/// The words of a table from `at` on, as far as there are such.
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
    old: &'a [u32],
}

impl Pools<'_> {
    fn table(&mut self, at: u32, rows: u32) -> u32 {
        append(self.tables, table(self.old, at, rows).iter().copied()).start
    }

    fn operand(&mut self, operand: Operand, rows: u32) -> Operand {
        match operand {
            Operand::Rows { .. } | Operand::Words { .. } | Operand::Floats { .. } => operand,
            Operand::Table { field, at } => Operand::Table { field, at: self.table(at, rows) },
            Operand::WordTable { at } => Operand::WordTable { at: self.table(at, rows) },
            Operand::FloatTable { at } => Operand::FloatTable { at: self.table(at, rows) },
            Operand::Segments { field, offsets, items } => {
                let (old_offsets, old_items) = segments(self.old, offsets, items, rows);
                let first = old_offsets.first().copied().unwrap_or(0);
                let counted = old_offsets.iter().map(|offset| offset.saturating_sub(first));
                let offsets = append(self.tables, counted).start;
                let items = append(self.tables, old_items.iter().copied()).start;
                Operand::Segments { field, offsets, items }
            }
        }
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
