//! The gradient of a table: a scatter-add of rows at indices.
//!
//! **Bits.** Row `t` of the table is the chain `acc = acc + dy[r]` over the rows `r` whose index is `t`, ascending: the
//! result of a stable sort by index. Threads split columns, never a sum.

use super::error::{KernelError, reaches, same_size};
use super::isa::Isa;
use super::kernel_set::KernelSet;
use super::runs::{RowsRun, check_runs};
use super::tile::RowSum;
use crate::crew::Crew;
use autobatch_ir::numeric::tree;
use std::ops::Range;

/// A scatter-add of rows to the rows of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSum<'a> {
    /// The instruction set; it does not change the bits.
    pub isa: Isa,
    /// The width of a row.
    pub columns: usize,
    /// The rows to add, in the order of the sums.
    pub dy: &'a [RowsRun<'a>],
    /// For each of these rows, its row in the table.
    pub targets: &'a [u32],
}

/// A table shared by threads that write disjoint columns.
#[derive(Clone, Copy)]
struct Shared(*mut f32);

// SAFETY: threads write distinct columns of a table that this call borrows mutably.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// Splits columns into parts, and works on each.
fn in_parts(columns: usize, parts: usize, crew: &mut Crew<'_>, work: impl Fn(Range<usize>) + Sync) {
    let parts = parts.max(1);
    crew.each(parts, true, &|_, part| work(columns * part / parts..columns * (part + 1) / parts));
}

impl TableSum<'_> {
    /// Adds all rows to `table`. Its columns are split into `parts`, which the threads of the crew share.
    ///
    /// # Errors
    /// If rows are missing or too narrow, the number of targets differs, or a target is outside of the table.
    pub(crate) fn run(
        &self,
        table: &mut [f32],
        parts: usize,
        crew: &mut Crew<'_>,
    ) -> Result<(), KernelError> {
        self.isa.required()?;
        let count = check_runs("rows of dy", self.dy, self.columns)?;
        same_size("rows of the table to add to", count, self.targets.len())?;
        let most = self.targets.iter().max().map_or(0, |&row| row as usize + 1);
        reaches("the table", most.checked_mul(self.columns), table.len())?;
        let base = Shared(table.as_mut_ptr());
        // SAFETY: rows, targets and the instruction set were checked; the parts are disjoint columns.
        in_parts(self.columns, parts, crew, |columns| unsafe { self.add(base, columns) });
        Ok(())
    }

    /// # Safety
    /// All rows exist and are `columns` wide, all targets lie in the table, the instruction set is available, and no
    /// one else accesses these columns.
    unsafe fn add(&self, table: Shared, columns: Range<usize>) {
        let row_sum = KernelSet::of(self.isa).row_sum;
        let mut targets = self.targets.iter();
        for RowsRun { rows, count } in self.dy {
            for (lane, &target) in (0..*count).zip(&mut targets) {
                let sums = table.0.wrapping_add(target as usize * self.columns + columns.start);
                let (rows, lanes) = (*rows, lane..lane + 1);
                // SAFETY: as for this function.
                unsafe {
                    row_sum(&RowSum { rows, lanes, first: columns.start, columns: columns.len(), sums })
                };
            }
        }
    }
}

/// A row that is added to a row of a table. Addends are ordered by table row, shard and place in the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableAddend {
    /// The row of the table.
    pub target: u32,
    /// The shard.
    pub shard: u32,
    /// The run of the row, and its lane there.
    pub row: (u32, u32),
}

/// A scatter-add of rows to the rows of a table, with a sum for each shard.
///
/// **Bits.** Each row of the table is the tree of its shards, without shards that add nothing to it. The sum of a shard is a
/// chain as in [`TableSum`]; that of the first shard of a row starts from the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardedTableSum<'a> {
    /// The instruction set; it does not change the bits.
    pub isa: Isa,
    /// The width of a row.
    pub columns: usize,
    /// The number of shards.
    pub shards: usize,
    /// The rows to add.
    pub dy: &'a [RowsRun<'a>],
    /// The additions, ascending.
    pub addends: &'a [TableAddend],
}

