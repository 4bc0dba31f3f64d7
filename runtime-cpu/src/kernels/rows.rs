//! Row operands and results of kernels: a slice, a distance between rows, and the numbers of the rows.
//!
//! A safe kernel checks the length of the slice of [`Rows`] once, before its loops. The executor makes `Rows` from raw
//! pointers, because results and operands may be rows of one slab, and calls the `_unchecked` functions.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use super::error::{KernelError, reaches};

/// The row number that each lane of a batch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNumbers<'a> {
    /// Rows `first`, `first + step`, `first + 2 * step`, ..; with a step of 0 all lanes share one row.
    Stepped {
        /// Row of lane 0.
        first: usize,
        /// Distance between the rows of neighbouring lanes.
        step: usize,
    },
    /// Row `table[r]` for lane `r`; numbers may repeat.
    Table(&'a [u32]),
}

impl RowNumbers<'_> {
    /// The row number of lane `lane`.
    ///
    /// # Safety
    /// A table has an entry for the lane.
    #[inline(always)]
    unsafe fn of(&self, lane: usize) -> usize {
        match *self {
            RowNumbers::Stepped { first, step } => first.wrapping_add(step.wrapping_mul(lane)),
            // SAFETY: the caller guarantees the entry.
            RowNumbers::Table(table) => unsafe { *table.get_unchecked(lane) as usize },
        }
    }

    /// The largest row number of `lanes`, which is not empty; `None` if a number overflows. A short table is an error.
    fn largest(&self, what: &'static str, lanes: &Range<usize>) -> Result<Option<usize>, KernelError> {
        match *self {
            RowNumbers::Stepped { first, step } => {
                Ok(step.checked_mul(lanes.end - 1).and_then(|distance| first.checked_add(distance)))
            }
            RowNumbers::Table(table) => match table.get(lanes.clone()) {
                Some(entries) => Ok(entries.iter().max().map(|&row| row as usize)),
                None => Err(KernelError::Reach { what, needs: lanes.end, has: table.len() }),
            },
        }
    }
}

/// Rows to read, one per lane of a batch. Row number `i` begins at element `i * stride`; the user knows its width.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    base: *const f32,
    len: usize,
    stride: usize,
    numbers: RowNumbers<'a>,
    data: PhantomData<&'a [f32]>,
}

// SAFETY: `Rows` only reads, like a `&[f32]`.
unsafe impl Send for Rows<'_> {}
// SAFETY: as above.
unsafe impl Sync for Rows<'_> {}

impl<'a> Rows<'a> {
    /// Lane `r` reads row `first + r`.
    pub fn range(data: &'a [f32], stride: usize, first: usize) -> Self {
        Self::new(data, stride, RowNumbers::Stepped { first, step: 1 })
    }

    /// Every lane reads the row at the start of `row`.
    pub fn shared(row: &'a [f32]) -> Self {
        Self::new(row, 0, RowNumbers::Stepped { first: 0, step: 0 })
    }

    /// Lane `r` reads row `table[r]`.
    pub fn table(data: &'a [f32], stride: usize, table: &'a [u32]) -> Self {
        Self::new(data, stride, RowNumbers::Table(table))
    }

    /// Lanes read the rows of `numbers`. For a field inside the row, pass a slice that begins at the field.
    pub fn new(data: &'a [f32], stride: usize, numbers: RowNumbers<'a>) -> Self {
        Rows { base: data.as_ptr(), len: data.len(), stride, numbers, data: PhantomData }
    }

    /// Makes rows of an allocation whose other rows may be written during a kernel.
    ///
    /// # Safety
    /// While a kernel runs on the result, each row that it reads lies within `base` and `base + len`, is initialised,
    /// and is not written by anyone, including this kernel.
    pub unsafe fn from_raw(base: *const f32, len: usize, stride: usize, numbers: RowNumbers<'a>) -> Self {
        Rows { base, len, stride, numbers, data: PhantomData }
    }

    /// Checks that every row of `lanes`, `width` wide, lies inside the slice.
    pub(super) fn check(
        &self,
        what: &'static str,
        lanes: &Range<usize>,
        width: usize,
    ) -> Result<(), KernelError> {
        if lanes.is_empty() {
            return Ok(());
        }
        let needs = self
            .numbers
            .largest(what, lanes)?
            .and_then(|row| row.checked_mul(self.stride))
            .and_then(|start| start.checked_add(width));
        reaches(what, needs, self.len)
    }

    /// The first element of the row of lane `lane`.
    ///
    /// # Safety
    /// A table has an entry for the lane. The pointer is valid only inside the slice of `self`.
    #[inline(always)]
    pub(super) unsafe fn row(&self, lane: usize) -> *const f32 {
        // SAFETY: the caller guarantees the entry.
        let number = unsafe { self.numbers.of(lane) };
        self.base.wrapping_add(number.wrapping_mul(self.stride))
    }

    /// Floats from row `i` to row `i + 1`.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Floats from the row of a lane to the row of the next lane, if it is constant.
    pub(super) fn pitch(&self) -> Option<usize> {
        match self.numbers {
            RowNumbers::Stepped { step, .. } => Some(step.wrapping_mul(self.stride)),
            RowNumbers::Table(_) => None,
        }
    }
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("len", &self.len)
            .field("stride", &self.stride)
            .field("numbers", &self.numbers)
            .finish()
    }
}

/// Rows to write: row `i` begins at element `i * stride`.
pub struct RowsMut<'a> {
    base: *mut f32,
    len: usize,
    stride: usize,
    data: PhantomData<&'a mut [f32]>,
}

// SAFETY: `RowsMut` represents a `&mut [f32]`, which is `Send`.
unsafe impl Send for RowsMut<'_> {}

impl<'a> RowsMut<'a> {
    /// Row `i` begins at `data[i * stride]`.
    pub fn new(data: &'a mut [f32], stride: usize) -> Self {
        RowsMut { base: data.as_mut_ptr(), len: data.len(), stride, data: PhantomData }
    }

    /// Makes rows of an allocation whose other rows or columns may be accessed during a kernel.
    ///
    /// # Safety
    /// While a kernel runs on the result, the elements that it writes lie within `base` and `base + len`, and no one
    /// else accesses them, including the operands of the kernel. They are initialised if the kernel starts from them.
    pub unsafe fn from_raw(base: *mut f32, len: usize, stride: usize) -> Self {
        RowsMut { base, len, stride, data: PhantomData }
    }

    /// Checks that `rows` rows, `width` wide, lie inside the slice without overlap.
    pub(super) fn check(&self, what: &'static str, rows: usize, width: usize) -> Result<(), KernelError> {
        if rows == 0 {
            return Ok(());
        }
        if rows > 1 {
            reaches("distance between result rows", Some(width), self.stride)?;
        }
        let needs = (rows - 1).checked_mul(self.stride).and_then(|start| start.checked_add(width));
        reaches(what, needs, self.len)
    }

    /// The first element of row `row`. The pointer is valid only inside the slice of `self`.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> *mut f32 {
        self.base.wrapping_add(row.wrapping_mul(self.stride))
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }
}

impl fmt::Debug for RowsMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowsMut").field("len", &self.len).field("stride", &self.stride).finish()
    }
}
