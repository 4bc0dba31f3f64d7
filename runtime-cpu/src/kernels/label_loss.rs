//! Losses of labels under a product, and the gradient of the labels' rows, by the definition in `ir::numeric::label_loss`.
//!
//! **Loss.** A stripe of labels is packed for all lanes of a call. Then three steps for some lanes at a time: the logits as a
//! product, their fold, and the product of the exponentials with the same rows, which continues the slopes.
//!
//! **Gradient.** For a block of lanes, their rows `x` are packed twice: as columns, which the rows of labels multiply to logits
//! again, and as rows, which the gradients of the logits multiply. Each label is a row of both products, so the labels' rows
//! are never packed, and threads may divide the labels.

use super::error::{KernelError, reaches, same_size};
use super::isa::{Isa, compiled_per_isa};
use super::memory::Scratch;
use super::multiply::{PRODUCT_SCRATCH_FLOATS, multiply_unchecked};
use super::pack::{Matrix, PackedWeights};
use super::product::{Product, RowsPart, Start};
use super::rows::{Rows, RowsMut};
use super::runs::{Cursor, RowsRun, check_runs};
use autobatch_ir::numeric::label_loss::{FACTORS, Fold, STRIPE, label_of};
use autobatch_ir::numeric::scalar;
use std::ops::Range;

/// Lanes whose losses are computed at once: their logits, rows and slopes and the packed labels fit the L2 cache.
const LANES: usize = 112;
/// Lanes whose gradients are added at once: both packed forms of their rows stay in the L2 cache.
const GRADIENT_LANES: usize = 256;
/// Labels whose logits are computed again at once.
const GRADIENT_LABELS: usize = 128;

/// Memory of losses, reused between calls.
#[derive(Default)]
pub(crate) struct LabelSpace {
    logits: Vec<f32>,
    folds: Vec<Fold<f32>>,
    picked: Vec<f32>,
    /// The rows of a stripe as columns, and as rows.
    packed: Option<[PackedWeights; 2]>,
}

impl LabelSpace {
    /// The bytes of each lane.
    pub(crate) const LANE_BYTES: u64 = size_of::<(Fold<f32>, f32)>() as u64;

    /// The floats that do not depend on the number of lanes, for rows of this width.
    pub(crate) fn floats(width: usize) -> usize {
        PackedWeights::max_floats(width, STRIPE)
            .saturating_add(PackedWeights::max_floats(STRIPE, width))
            .saturating_add(LANES * STRIPE)
    }

    /// Packs the rows of a stripe as columns, and as rows if the slopes need them.
    fn pack(&mut self, isa: Isa, of_labels: Matrix<'_>, with_rows: bool) -> Result<(), KernelError> {
        let [columns, as_rows] = refitted(&mut self.packed, isa)?;
        refill(columns, isa, of_labels.transposed())?;
        if with_rows { refill(as_rows, isa, of_labels) } else { Ok(()) }
    }
}

/// A pair of packed matrices.
fn refitted(
    packed: &mut Option<[PackedWeights; 2]>,
    isa: Isa,
) -> Result<&mut [PackedWeights; 2], KernelError> {
    Ok(match packed {
        Some(packed) => packed,
        none => none.insert([PackedWeights::zeroed(isa, 0, 0)?, PackedWeights::zeroed(isa, 0, 0)?]),
    })
}

/// Packs a matrix into the memory of another one.
fn refill(packed: &mut PackedWeights, isa: Isa, matrix: Matrix<'_>) -> Result<(), KernelError> {
    packed.refit(isa, matrix.rows(), matrix.columns())?;
    packed.fill(0, 0, matrix)
}

/// The losses of some lanes.
pub(crate) struct LabelLosses<'a> {
    pub(crate) isa: Isa,
    /// A row for each label.
    pub(crate) rows: &'a [f32],
    pub(crate) width: usize,
    /// The rows of the lanes, as wide.
    pub(crate) x: Matrix<'a>,
    /// The label of each lane, below the number of rows.
    pub(crate) labels: &'a [u32],
}

/// The rows that [`LabelLosses`] writes.
pub(crate) struct LabelResults<'a> {
    pub(crate) losses: RowsMut<'a>,
    pub(crate) log_sums: Option<RowsMut<'a>>,
    pub(crate) slopes: Option<RowsMut<'a>>,
}

impl LabelLosses<'_> {
    /// Computes the losses.
    ///
    /// # Safety
    /// The instruction set is available. `x` has a row for each label. The results have as many rows, each as wide as the
    /// definition says. They do not overlap operands, and only this call accesses them.
    pub(crate) unsafe fn run(&self, out: &LabelResults<'_>, space: &mut LabelSpace, scratch: &mut Scratch) {
        let Self { isa, rows, width, labels, .. } = *self;
        let lanes = labels.len();
        space.logits.resize(LANES * STRIPE, 0.0);
        space.folds.clear();
        space.folds.resize(lanes, Fold::EMPTY);
        space.picked.clear();
        space.picked.resize(lanes, 0.0);
        for (stripe, own) in rows.chunks(STRIPE * width).enumerate() {
            let of_labels = Matrix::new(own, width, own.len() / width, width);
            let is_packed = space.pack(isa, of_labels, out.slopes.is_some()).is_ok();
            for first in (0..lanes).step_by(LANES) {
                let own = first..lanes.min(first + LANES);
                let stripe = Stripe { first: stripe * STRIPE, of_labels, is_packed };
                // SAFETY: the caller guarantees the memory of all lanes.
                unsafe { self.stripe(stripe, own, out, space, scratch) };
            }
        }
        for (lane, (fold, &picked)) in space.folds.iter().zip(&space.picked).enumerate() {
            // SAFETY: the caller guarantees a row for each lane.
            unsafe {
                *out.losses.row(lane) = fold.loss(picked);
                if let Some(log_sums) = &out.log_sums {
                    *log_sums.row(lane) = fold.log_sum();
                }
                if let Some(slopes) = &out.slopes {
                    let slope = std::slice::from_raw_parts_mut(slopes.row(lane), width);
                    let row = &rows[labels[lane] as usize * width..][..width];
                    for (slope, &w) in slope.iter_mut().zip(row) {
                        *slope = scalar::sub(scalar::div(*slope, fold.total), w);
                    }
                }
            }
        }
    }
}

