//! The gradient of the labels' rows, a sum over all lanes.
//!
//! For a block of lanes, their rows `x` are packed twice: as columns, which the rows of labels multiply to logits again, and as
//! rows, which the gradients of the logits multiply. Each label is a row of both products, so the labels' rows are never packed,
//! and threads may divide the labels.

use super::{refill, refitted};
use crate::kernels::error::{KernelError, reaches, same_size};
use crate::kernels::isa::{Isa, compiled_per_isa};
use crate::kernels::memory::Scratch;
use crate::kernels::multiply::PRODUCT_SCRATCH_FLOATS;
use crate::kernels::pack::{Matrix, PackedWeights};
use crate::kernels::product::{Product, RowsPart, Start};
use crate::kernels::rows::{Rows, RowsMut};
use crate::kernels::runs::{Cursor, RowsRun, check_runs};
use autobatch_ir::numeric::label_loss::{FACTORS, label_of};
use autobatch_ir::numeric::scalar;

/// Lanes whose gradients are added at once: both packed forms of their rows stay in the L2 cache.
const GRADIENT_LANES: usize = 256;
/// Labels whose logits are computed again at once.
const GRADIENT_LABELS: usize = 128;

/// Memory of gradients, reused between calls.
#[derive(Default)]
pub(crate) struct LabelGradientSpace {
    /// The rows of a block of lanes.
    x: Vec<f32>,
    /// The factors of a block of lanes, one after the other.
    factors: [Vec<f32>; FACTORS - 1],
    labels: Vec<usize>,
    logits: Vec<f32>,
    /// The rows as columns, and as rows.
    packed: Option<[PackedWeights; 2]>,
}

/// The gradient of the rows of some labels, summed over all lanes: `dW[v] = fma(dlogit[v], x, dW[v])`, lane by lane.
pub(crate) struct LabelGradient<'a> {
    pub(crate) isa: Isa,
    /// The rows of these labels.
    pub(crate) rows: &'a [f32],
    pub(crate) width: usize,
    /// The first label, among all.
    pub(crate) first: usize,
    pub(crate) all: usize,
    /// The rows of the lanes, in the order of the sum.
    pub(crate) x: &'a [RowsRun<'a>],
    /// The factors of the lanes.
    pub(crate) factors: &'a [RowsRun<'a>],
    /// Whether the sum starts from the contents of the result, else from zero.
    pub(crate) accumulate: bool,
}

impl LabelGradient<'_> {
    /// The bytes of scratch space for rows of this width.
    pub(crate) fn scratch_bytes(width: usize) -> u64 {
        let columns = PackedWeights::max_floats(width, GRADIENT_LANES);
        let rows = PackedWeights::max_floats(GRADIENT_LANES, width);
        let floats = columns.saturating_add(rows).saturating_add(GRADIENT_LANES * (width + GRADIENT_LABELS));
        4 * floats.saturating_add(PRODUCT_SCRATCH_FLOATS) as u64
    }

    /// Adds all lanes to `out`, which has the rows of the labels.
    ///
    /// # Errors
    /// If rows are too short, memory is missing or the instruction set is not available.
    pub(crate) fn run(&self, out: &mut [f32], scratch: &mut Scratch) -> Result<(), KernelError> {
        let mut space = std::mem::take(&mut scratch.labels);
        let outcome = self.run_in(out, &mut space, scratch);
        scratch.labels = space;
        outcome
    }

    fn run_in(
        &self,
        out: &mut [f32],
        space: &mut LabelGradientSpace,
        scratch: &mut Scratch,
    ) -> Result<(), KernelError> {
        let Self { isa, rows, width, accumulate, .. } = *self;
        isa.required()?;
        let count = check_runs("rows of x", self.x, width)?;
        same_size("rows of factors", count, check_runs("rows of factors", self.factors, FACTORS)?)?;
        reaches("rows of labels", Some(out.len()), rows.len())?;
        if !accumulate && count == 0 {
            out.fill(0.0);
        }
        let (mut x, mut factors) = (Cursor::new(self.x), Cursor::new(self.factors));
        let mut done = 0;
        while done < count {
            let lanes = GRADIENT_LANES.min(count - done);
            // SAFETY: the checks above proved `lanes` further rows of both.
            unsafe { space.gather(&mut x, &mut factors, lanes, self) };
            space.pack(isa, lanes, width)?;
            self.block(lanes, out, accumulate || done > 0, space, scratch);
            done += lanes;
        }
        Ok(())
    }

    /// Adds a block of lanes, which is packed.
    fn block(
        &self,
        lanes: usize,
        out: &mut [f32],
        continues: bool,
        space: &mut LabelGradientSpace,
        scratch: &mut Scratch,
    ) {
        let Self { isa, rows, width, first, .. } = *self;
        let LabelGradientSpace { factors, labels, logits, packed: Some([columns, as_rows]), .. } = space
        else {
            return;
        };
        let chunk = GRADIENT_LABELS * width;
        for (number, (rows, out)) in rows.chunks(chunk).zip(out.chunks_mut(chunk)).enumerate() {
            let (count, first) = (rows.len() / width, first + number * GRADIENT_LABELS);
            let logits = &mut logits[..count * lanes];
            let of_labels = [RowsPart { rows: Rows::range(rows, width, 0), k: width }];
            let product = Product::new(columns, &of_labels, Start::Zero);
            // SAFETY: the columns have `lanes` chains of `width`, the logits as many rows as labels.
            unsafe { product.run_unchecked(0..count, RowsMut::new(logits, lanes), scratch) };
            // SAFETY: `run` checked the instruction set.
            unsafe { compiled_gradients(isa)(logits, factors, labels, first) };
            let gradients = [RowsPart { rows: Rows::range(logits, lanes, 0), k: lanes }];
            let start = if continues { Start::Output } else { Start::Zero };
            let product = Product::new(as_rows, &gradients, start);
            // SAFETY: the packed rows have `lanes` rows of `width`, and `out` a row for each label.
            unsafe { product.run_unchecked(0..count, RowsMut::new(out, width), scratch) };
        }
    }
}

