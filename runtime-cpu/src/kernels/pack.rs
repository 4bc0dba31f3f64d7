//! Weights rearranged for the product kernels.
//!
//! A block of weights `w[k, n]` is kept as panels: panel `p` holds columns `p * panel ..` of every `k`, one `k` after the other, so that the
//! inner loop of a product reads memory strictly upwards. The columns that the last panel has too many are zero. Weights change with every
//! training step; [`PackedWeights::fill`] overwrites in place and allocates nothing.

use std::fmt;
use std::ops::Range;

use super::error::{KernelError, reaches};
use super::isa::Isa;
use super::memory::Aligned;
use super::twins::Twin;

/// Rows of a weight that are packed before the next panel's turn: few enough that their cache lines stay, enough to write runs of memory.
const ROWS_AT_ONCE: usize = 16;

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
        Matrix {
            data,
            stride,
            rows,
            columns,
            transposed: false,
        }
    }

    /// The same elements with rows and columns exchanged: what the product with a transposed weight (`dX = dY . W^T`) packs.
    pub fn transposed(self) -> Self {
        Matrix {
            rows: self.columns,
            columns: self.rows,
            transposed: !self.transposed,
            ..self
        }
    }

    fn check(&self) -> Result<(), KernelError> {
        let (lines, width) = if self.transposed {
            (self.columns, self.rows)
        } else {
            (self.rows, self.columns)
        };
        if lines == 0 || width == 0 {
            return Ok(());
        }
        let needs = (lines - 1)
            .checked_mul(self.stride)
            .and_then(|start| start.checked_add(width));
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
        Ok(PackedWeights {
            isa,
            panel,
            k,
            n,
            buffer,
        })
    }

    /// The whole of `weights`, packed.
    pub fn pack(isa: Isa, weights: Matrix<'_>) -> Result<Self, KernelError> {
        weights.check()?;
        let mut packed = Self::zeroed(isa, weights.rows, weights.columns)?;
        packed.fill(0, 0, weights)?;
        Ok(packed)
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
    pub fn fill(
        &mut self,
        first_k: usize,
        first_n: usize,
        block: Matrix<'_>,
    ) -> Result<(), KernelError> {
        block.check()?;
        self.check_block(first_k, first_n, block.rows, block.columns)?;
        if block.rows == 0 || block.columns == 0 {
            return Ok(());
        }
        let (panel, panel_len) = (self.panel, self.panel * self.k);
        for chunk in (0..block.rows).step_by(ROWS_AT_ONCE) {
            let rows = chunk..block.rows.min(chunk + ROWS_AT_ONCE);
            let mut column = 0;
            while column < block.columns {
                let (index, lane) = ((first_n + column) / panel, (first_n + column) % panel);
                let columns = column..block.columns.min(column + panel - lane);
                column = columns.end;
                let start = index * panel_len + (first_k + rows.start) * panel;
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
        let mut buffer =
            Aligned::zeroed(n * ROWS_AT_ONCE.min(rows)).ok_or(KernelError::Memory {
                k: ROWS_AT_ONCE.min(rows),
                n,
            })?;
        for first in (0..rows).step_by(ROWS_AT_ONCE) {
            let count = ROWS_AT_ONCE.min(rows - first);
            for i in 0..count {
                widen(first + i, &mut buffer.floats_mut()[i * n..][..n]);
            }
            self.fill(
                first_k + first,
                0,
                Matrix::new(buffer.floats(), n, count, n),
            )?;
        }
        Ok(())
    }

    /// The first float of panel `index`, whose `k` rows of `panel` floats follow each other.
    pub(super) fn panel_start(&self, index: usize) -> *const f32 {
        self.buffer
            .floats()
            .as_ptr()
            .wrapping_add(index * self.panel * self.k)
    }

    /// Floats of a panel.
    pub(super) fn panel_len(&self) -> usize {
        self.panel * self.k
    }

    fn check_block(
        &self,
        first_k: usize,
        first_n: usize,
        rows: usize,
        columns: usize,
    ) -> Result<(), KernelError> {
        reaches(
            "rows of the packed weights",
            first_k.checked_add(rows),
            self.k,
        )?;
        reaches(
            "columns of the packed weights",
            first_n.checked_add(columns),
            self.n,
        )
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
    for (j, column) in columns.enumerate() {
        let from = &block.data[column * block.stride + rows.start..][..rows.len()];
        for (to, &x) in to[lane + j..].iter_mut().step_by(panel).zip(from) {
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
