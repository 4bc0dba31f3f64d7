//! The gradient of a table: a scatter-add of rows at indices.
//!
//! **Bits.** Row `t` of the table is the chain `acc = acc + dy[r]` over the rows `r` whose index is `t`, ascending: the
//! result of a stable sort by index. Threads split columns, never a sum.

use super::error::{KernelError, reaches, same_size};
use super::isa::Isa;
use super::kernel_set::KernelSet;
use super::runs::{Run, check_runs};
use super::tile::RowSum;
use std::ops::Range;

/// A scatter-add of rows to the rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableSum<'a> {
    /// The instruction set; it does not change the bits.
    pub isa: Isa,
    /// The width of a row.
    pub columns: usize,
    /// The rows to add, in the order of the sums.
    pub dy: &'a [Run<'a>],
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

impl TableSum<'_> {
    /// Adds all rows to `table`. Its columns are split into `parts`, one per thread.
    ///
    /// # Errors
    /// If rows are missing or too narrow, the number of targets differs, or a target is outside of the table.
    pub fn run(&self, table: &mut [f32], parts: usize) -> Result<(), KernelError> {
        self.isa.required()?;
        let count = check_runs("rows of dy", self.dy, self.columns)?;
        same_size("rows of the table to add to", count, self.targets.len())?;
        let most = self.targets.iter().max().map_or(0, |&row| row as usize + 1);
        reaches("the table", most.checked_mul(self.columns), table.len())?;
        let base = Shared(table.as_mut_ptr());
        let columns = |part: usize| self.columns * part / parts..self.columns * (part + 1) / parts;
        if parts <= 1 {
            // SAFETY: rows, targets and the instruction set were checked.
            unsafe { self.add(base, 0..self.columns) };
            return Ok(());
        }
        rayon::scope(|scope| {
            for part in 0..parts {
                // SAFETY: as above; threads write disjoint columns.
                scope.spawn(move |_| unsafe { self.add(base, columns(part)) });
            }
        });
        Ok(())
    }

    /// # Safety
    /// All rows exist and are `columns` wide, all targets lie in the table, the instruction set is available, and no
    /// one else accesses these columns.
    unsafe fn add(&self, table: Shared, columns: Range<usize>) {
        let row_sum = KernelSet::of(self.isa).row_sum;
        let mut targets = self.targets.iter();
        for Run { rows, count } in self.dy {
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
