//! Which row each value has while rows are numbered in batch order.
//!
//! *Needs* batches that were posed, one after the other. *Ensures* that an operand is told the row of
//! its value in the slab that it reads: a constant has one in each of its homes, and every other
//! value has one. *Cost.* A look and a comparison an operand.

use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{AppId, ValueId};
use autobatch_ir::plan::SlabId;
use std::ops::Range;

/// The rows of values in the problem.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// The row of each value; of a constant that in its first home.
    pub(crate) row_of: &'a [u32],
    pub(crate) copies: &'a [Copied],
}

/// A home of constants besides their first. A batch brings the same constants in, in the same order.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    /// The rows in the first home.
    pub(crate) first: Range<u32>,
    /// The row here of the first of them.
    pub(crate) start: u32,
}

impl Rows<'_> {
    /// The row of a value in the slab that has these rows.
    #[inline]
    pub(crate) fn of(&self, value: ValueId, slab: &Range<u32>) -> u32 {
        let row = self.row_of[value.index()];
        // One comparison says that the row is neither below the slab nor above it.
        if row.wrapping_sub(slab.start) < slab.end - slab.start { row } else { self.copy(row, slab) }
    }

    #[cold]
    fn copy(&self, row: u32, slab: &Range<u32>) -> u32 {
        let own = |copied: &&Copied| copied.first.contains(&row) && slab.contains(&copied.start);
        let home = self.copies.iter().find(own);
        let Copied { first, start } = home.expect("a constant has a home in every field that it is read in");
        start + (row - first.start)
    }
}

/// So many lanes are looked at together.
const STRETCH: usize = 64;

/// A batch of applications, and where their results and operands are.
pub(crate) struct Gathered<'a> {
    pub(crate) apps: &'a [AppId],
    /// Per result the row of the first lane's.
    pub(crate) starts: &'a [u32],
    /// The operand places that take values, and the rows of the slabs that they read.
    pub(crate) places: &'a [(usize, Range<u32>)],
}

impl Gathered<'_> {
    /// Writes, column after column, the rows that the lanes read, and notes the rows of what they make.
    ///
    /// Both at once, because on large graphs every look at an application is a cache miss; and a stretch of lanes at a time, so
    /// that many misses are under way together.
    pub(crate) fn gather(
        &self,
        graph: &GraphData,
        (row_of, copies): (&mut [u32], &[Copied]),
        columns: &mut [u32],
    ) {
        let (arena, pool) = (graph.arena.apps(), graph.arena.operand_pool());
        let lanes = self.apps.len();
        let mut operands = [0; STRETCH];
        for (first, apps) in (0..).step_by(STRETCH).zip(self.apps.chunks(STRETCH)) {
            let operands = &mut operands[..apps.len()];
            for (lane, (&app, operands)) in (first as u32..).zip(apps.iter().zip(&mut *operands)) {
                let app = &arena[app.index()];
                *operands = app.operands as usize;
                let results = &mut row_of[app.results as usize..];
                results.iter_mut().zip(self.starts).for_each(|(row, start)| *row = start + lane);
            }
            let rows = Rows { row_of, copies };
            for (column, (place, slab)) in self.places.iter().enumerate() {
                let column = &mut columns[column * lanes + first..][..apps.len()];
                for (row, first_operand) in column.iter_mut().zip(&*operands) {
                    let value = pool[first_operand + place].as_value();
                    *row = rows.of(value.expect("one type of node takes one kind of operand"), slab);
                }
            }
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
