//! Losses of labels under a product, by the definition in `ir::numeric::label_loss`. The module [`gradient`] sums the gradient of
//! the labels' rows.
//!
//! A stripe of labels is packed for all lanes of a call. Then three steps for some lanes at a time: the logits as a product, their
//! fold, and the product of the exponentials with the same rows, which continues the slopes. Of few lanes their own rows are
//! packed instead, once.

mod gradient;

pub(crate) use gradient::{LabelGradient, LabelGradientSpace};

use super::error::KernelError;
use super::isa::{Isa, compiled_per_isa};
use super::memory::Scratch;
use super::multiply::multiply_unchecked;
use super::pack::{Matrix, PackedWeights};
use super::product::{Product, RowsPart, Start};
use super::rows::RowsMut;
use autobatch_ir::numeric::label_loss::{Fold, STRIPE};
use autobatch_ir::numeric::scalar;
use std::ops::Range;

/// Lanes whose losses are computed at once: their logits, rows and slopes and the packed labels fit the L2 cache.
const LANES: usize = 112;
/// Up to this many lanes are packed instead of the labels, whose rows are then read once, where they are.
const FEW_LANES: usize = 4;

/// Memory of losses, reused between calls.
#[derive(Default)]
pub(crate) struct LabelSpace {
    logits: Vec<f32>,
    folds: Vec<Fold<f32>>,
    picked: Vec<f32>,
    /// The rows of a stripe as columns, and as rows; of few lanes, their rows as columns.
    packed: Option<[PackedWeights; 2]>,
    /// The logits of few lanes, label by label.
    turned: Vec<f32>,
}

impl LabelSpace {
    /// The bytes of each lane.
    pub(crate) const LANE_BYTES: u64 = size_of::<(Fold<f32>, f32)>() as u64;

    /// The floats that do not depend on the number of lanes, for rows of this width.
    pub(crate) fn floats(width: usize) -> usize {
        PackedWeights::max_floats(width, STRIPE)
            .saturating_add(PackedWeights::max_floats(STRIPE, width))
            .saturating_add((LANES + FEW_LANES) * STRIPE)
    }

    /// Packs the rows of few lanes as columns.
    fn pack_lanes(&mut self, isa: Isa, x: Matrix<'_>) -> Result<(), KernelError> {
        refill(&mut refitted(&mut self.packed, isa)?[0], isa, x.transposed())
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
        let few = lanes <= FEW_LANES && space.pack_lanes(isa, self.x).is_ok();
        for (stripe, own) in rows.chunks(STRIPE * width).enumerate() {
            let of_labels = Matrix::new(own, width, own.len() / width, width);
            let packed = match few {
                true => Packed::Lanes,
                false if space.pack(isa, of_labels, out.slopes.is_some()).is_ok() => Packed::Labels,
                false => Packed::Nothing,
            };
            for first in (0..lanes).step_by(LANES) {
                let own = first..lanes.min(first + LANES);
                let stripe = Stripe { first: stripe * STRIPE, of_labels, packed };
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
        let Stripe { first, of_labels, packed: how } = stripe;
        let LabelSpace { logits, folds, picked, packed, turned } = space;
        let (count, height) = (of_labels.rows(), lanes.len());
        let logits = &mut logits[..height * count];
        let (x, labels) = (x.rows_from(lanes.start, height), &labels[lanes.clone()]);
        let slopes = out.slopes.as_ref().map(|slopes| {
            // SAFETY: the caller guarantees a slope for each lane, which is no operand.
            unsafe { RowsMut::from_raw(slopes.row(lanes.start), usize::MAX, slopes.stride()) }
        });
        let of_labels_packed = packed.as_ref().filter(|_| how == Packed::Labels);
        let of_lanes_packed = packed.as_ref().filter(|_| how == Packed::Lanes);
        // SAFETY: the matrices have the sizes of the products, and the results are borrowed exclusively.
        unsafe {
            if let Some(([columns, _], rows)) = of_lanes_packed.zip(of_labels.as_rows()) {
                turned.resize(count * height, 0.0);
                let labels = [RowsPart { rows, k: width }];
                let to = RowsMut::new(turned, height);
                Product::new(columns, &labels, Start::Zero).run_unchecked(0..count, to, scratch);
                for (lane, logits) in logits.chunks_exact_mut(count).enumerate() {
                    logits
                        .iter_mut()
                        .zip(turned[lane..].iter().step_by(height))
                        .for_each(|(to, &logit)| *to = logit);
                }
            } else if let Some(([columns, _], rows)) = of_labels_packed.zip(x.as_rows()) {
                let x = [RowsPart { rows, k: width }];
                let to = RowsMut::new(logits, count);
                Product::new(columns, &x, Start::Zero).run_unchecked(0..height, to, scratch);
            } else {
                multiply_unchecked(
                    isa,
                    x,
                    of_labels.transposed(),
                    RowsMut::new(logits, count),
                    false,
                    scratch,
                );
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
            match of_labels_packed.zip(exponentials.as_rows()) {
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
    packed: Packed,
}

/// The packed operand of the products with a stripe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packed {
    /// The rows of the labels.
    Labels,
    /// The rows of the lanes, which are few.
    Lanes,
    /// None, because memory is missing.
    Nothing,
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