impl LabelLosses<'_> {
    /// Folds the labels of a stripe, for some lanes.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn stripe(
        &self,
        stripe: Stripe<'_>,
        lanes: Range<usize>,
        out: &LabelResults<'_>,
        space: &mut LabelSpace,
        scratch: &mut Scratch,
    ) {
        let Self { isa, width, x, labels, .. } = *self;
        let Stripe { first, of_labels, is_packed } = stripe;
        let LabelSpace { logits, folds, picked, packed } = space;
        let (count, height) = (of_labels.rows(), lanes.len());
        let logits = &mut logits[..height * count];
        let (x, labels) = (x.rows_from(lanes.start, height), &labels[lanes.clone()]);
        let slopes = out.slopes.as_ref().map(|slopes| {
            // SAFETY: the caller guarantees a slope for each lane, which is no operand.
            unsafe { RowsMut::from_raw(slopes.row(lanes.start), usize::MAX, slopes.stride()) }
        });
        let of_packed = packed.as_ref().filter(|_| is_packed);
        // SAFETY: the matrices have the sizes of the product, and the logits are borrowed exclusively.
        unsafe {
            let to = RowsMut::new(logits, count);
            match of_packed.zip(x.as_rows()) {
                Some(([columns, _], rows)) => {
                    let x = [RowsPart { rows, k: width }];
                    Product::new(columns, &x, Start::Zero).run_unchecked(0..height, to, scratch);
                }
                None => multiply_unchecked(isa, x, of_labels.transposed(), to, false, scratch),
            }
        }
        let fold = FoldOfStripe { first, count, width, labels };
        let (folds, picked) = (&mut folds[lanes.clone()], &mut picked[lanes]);
        // SAFETY: the caller guarantees the instruction set and the slopes.
        unsafe { compiled_fold(isa)(&fold, logits, folds, picked, slopes.as_ref()) };
        let Some(to) = slopes else { return };
        let exponentials = Matrix::new(logits, count, height, count);
        // SAFETY: as for the logits.
        unsafe {
            match of_packed.zip(exponentials.as_rows()) {
                Some(([_, as_rows], rows)) => {
                    let parts = [RowsPart { rows, k: count }];
                    Product::new(as_rows, &parts, Start::Output).run_unchecked(0..height, to, scratch);
                }
                None => multiply_unchecked(isa, exponentials, of_labels, to, true, scratch),
            }
        }
    }
}

/// The labels of a stripe.
#[derive(Clone, Copy)]
struct Stripe<'a> {
    /// The first label.
    first: usize,
    of_labels: Matrix<'a>,
    /// Whether the space holds the packed rows. It does unless memory is missing.
    is_packed: bool,
}

/// The fold of a stripe, for some lanes.
struct FoldOfStripe<'a> {
    /// The first label.
    first: usize,
    count: usize,
    width: usize,
    labels: &'a [u32],
}

compiled_per_isa! {
    fn compiled_fold -> unsafe fn(
        stripe: &FoldOfStripe<'_>,
        logits: &mut [f32],
        folds: &mut [Fold<f32>],
        picked: &mut [f32],
        slopes: Option<&RowsMut<'_>>,
    ) = FoldOfStripe::run
}

impl FoldOfStripe<'_> {
    /// Folds the logits of all lanes, keeps those of their labels, and scales the slopes.
    ///
    /// # Safety
    /// There is a slope for each lane, as wide as a row of a label. Only this call accesses it.
    #[inline(always)]
    unsafe fn run(
        &self,
        logits: &mut [f32],
        folds: &mut [Fold<f32>],
        picked: &mut [f32],
        slopes: Option<&RowsMut<'_>>,
    ) {
        let Self { first, count, width, labels } = *self;
        for (lane, (logits, fold)) in logits.chunks_exact_mut(count).zip(folds).enumerate() {
            if let Some(&logit) = (labels[lane] as usize).checked_sub(first).and_then(|at| logits.get(at)) {
                picked[lane] = logit;
            }
            let scale = fold.take(logits);
            if let Some(slopes) = slopes {
                // SAFETY: the caller guarantees the slope of the lane.
                let slope = unsafe { std::slice::from_raw_parts_mut(slopes.row(lane), width) };
                if first == 0 {
                    slope.fill(0.0);
                }
                slope.iter_mut().for_each(|slope| *slope = scalar::mul(*slope, scale));
            }
        }
    }
}

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