impl ShardedTableSum<'_> {
    /// Adds all rows to `table`. Its columns are split into `parts`, which the threads of the crew share.
    ///
    /// # Errors
    /// If rows are missing or too narrow, or an addend names a row, shard or table row that does not exist.
    pub(crate) fn run(
        &self,
        table: &mut [f32],
        parts: usize,
        crew: &mut Crew<'_>,
    ) -> Result<(), KernelError> {
        self.isa.required()?;
        check_runs("rows of dy", self.dy, self.columns)?;
        let most = self.addends.iter().map(|addend| addend.target as usize + 1).max().unwrap_or(0);
        reaches("the table", most.checked_mul(self.columns), table.len())?;
        for TableAddend { shard, row: (run, lane), .. } in self.addends {
            let lanes = self.dy.get(*run as usize).map_or(0, |run| run.count);
            reaches("a run of dy", Some(*lane as usize + 1), lanes)?;
            reaches("the shards", Some(*shard as usize + 1), self.shards)?;
        }
        let base = Shared(table.as_mut_ptr());
        // SAFETY: rows, targets and the instruction set were checked; the parts are disjoint columns.
        in_parts(self.columns, parts, crew, |columns| unsafe { self.add(base, columns) });
        Ok(())
    }

    /// # Safety
    /// All rows exist and are `columns` wide, all targets lie in the table, the instruction set is available, and no
    /// one else accesses these columns.
    unsafe fn add(&self, table: Shared, columns: Range<usize>) {
        let levels = self.shards.next_power_of_two().trailing_zeros() as usize;
        let mut slots = vec![0.0; levels * columns.len()];
        for addends in self.addends.chunk_by(|a, b| a.target == b.target) {
            let row = table.0.wrapping_add(addends[0].target as usize * self.columns + columns.start);
            // SAFETY: as for this function; the row of the table is not borrowed otherwise.
            let row = unsafe { std::slice::from_raw_parts_mut(row, columns.len()) };
            // SAFETY: as for this function.
            unsafe { self.node(0..self.shards, addends, row, &mut slots, columns.start) };
        }
    }

    /// Adds the addends of a node of the tree to `sums`. `slots` hold the sums of nodes to the right.
    ///
    /// # Safety
    /// As for `add`. The addends are those of shards of the node.
    unsafe fn node(
        &self,
        node: Range<usize>,
        addends: &[TableAddend],
        sums: &mut [f32],
        slots: &mut [f32],
        first: usize,
    ) {
        if node.len() == 1 {
            let row_sum = KernelSet::of(self.isa).row_sum;
            for &TableAddend { row: (run, lane), .. } in addends {
                let (rows, lanes) = (self.dy[run as usize].rows, lane as usize..lane as usize + 1);
                let (columns, sums) = (sums.len(), sums.as_mut_ptr());
                // SAFETY: as for this function.
                unsafe { row_sum(&RowSum { rows, lanes, first, columns, sums }) };
            }
            return;
        }
        let middle = tree::middle(&node);
        let (left, right) =
            addends.split_at(addends.partition_point(|addend| (addend.shard as usize) < middle));
        // SAFETY: as for this function.
        unsafe {
            match (left.is_empty(), right.is_empty()) {
                (true, _) => self.node(middle..node.end, right, sums, slots, first),
                (_, true) => self.node(node.start..middle, left, sums, slots, first),
                (false, false) => {
                    self.node(node.start..middle, left, sums, slots, first);
                    let (slot, slots) = slots.split_at_mut(sums.len());
                    slot.fill(0.0);
                    self.node(middle..node.end, right, slot, slots, first);
                    sums.iter_mut().zip(slot).for_each(|(sum, x)| *sum += *x);
                }
            }
        }
    }
}
