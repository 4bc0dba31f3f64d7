//! The loss of a label under a product: `-log softmax(W · x)[label]`, where `W` has one row per label.
//!
//! No number per label is kept, because there may be 10^5 labels. The logits of [`STRIPE`] labels at a time are folded into a
//! [`Fold`], which is relative to the largest logit so far. If a stripe has a larger one, earlier sums are scaled down.
//! ```text
//! logit[v] = chain over k from +0: fma(x[k], W[v][k], acc)
//! for each stripe: top' = max(top, max of its logits)   scale = exp(top - top')   e[v] = exp(logit[v] - top')
//!                  total = total * scale + sum of e
//!                  slope[k] = chain over its v from slope[k] * scale: fma(e[v], W[v][k], acc)
//! loss = log(total) - (logit[label] - top)   log_sum = top + log(total)   slope[k] = slope[k] / total - W[label][k]
//! ```
//! The maximum and the sum of a stripe are those of [`row`]. `slope` is the derivative of the loss with respect to
//! `x`. The reverse computes the logits again, and [`gradient`] makes of each the factor of `x` in the gradient of its row.

use super::{Real, product, row};

/// The logits that are folded at once.
pub const STRIPE: usize = 256;

/// The largest number of labels. Each is a float in the reverse, exactly.
pub const MAX_LABELS: u32 = 1 << 24;

/// The maximum of the logits so far, and the sum of `exp(logit - maximum)`.
#[derive(Clone, Copy, Debug)]
pub struct Fold<T> {
    /// The maximum.
    pub top: T,
    /// The sum.
    pub total: T,
}

impl<T: Real> Fold<T> {
    /// No logit.
    pub const EMPTY: Self = Self { top: T::NEG_INFINITY, total: T::ZERO };

    /// Takes the logits of a stripe and replaces each by `exp(logit - maximum)`. Returns the scale of what was summed before.
    #[inline(always)]
    pub fn take(&mut self, logits: &mut [T]) -> T {
        let top = self.top.max(row::max(logits));
        let scale = self.top.sub(top).exp();
        for logit in &mut *logits {
            *logit = logit.sub(top).exp();
        }
        *self = Self { top, total: self.total.mul(scale).add(row::sum(logits)) };
        scale
    }

    /// The loss of a label with this logit.
    #[inline(always)]
    pub fn loss(self, logit: T) -> T {
        self.total.log().sub(logit.sub(self.top))
    }

    /// The logarithm of the sum of `exp(logit)`.
    #[inline(always)]
    pub fn log_sum(self) -> T {
        self.top.add(self.total.log())
    }
}

/// The loss of a label, and what the reverse takes.
#[derive(Clone, Debug)]
pub struct LabelLoss<T> {
    /// The loss.
    pub loss: T,
    /// The logarithm of the sum over all labels.
    pub log_sum: T,
    /// The derivative of the loss with respect to `x`.
    pub slope: Vec<T>,
}

/// The logit of a label with this row.
pub fn logit<T: Real>(x: &[T], row: &[T]) -> T {
    product::prod_chain(T::ZERO, &[product::Part::contiguous(x, row)])
}

/// The loss of a label, the definition. `rows` are as wide as `x`. A label beyond the end is replaced by the last one.
pub fn label_loss<T: Real>(rows: &[T], x: &[T], label: u32) -> LabelLoss<T> {
    let width = x.len().max(1);
    let mut fold = Fold::EMPTY;
    let mut slope = vec![T::ZERO; x.len()];
    for stripe in rows.chunks(STRIPE * width) {
        let mut logits: Vec<T> = stripe.chunks_exact(width).map(|row| logit(x, row)).collect();
        let scale = fold.take(&mut logits);
        slope.iter_mut().for_each(|slope| *slope = slope.mul(scale));
        for (&e, row) in logits.iter().zip(stripe.chunks_exact(width)) {
            slope.iter_mut().zip(row).for_each(|(slope, &w)| *slope = e.fma(w, *slope));
        }
    }
    let last = (rows.len() / width).saturating_sub(1);
    let picked = rows.get((label as usize).min(last) * width..).unwrap_or(&[]);
    slope.iter_mut().zip(picked).for_each(|(slope, &w)| *slope = slope.div(fold.total).sub(w));
    LabelLoss { loss: fold.loss(logit(x, picked)), log_sum: fold.log_sum(), slope }
}

/// The numbers of a lane that [`gradient`] takes: the gradient of the loss, the logarithm of the sum over all labels, and the label.
pub const FACTORS: usize = 3;

/// The label among the numbers of a lane. One beyond the end is replaced by the last one.
#[inline(always)]
pub fn label_of([_, _, label]: [f32; FACTORS], labels: usize) -> usize {
    (label as usize).min(labels.saturating_sub(1))
}

/// The gradient of a logit: `dy * (exp(logit - log_sum) - 1 at the label)`.
#[inline(always)]
pub fn gradient<T: Real>(logit: T, [dy, log_sum, _]: [T; FACTORS], is_label: bool) -> T {
    let likely = logit.sub(log_sum).exp();
    dy.mul(likely.sub(if is_label { T::ONE } else { T::ZERO }))
}
