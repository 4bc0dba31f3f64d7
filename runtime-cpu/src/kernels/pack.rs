//! Weights rearranged for the product kernels.
//!
//! A block of weights `w[k, n]` is kept as blocks of `K_BLOCK` rows, each block as panels: panel `p` holds columns `p * panel ..` of every
//! `k` of the block, one `k` after the other. A product therefore reads memory strictly upwards, all columns of a block before the next
//! block, which is what hardware prefetches best. The columns that the last panel has too many are zero. Weights change with every training
//! step; [`PackedWeights::fill`] overwrites in place and allocates nothing.

use std::fmt;
use std::ops::Range;

use super::error::{KernelError, reaches};
use super::isa::Isa;
use super::memory::Aligned;
use super::rows::Rows;
use super::twins::{K_BLOCK, Twin};

/// Rows of a weight that are packed before the next panel's turn: few enough that their cache lines stay, enough to write runs of memory.
/// (Of a transposed weight, a block of `K_BLOCK`: there memory runs along `k`.)
const ROWS_AT_ONCE: usize = 16;
const _: () = assert!(K_BLOCK.is_multiple_of(ROWS_AT_ONCE), "rows packed at once lie in one block");

/// Rows and columns that are transposed together: four vectors of four lanes, which compilers turn into shuffles.
const SQUARE: usize = 4;

/// A row-major matrix, or its transpose, to pack from.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    data: &'a [f32],
    stride: usize,
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a> Matrix<'a> {
    /// The `rows x columns` block whose row `i` begins at `data[i * stride]`; for a block of columns, let `data` begin at its first.
    pub fn new(data: &'a [f32], stride: usize, rows: usize, columns: usize) -> Self {
        Matrix { data, stride, rows, columns, transposed: false }
    }

    /// The same elements with rows and columns exchanged: what the product with a transposed weight (`dX = dY . W^T`) packs.
    pub fn transposed(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, transposed: !self.transposed, ..self }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// The floats from element `(row, column)` on and the distance to the next row, unless rows lie across memory.
    pub(super) fn row_slice(&self, row: usize, column: usize) -> Option<(&'a [f32], usize)> {
        // Without rows there is no element, and no offset to it.
        let start = (row * self.stride + column).min(self.data.len());
        (!self.transposed).then(|| (&self.data[start..], self.stride))
    }

    /// Copies elements of row `row` from column `first` on; `to` is no longer than what is left of the row.
    pub(super) fn copy_row(&self, row: usize, first: usize, to: &mut [f32]) {
        if to.is_empty() {
            return;
        }
        if self.transposed {
            let column = self.data[first * self.stride + row..].iter().step_by(self.stride.max(1));
            for (to, &x) in to.iter_mut().zip(column) {
                *to = x;
            }
        } else {
            to.copy_from_slice(&self.data[row * self.stride + first..][..to.len()]);
        }
    }

    /// The rows, if they do not lie across memory.
    pub(super) fn as_rows(&self) -> Option<Rows<'a>> {
        (!self.transposed).then(|| Rows::range(self.data, self.stride, 0))
    }

    pub(super) fn check(&self) -> Result<(), KernelError> {
        let (lines, width) =
            if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) };
        if lines == 0 || width == 0 {
            return Ok(());
        }
        let needs = (lines - 1).checked_mul(self.stride).and_then(|start| start.checked_add(width));
        reaches("matrix", needs, self.data.len())
    }
}

/// Weights `w[k, n]` packed for one instruction set.
#[derive(Clone)]
pub struct PackedWeights {
    isa: Isa,
    panel: usize,
    k: usize,
    n: usize,
    buffer: Aligned,
}

impl PackedWeights {
    /// Zero weights of `k` rows and `n` columns, to be filled block by block.
    pub fn zeroed(isa: Isa, k: usize, n: usize) -> Result<Self, KernelError> {
        let panel = Twin::of(isa.required()?).panel;
        let buffer = n
            .checked_next_multiple_of(panel)
            .and_then(|columns| columns.checked_mul(k))
            .and_then(Aligned::zeroed)
            .ok_or(KernelError::Memory { k, n })?;
        Ok(PackedWeights { isa, panel, k, n, buffer })
    }

    /// The whole of `weights`, packed.
    pub fn pack(isa: Isa, weights: Matrix<'_>) -> Result<Self, KernelError> {
        weights.check()?;
        let mut packed = Self::zeroed(isa, weights.rows, weights.columns)?;
        packed.fill(0, 0, weights)?;
        Ok(packed)
    }

    /// The same memory for other weights of `k` rows and `n` columns, which must be filled as a whole: what it holds means nothing.
    pub(super) fn refit(&mut self, isa: Isa, k: usize, n: usize) -> Result<(), KernelError> {
        let panel = Twin::of(isa).panel;
        n.checked_next_multiple_of(panel)
            .and_then(|columns| columns.checked_mul(k))
            .and_then(|floats| self.buffer.fit(floats))
            .ok_or(KernelError::Memory { k, n })?;
        *self = PackedWeights { isa, panel, k, n, buffer: std::mem::take(&mut self.buffer) };
        Ok(())
    }

    /// The instruction set that the panels are shaped for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Rows of the weights: the length of the product's chain.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the weights: the width of the product.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Columns of a panel: a product over some of the columns is cut at multiples of this.
    pub fn panel(&self) -> usize {
        self.panel
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        std::mem::size_of_val(self.buffer.floats())
    }

