//! Which row each value has while rows are numbered in batch order.
//!
//! *Needs* batches that were posed, one after the other. *Ensures* that an operand is told the row of
//! its value in the slab that it reads: a constant has one in each of its homes, and every other
//! value has one. *Cost.* A look and a comparison an operand.

use crate::layout::Problem;
use crate::storage::{SigStorage, Storage};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{AppId, ValueId};
use autobatch_ir::plan::SlabId;
use std::ops::Range;

/// The rows of values in the problem.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// The row of each value; of a constant that in its first home.
    pub(crate) row_of: &'a [u32],
    /// The rows of constants in homes besides their first, ascending by the first.
    pub(crate) copies: &'a [(u32, u32)],
}

impl Rows<'_> {
    /// The row of a value in the slab that has these rows.
    #[inline]
    pub(crate) fn of(&self, value: ValueId, slab: &Range<usize>) -> u32 {
        let row = self.row_of[value.index()];
        if slab.contains(&(row as usize)) { row } else { self.copy(row, slab) }
    }

    #[cold]
    fn copy(&self, row: u32, slab: &Range<usize>) -> u32 {
        let first = self.copies.partition_point(|copy| copy.0 < row);
        let own = self.copies[first..].iter().take_while(|copy| copy.0 == row).map(|copy| copy.1);
        let mut here = own.filter(|&copy| slab.contains(&(copy as usize)));
        here.next().expect("a constant has a home in every field that it is read in")
    }
}

/// Writes, column after column, the rows that the lanes read at `places`.
pub(crate) fn gather(
    graph: &GraphData,
    apps: &[AppId],
    places: &[usize],
    rows: &Rows<'_>,
    slabs: &[Range<usize>],
    columns: &mut [u32],
) {
    let (arena, pool) = (graph.arena.apps(), graph.arena.operand_pool());
    for (lane, &app) in apps.iter().enumerate() {
        let first = arena[app.index()].operands as usize;
        let mut at = lane;
        for (&place, slab) in places.iter().zip(slabs) {
            let value = pool[first + place].as_value().expect("one type of node takes one kind of operand");
            columns[at] = rows.of(value, slab);
            at += apps.len();
        }
    }
}

/// Notes the rows of the results of the batch that was posed last.
pub(crate) fn number_results(
    graph: &GraphData,
    own: &SigStorage,
    home: u32,
    apps: &[AppId],
    problem: &Problem,
    (row_of, copies): (&mut [u32], &mut Vec<(u32, u32)>),
) {
    let Some(batch) = problem.all_batches().last() else { return };
    let slots = problem.batch_slots(batch);
    if home > 0 {
        let rows = problem.slot_rows(&slots[0], batch.lanes);
        let first = |app: AppId| row_of[graph.arena.app(app).results as usize];
        copies.extend(apps.iter().zip(rows).map(|(&app, &row)| (first(app), row)));
        copies.sort_unstable();
        return;
    }
    for (place, &(_, block)) in own.results.iter().enumerate() {
        let rows = problem.slot_rows(&slots[block as usize], batch.lanes);
        for (&app, &row) in apps.iter().zip(rows) {
            row_of[graph.arena.app(app).results as usize + place] = row;
        }
    }
}

/// Calls `read` for every element of a list that an application reads, with the slab it is read in.
pub(crate) fn for_each_item(
    graph: &GraphData,
    storage: &Storage,
    app: AppId,
    mut read: impl FnMut(ValueId, SlabId),
) {
    let sig = graph.arena.app(app).sig;
    for (place, operand) in graph.arena.operands(app).iter().enumerate() {
        let list = operand.as_value().filter(|&value| graph.arena.is_list(value, &graph.sigs));
        let Some(list) = list else { continue };
        let items = graph.arena.operands(graph.arena.producer(list));
        for item in items.iter().filter_map(|item| item.as_value()) {
            read(item, storage.fields[storage.place_field(sig, place).index()].slab);
        }
    }
}
