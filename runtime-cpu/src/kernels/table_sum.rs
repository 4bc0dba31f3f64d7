//! The gradient of a table: rows added where indices say.
//!
//! **Bits.** Row `t` of the table is the chain `acc = acc + dy[r]` over the rows `r` whose index is `t`, ascending. Rows of a table do not
//! meet, so this is the sum that a stable sort by index would give, without the sort. Threads take columns, never a part of a sum.

use super::error::{KernelError, reaches, same_size};
use super::isa::Isa;
use super::rows::Rows;
use super::tile::RowSum;
use super::twins::Twin;
use super::wgrad::{Run, check_runs};
use std::ops::Range;

/// Rows to be added to rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableSum<'a> {
    /// Which twin computes; it changes no bit.
    pub isa: Isa,
    /// The width of a row.
    pub columns: usize,
    /// The rows that are added, in the order of the sums.
    pub dy: &'a [Run<'a>],
    /// For each of them, the row of the table.
    pub targets: &'a [u32],
}

/// A table that threads write columns of their own of.
#[derive(Clone, Copy)]
struct Shared(*mut f32);

// SAFETY: threads write distinct columns of a table that this call borrows mutably.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl TableSum<'_> {
    /// Adds all rows to `table`, in so many parts of its columns.
    ///
    /// # Errors
    /// If rows are missing or too narrow, targets are not as many, or one is outside of the table.
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
                // SAFETY: as above; each thread writes columns of its own.
                scope.spawn(move |_| unsafe { self.add(base, columns(part)) });
            }
        });
        Ok(())
    }

    /// # Safety
    /// All rows exist as wide as `columns` says, all targets lie in the table, the machine has the instruction set, and nobody else touches
    /// these columns.
    unsafe fn add(&self, table: Shared, columns: Range<usize>) {
        let row_sum = Twin::of(self.isa).row_sum;
        let mut targets = self.targets.iter();
        for Run { rows, count } in self.dy {
            for (lane, &target) in (0..*count).zip(&mut targets) {
                let sums = table.0.wrapping_add(target as usize * self.columns + columns.start);
                // SAFETY: as for this function.
                unsafe {
                    let from = row_from(rows, lane, columns.start);
                    row_sum(&RowSum { from, stride: 0, rows: 1, columns: columns.len(), sums });
                }
            }
        }
    }
}

/// Adds a row to another: `sums = sums + from`.
///
/// # Safety
/// The machine has `isa`; `from` is readable and `sums` readable and writable for `columns` floats, apart from each other.
pub(crate) unsafe fn add_row_unchecked(isa: Isa, from: *const f32, sums: *mut f32, columns: usize) {
    // SAFETY: the caller vouches for rows and instruction set.
    unsafe { (Twin::of(isa).row_sum)(&RowSum { from, stride: 0, rows: 1, columns, sums }) };
}

/// # Safety
/// The lane exists.
unsafe fn row_from(rows: &Rows<'_>, lane: usize, column: usize) -> *const f32 {
    // SAFETY: as for this function.
    unsafe { rows.row(lane) }.wrapping_add(column)
}