    /// Overwrites the block whose first element is `(first_k, first_n)` with `block`.
    pub fn fill(&mut self, first_k: usize, first_n: usize, block: Matrix<'_>) -> Result<(), KernelError> {
        block.check()?;
        self.check_block(first_k, first_n, block.rows, block.columns)?;
        if block.rows == 0 || block.columns == 0 {
            return Ok(());
        }
        let panel = self.panel;
        let at_once = if block.transposed { K_BLOCK } else { ROWS_AT_ONCE };
        let mut next = 0;
        while next < block.rows {
            let k = first_k + next;
            let rows = next..block.rows.min(next + at_once - k % at_once);
            next = rows.end;
            let mut column = 0;
            while column < block.columns {
                let (index, lane) = ((first_n + column) / panel, (first_n + column) % panel);
                let columns = column..block.columns.min(column + panel - lane);
                column = columns.end;
                let start = self.position(index, k);
                let to = &mut self.buffer.floats_mut()[start..][..rows.len() * panel];
                if block.transposed {
                    transpose_block(&block, rows.clone(), columns, to, panel, lane);
                } else {
                    copy_block(&block, rows.clone(), columns, to, panel, lane);
                }
            }
        }
        Ok(())
    }

    /// Overwrites `rows` rows from `first_k` on, in all columns, with what `widen` writes: it is called once for each row, in order, with the
    /// row's number (from 0) and a buffer of `n` floats. This is how weights kept in half precision are packed.
    pub fn fill_rows_with(
        &mut self,
        first_k: usize,
        rows: usize,
        mut widen: impl FnMut(usize, &mut [f32]),
    ) -> Result<(), KernelError> {
        self.check_block(first_k, 0, rows, self.n)?;
        let n = self.n;
        let mut buffer = Aligned::zeroed(n * ROWS_AT_ONCE.min(rows))
            .ok_or(KernelError::Memory { k: ROWS_AT_ONCE.min(rows), n })?;
        for first in (0..rows).step_by(ROWS_AT_ONCE) {
            let count = ROWS_AT_ONCE.min(rows - first);
            for i in 0..count {
                widen(first + i, &mut buffer.floats_mut()[i * n..][..n]);
            }
            self.fill(first_k + first, 0, Matrix::new(buffer.floats(), n, count, n))?;
        }
        Ok(())
    }

    /// Row `k` of panel `index`; the rows up to the next multiple of `K_BLOCK` follow.
    pub(super) fn row(&self, index: usize, k: usize) -> *const f32 {
        self.buffer.floats().as_ptr().wrapping_add(self.position(index, k))
    }

    /// Floats from a panel to its neighbour in the block that holds row `k`.
    pub(super) fn panel_len(&self, k: usize) -> usize {
        self.panel * K_BLOCK.min(self.k - (k / K_BLOCK * K_BLOCK).min(self.k))
    }

    fn position(&self, index: usize, k: usize) -> usize {
        let block = k / K_BLOCK * K_BLOCK;
        block * self.n.next_multiple_of(self.panel) + index * self.panel_len(k) + (k - block) * self.panel
    }

    fn check_block(
        &self,
        first_k: usize,
        first_n: usize,
        rows: usize,
        columns: usize,
    ) -> Result<(), KernelError> {
        reaches("rows of the packed weights", first_k.checked_add(rows), self.k)?;
        reaches("columns of the packed weights", first_n.checked_add(columns), self.n)
    }
}

impl fmt::Debug for PackedWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedWeights({} x {}, {})", self.k, self.n, self.isa)
    }
}

/// Writes `rows x columns` of `block` to `to`, whose rows are `panel` wide, from lane `lane` on.
fn copy_block(
    block: &Matrix<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
    panel: usize,
    lane: usize,
) {
    for (k, to) in rows.zip(to.chunks_exact_mut(panel)) {
        let from = &block.data[k * block.stride + columns.start..][..columns.len()];
        // A copy whose length the compiler knows is some moves; of any other length, a call.
        match <(&mut [f32; 32], &[f32; 32])>::try_from_pair(to, from) {
            Some((to, from)) => *to = *from,
            None => to[lane..lane + columns.len()].copy_from_slice(from),
        }
    }
}

/// As [`copy_block`], for a block that lies transposed in memory: row `k` of the block is a column there.
fn transpose_block(
    block: &Matrix<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
    panel: usize,
    lane: usize,
) {
    let line = |column: usize| &block.data[column * block.stride + rows.start..][..rows.len()];
    let mut column = columns.start;
    while column + SQUARE <= columns.end {
        let lines: [&[f32]; SQUARE] = std::array::from_fn(|j| line(column + j));
        let to = &mut to[lane + column - columns.start..];
        let squares = rows.len() / SQUARE;
        for square in 0..squares {
            let k = square * SQUARE;
            let from: [[f32; SQUARE]; SQUARE] =
                lines.map(|line| std::array::from_fn(|i| line[k..k + SQUARE][i]));
            for i in 0..SQUARE {
                let row: [f32; SQUARE] = std::array::from_fn(|j| from[j][i]);
                to[(k + i) * panel..][..SQUARE].copy_from_slice(&row);
            }
        }
        for k in squares * SQUARE..rows.len() {
            for (j, line) in lines.iter().enumerate() {
                to[k * panel + j] = line[k];
            }
        }
        column += SQUARE;
    }
    for column in column..columns.end {
        let to = &mut to[lane + column - columns.start..];
        for (to, &x) in to.iter_mut().step_by(panel).zip(line(column)) {
            *to = x;
        }
    }
}

/// Two slices seen as arrays of one length.
trait FromPair<'a>: Sized {
    fn try_from_pair(to: &'a mut [f32], from: &'a [f32]) -> Option<Self>;
}

impl<'a, const N: usize> FromPair<'a> for (&'a mut [f32; N], &'a [f32; N]) {
    fn try_from_pair(to: &'a mut [f32], from: &'a [f32]) -> Option<Self> {
        Some((to.try_into().ok()?, from.try_into().ok()?))
    }
}
