//! Weights in the layout of the product kernels.
//!
//! The weights `w[k, n]` are stored as blocks of [`K_BLOCK`] rows, each block as panels. Panel `p` holds the columns from
//! `p * panel` on of every `k` of the block, one `k` after the other, padded with zeros. A product reads this memory in
//! ascending order, which suits hardware prefetching. [`PackedWeights::fill`] overwrites weights after a training step.

use std::fmt;
use std::ops::Range;

use super::error::{KernelError, reaches};
use super::isa::Isa;
use super::kernel_set::{K_BLOCK, KernelSet, MAX_PANEL};
use super::memory::Aligned;
use super::rows::Rows;

/// Rows of a weight that are packed before the next panel: few enough that their cache lines stay, enough to write
/// contiguous memory. A transposed weight is packed in blocks of `K_BLOCK`, because its memory runs along `k`.
const ROWS_AT_ONCE: usize = 16;
const _: () = assert!(K_BLOCK.is_multiple_of(ROWS_AT_ONCE), "rows packed at once lie in one block");

/// Rows and columns that are transposed together: four vectors of four lanes, which compilers turn into shuffles.
const SQUARE: usize = 4;

/// A row-major matrix or its transpose.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    data: &'a [f32],
    stride: usize,
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a> Matrix<'a> {
    /// The `rows x columns` block whose row `i` begins at `data[i * stride]`.
    pub fn new(data: &'a [f32], stride: usize, rows: usize, columns: usize) -> Self {
        Matrix { data, stride, rows, columns, transposed: false }
    }

    /// The transpose, which the product with a transposed weight (`dX = dY . W^T`) packs.
    pub fn transposed(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, transposed: !self.transposed, ..self }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn is_transposed(&self) -> bool {
        self.transposed
    }

    /// The floats from element `(row, column)` on and the row distance; `None` for a transpose.
    pub(super) fn row_slice(&self, row: usize, column: usize) -> Option<(&'a [f32], usize)> {
        // An empty matrix has no such element, so the offset is limited.
        let start = (row * self.stride + column).min(self.data.len());
        (!self.transposed).then(|| (&self.data[start..], self.stride))
    }

    /// Copies elements of row `row` from column `first` on; `to` is at most as long as the rest of the row.
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

    /// Packs some rows of a transposed matrix, from column `first` on: column `k` of row `i` moves to `k * STEP + i`.
    pub(super) fn pack_rows<const STEP: usize>(&self, rows: Range<usize>, first: usize, to: &mut [f32]) {
        for (k, to) in (first..).zip(to.chunks_exact_mut(STEP)) {
            let from = &self.data[k * self.stride + rows.start..];
            // A copy of constant length is a few moves. Tiles ignore its surplus rows.
            match from.first_chunk::<STEP>() {
                Some(from) => to.copy_from_slice(from),
                None => to[..rows.len()].copy_from_slice(&from[..rows.len()]),
            }
        }
    }

    /// The rows from `first` on, `count` of them, of a matrix that is no transpose.
    pub(super) fn rows_from(self, first: usize, count: usize) -> Self {
        Matrix { data: &self.data[first * self.stride..], rows: count, ..self }
    }

    /// The rows; `None` for a transpose.
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
pub struct PackedWeights {
    isa: Isa,
    panel: usize,
    k: usize,
    n: usize,
    buffer: Aligned,
}

impl PackedWeights {
    /// Makes zero weights of `k` rows and `n` columns, to be filled block by block.
    pub fn zeroed(isa: Isa, k: usize, n: usize) -> Result<Self, KernelError> {
        let panel = KernelSet::of(isa.required()?).panel;
        let buffer = n
            .checked_next_multiple_of(panel)
            .and_then(|columns| columns.checked_mul(k))
            .and_then(Aligned::zeroed)
            .ok_or(KernelError::Memory { k, n })?;
        Ok(PackedWeights { isa, panel, k, n, buffer })
    }

    /// Floats of packed weights of `k` rows and `n` columns on the instruction set with the widest panels, saturating.
    #[must_use]
    pub fn max_floats(k: usize, n: usize) -> usize {
        n.checked_next_multiple_of(MAX_PANEL).map_or(usize::MAX, |columns| columns.saturating_mul(k))
    }

    /// Packs `weights`.
    pub fn pack(isa: Isa, weights: Matrix<'_>) -> Result<Self, KernelError> {
        weights.check()?;
        let mut packed = Self::zeroed(isa, weights.rows, weights.columns)?;
        packed.fill(0, 0, weights)?;
        Ok(packed)
    }

    /// Reuses the memory for weights of `k` rows and `n` columns. The contents are unspecified; fill all of them.
    pub(super) fn refit(&mut self, isa: Isa, k: usize, n: usize) -> Result<(), KernelError> {
        let panel = KernelSet::of(isa).panel;
        n.checked_next_multiple_of(panel)
            .and_then(|columns| columns.checked_mul(k))
            .and_then(|floats| self.buffer.fit(floats))
            .ok_or(KernelError::Memory { k, n })?;
        *self = PackedWeights { isa, panel, k, n, buffer: std::mem::take(&mut self.buffer) };
        Ok(())
    }

    /// The instruction set of the panel shape.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Rows of the weights.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the weights.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Columns of a panel.
    pub(super) fn panel(&self) -> usize {
        self.panel
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
                let write = if block.transposed { transpose_block } else { copy_block };
                write(&block, rows.clone(), columns, to, panel, lane);
            }
        }
        Ok(())
    }

    /// Row `k` of panel `index`. The rows up to the next multiple of `K_BLOCK` follow it.
    pub(super) fn row(&self, index: usize, k: usize) -> *const f32 {
        self.buffer.floats().as_ptr().wrapping_add(self.position(index, k))
    }

    /// Floats from a panel to the next in the block that holds row `k`.
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

/// Copies `rows x columns` of `block` to `to`, whose rows are `panel` wide, from lane `lane` on.
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
        // A copy of constant length is a few moves; any other copy is a call.
        match (<&mut [f32; 32]>::try_from(&mut *to), <&[f32; 32]>::try_from(from)) {
            (Ok(to), Ok(from)) => *to = *from,
            _ => to[lane..lane + columns.len()].copy_from_slice(from),
        }
    }
}

/// [`copy_block`] for a transposed matrix: row `k` of the block is a column in memory.
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
