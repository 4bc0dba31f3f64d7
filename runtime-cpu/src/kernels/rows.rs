//! Where kernels read and write rows: a slice, a distance between rows, and the numbers of the rows.
//!
//! A value of [`Rows`] carries the length of what it points to, so that a safe kernel proves every access once, before its loops. An executor of
//! verified plans makes `Rows` from raw pointers instead, because results and operands may be rows of the same slab, and calls the
//! `_unchecked` forms.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use super::error::{KernelError, reaches};

/// Which rows an operand names: lane `r` of a batch reads row number `numbers(r)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNumbers<'a> {
    /// Rows `first`, `first + step`, `first + 2 * step`, ..; a step of 0 is one row shared by all lanes.
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
            // SAFETY: the caller vouches for the entry.
            RowNumbers::Table(table) => unsafe { *table.get_unchecked(lane) as usize },
        }
    }

    /// The largest row number among `lanes`, `None` if a number overflows; an error if a table is too short. `lanes` is not empty.
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

/// Rows to read, one for each lane of a batch. Row number `i` begins at element `i * stride`; how wide a row is, is said where it is used.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    base: *const f32,
    len: usize,
    stride: usize,
    numbers: RowNumbers<'a>,
    data: PhantomData<&'a [f32]>,
}

// SAFETY: `Rows` only reads, like the `&[f32]` it stands for.
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

    /// Lanes read the rows that `numbers` names. A field that begins inside the row is named by a slice that begins there.
    pub fn new(data: &'a [f32], stride: usize, numbers: RowNumbers<'a>) -> Self {
        Rows { base: data.as_ptr(), len: data.len(), stride, numbers, data: PhantomData }
    }

    /// Rows of memory that other rows of the same allocation may be written to meanwhile.
    ///
    /// # Safety
    /// While a kernel runs on the result, each row that it reads (a lane of that call, as wide as the call says) lies within `base` and
    /// `base + len`, is initialised, and is written by nobody, this kernel included.
    pub unsafe fn from_raw(base: *const f32, len: usize, stride: usize, numbers: RowNumbers<'a>) -> Self {
        Rows { base, len, stride, numbers, data: PhantomData }
    }

    /// Whether every row of `lanes`, `width` wide, lies inside the slice.
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
    /// A table has an entry for the lane. The pointer may be read only where the row lies inside what `self` was made from.
    #[inline(always)]
    pub(super) unsafe fn row(&self, lane: usize) -> *const f32 {
        // SAFETY: the caller vouches for the entry.
        let number = unsafe { self.numbers.of(lane) };
        self.base.wrapping_add(number.wrapping_mul(self.stride))
    }

    /// Floats from row `i` to row `i + 1`.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Floats from the row of a lane to that of the next, if that is the same everywhere.
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

// SAFETY: `RowsMut` stands for a `&mut [f32]`, which may go to another thread.
unsafe impl Send for RowsMut<'_> {}

impl<'a> RowsMut<'a> {
    /// Row `i` begins at `data[i * stride]`.
    pub fn new(data: &'a mut [f32], stride: usize) -> Self {
        RowsMut { base: data.as_mut_ptr(), len: data.len(), stride, data: PhantomData }
    }

    /// Rows of memory whose other rows, or other columns, are used by others meanwhile.
    ///
    /// # Safety
    /// While a kernel runs on the result, the elements that it writes lie within `base` and `base + len`, and nobody else reads or writes
    /// them, the operands of the same kernel included. They are initialised where the kernel starts from them. The same holds for the elements
    /// of [`RowsMut::row_mut`] while its slice lives.
    pub unsafe fn from_raw(base: *mut f32, len: usize, stride: usize) -> Self {
        RowsMut { base, len, stride, data: PhantomData }
    }

    /// The rows from `first` on, borrowed for less long.
    pub fn rows_from(&mut self, first: usize) -> RowsMut<'_> {
        let skip = first.saturating_mul(self.stride).min(self.len);
        RowsMut {
            base: self.base.wrapping_add(skip),
            len: self.len - skip,
            stride: self.stride,
            data: PhantomData,
        }
    }

    /// The first `width` elements of row `row`, if the slice holds them.
    pub fn row_mut(&mut self, row: usize, width: usize) -> Option<&mut [f32]> {
        let start = row.checked_mul(self.stride)?;
        if start.checked_add(width)? > self.len {
            return None;
        }
        // SAFETY: the elements lie within `len` floats from `base`, which `self` stands for and lends out.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base.add(start), width) })
    }

    /// Whether `rows` rows, `width` wide, lie inside the slice and apart from each other.
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

    /// The first element of row `row`, which may be touched only where it lies inside what `self` was made from.
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