impl LabelGradientSpace {
    /// Copies the next `lanes` rows and factors.
    ///
    /// # Safety
    /// They are left, and as wide as the sum says.
    unsafe fn gather(
        &mut self,
        x: &mut Cursor<'_>,
        factors: &mut Cursor<'_>,
        lanes: usize,
        sum: &LabelGradient<'_>,
    ) {
        self.x.clear();
        self.labels.clear();
        self.factors.iter_mut().for_each(Vec::clear);
        self.logits.resize(GRADIENT_LABELS * GRADIENT_LANES, 0.0);
        for _ in 0..lanes {
            // SAFETY: the caller guarantees the rows.
            let [row, own] = unsafe {
                [(x.next(), sum.width), (factors.next(), FACTORS)]
                    .map(|(row, width)| std::slice::from_raw_parts(row, width))
            };
            self.x.extend_from_slice(row);
            let own = [own[0], own[1], own[2]];
            self.factors.iter_mut().zip(own).for_each(|(factors, own)| factors.push(own));
            self.labels.push(label_of(own, sum.all));
        }
    }

    fn pack(&mut self, isa: Isa, lanes: usize, width: usize) -> Result<(), KernelError> {
        let rows = Matrix::new(&self.x, width, lanes, width);
        let [columns, as_rows] = refitted(&mut self.packed, isa)?;
        refill(columns, isa, rows.transposed())?;
        refill(as_rows, isa, rows)
    }
}

compiled_per_isa! {
    fn compiled_gradients -> unsafe fn(
        logits: &mut [f32],
        factors: &[Vec<f32>; FACTORS - 1],
        labels: &[usize],
        first: usize,
    ) = gradients
}

/// Replaces the logits of the labels from `first` on by their gradients. A row has the logits of one label.
#[inline(always)]
fn gradients(logits: &mut [f32], [dy, log_sums]: &[Vec<f32>; FACTORS - 1], labels: &[usize], first: usize) {
    let lanes = labels.len();
    for row in logits.chunks_exact_mut(lanes) {
        for (logit, &log_sum) in row.iter_mut().zip(log_sums) {
            *logit = scalar::exp(scalar::sub(*logit, log_sum));
        }
    }
    for (lane, label) in labels.iter().enumerate() {
        if let Some(likely) = label.checked_sub(first).and_then(|row| logits.get_mut(row * lanes + lane)) {
            *likely = scalar::sub(*likely, 1.0);
        }
    }
    for row in logits.chunks_exact_mut(lanes) {
        for (likely, &dy) in row.iter_mut().zip(dy) {
            *likely = scalar::mul(dy, *likely);
        }
    }
}
