//! Losses of one row, computed with the reductions of [`row`](super::row).
//!
//! An index beyond the end of the row is replaced by the last index. Types and input checks exclude
//! this case; the rule makes the functions total. An empty row has loss 0.

use super::Real;
use super::row::{LANES, combine, fold16_pairs, max_and_log_sum};

/// `index`, or the last index.
#[inline(always)]
fn bounded(index: u32, length: usize) -> usize {
    (index as usize).min(length.saturating_sub(1))
}

/// `-log softmax(row)[index]`, as `log(sum(exp(x[j] - max))) - (x[index] - max)`.
#[inline(always)]
pub fn pick_neg_log_softmax<T: Real>(row: &[T], index: u32) -> T {
    let Some(&picked) = row.get(bounded(index, row.len())) else {
        return T::ZERO;
    };
    let (top, log) = max_and_log_sum(row);
    log.sub(picked.sub(top))
}

/// `sum of target[i] * -log softmax(logits)[i]`: `lane = fma(target, log_sum - (x - max), lane)`. A
/// target of 0 adds nothing, even if the logit is `-inf`.
#[inline(always)]
pub fn cross_entropy<T: Real>(logits: &[T], target: &[T]) -> T {
    let (top, log) = max_and_log_sum(logits);
    fold16_pairs(logits, target, |lane, x, t| {
        let more = t.fma(log.sub(x.sub(top)), lane);
        if t == T::ZERO { lane } else { more }
    })
}

/// `sum of target[i] * (log target[i] - log_p[i])`: `lane = fma(target, log(target) - log_p,
/// lane)`. A target of 0 adds nothing.
#[inline(always)]
pub fn kl_div<T: Real>(log_p: &[T], target: &[T]) -> T {
    fold16_pairs(log_p, target, |lane, p, t| {
        let more = t.fma(t.log().sub(p), lane);
        if t == T::ZERO { lane } else { more }
    })
}

/// The mean of the squared differences: `d = a - b`, `lane = fma(d, d, lane)`, divided by the length.
#[inline(always)]
pub fn mse<T: Real>(a: &[T], b: &[T]) -> T {
    let total = fold16_pairs(a, b, |lane, x, y| {
        let d = x.sub(y);
        d.fma(d, lane)
    });
    total.div(T::from_f64(a.len().min(b.len()).max(1) as f64))
}

/// Binary cross-entropy of one logit: `fma(-x, t, relu(x)) + log1p(exp(-|x|))`. For `|x| = inf` the result is `inf` or NaN.
#[inline(always)]
pub fn bce_element<T: Real>(x: T, t: T) -> T {
    x.neg().fma(t, x.relu()).add(x.abs().neg().exp().log1p_of_unit())
}

/// The mean of [`bce_element`] over the row.
#[inline(always)]
pub fn bce<T: Real>(logits: &[T], target: &[T]) -> T {
    let total = fold16_pairs(logits, target, |lane, x, t| lane.add(bce_element(x, t)));
    total.div(T::from_f64(logits.len().min(target.len()).max(1) as f64))
}

/// The multi-class hinge: `sum over j != index of relu((margin - x[index]) + x[j])`, with `+0` as the term of `index`.
#[inline(always)]
pub fn hinge<T: Real>(row: &[T], index: u32, margin: T) -> T {
    let index = bounded(index, row.len());
    let Some(&picked) = row.get(index) else {
        return T::ZERO;
    };
    let offset = margin.sub(picked);
    let mut lanes = [T::ZERO; LANES];
    for (i, &x) in row.iter().enumerate() {
        let violation = offset.add(x).relu();
        let lane = &mut lanes[i % LANES];
        *lane = lane.add(if i == index { T::ZERO } else { violation });
    }
    combine(lanes, T::add)
}
