//! Folds over lists: sums, weighted sums and attention.
//!
//! **Bits.** `ir::numeric::list` defines the results: each element is folded left to right in list order. Elements of a
//! value are independent, so the loops compute them together. Softmax scores of width 1 are stored contiguously; their
//! exponentials are computed together, their sum goes left to right.

use super::isa::compiled_per_isa;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::numeric::{graph_attention, list, row, scalar};

compiled_per_isa! {
    /// Returns the fold over lists for an instruction set: `out = op(query, first, second)`.
    ///
    /// Attention has a query, a pick an index. Sums have one list; their second list is empty. `weights` is scratch space that
    /// grows to the elements of the largest list of scores. Other ops leave `out` unchanged. Calls require that the
    /// instruction set is available.
    pub fn kernel -> unsafe fn(
        op: Op,
        query: &[f32],
        lists: [&[&[f32]]; 2],
        out: &mut [f32],
        weights: &mut Vec<f32>,
    ) = fold
}

#[inline(always)]
fn fold(op: Op, query: &[f32], [first, second]: [&[&[f32]]; 2], out: &mut [f32], weights: &mut Vec<f32>) {
    weights.clear();
    match op {
        Op::ListFold(ListFold::Sum) => list::sum(first, out),
        Op::ListFold(ListFold::Mean) => list::mean(first, out),
        Op::ListFold(ListFold::Max) => list::max(first, out),
        Op::ListFold(ListFold::LogSumExp) => list::logsumexp(first, out),
        Op::ListFold(ListFold::ArgMax) => list::argmax(first, bytemuck::cast_slice_mut(out)),
        Op::ListPick => list::pick(first, query[0].to_bits(), out),
        Op::WeightedSum { softmax: false } => list::weighted_sum(first, second, out),
        Op::WeightedSum { softmax: true } => {
            let width = first.first().map_or(0, |scores| scores.len());
            softmax_of_scores(first, width, weights);
            weighted_by(weights, width, second, out);
        }
        Op::Attend { scale } => {
            list::attention_weights(query, first, scale.get(), weights);
            weighted_by(weights, 1, second, out);
        }
        Op::GraphAttend { slope } => graph_attention::attend(query, first, second, slope.get(), out),
        _ => {}
    }
}

/// Computes `list::softmax` of contiguous scores of width 1, in place. Exponentials are computed in whole groups of
/// lanes; the padding of the last group is removed before the sum.
#[inline(always)]
fn softmax_of_numbers(scores: &mut Vec<f32>) {
    let Some(top) = scores.iter().copied().reduce(scalar::max) else { return };
    let count = scores.len();
    scores.resize(count.next_multiple_of(row::LANES), top);
    for score in &mut **scores {
        *score = scalar::exp(scalar::sub(*score, top));
    }
    scores.truncate(count);
    let total = scores.iter().copied().reduce(scalar::add).unwrap_or(0.0);
    let scale = scalar::recip(total);
    for score in &mut **scores {
        *score = scalar::mul(*score, scale);
    }
}

/// Computes `list::softmax` of scores. `weights`, empty at first, receives one row per score.
#[inline(always)]
pub(super) fn softmax_of_scores(scores: &[&[f32]], width: usize, weights: &mut Vec<f32>) {
    if width == 1 {
        weights.extend(scores.iter().map(|score| score[0]));
        return softmax_of_numbers(weights);
    }
    // The two extra rows hold the maxima and the sums.
    weights.resize((scores.len() + 2) * width, 0.0);
    let (rows, rest) = weights.split_at_mut(scores.len() * width);
    let (top, total) = rest.split_at_mut(width);
    list::max(scores, top);
    for (number, (score, row)) in scores.iter().zip(rows.chunks_exact_mut(width.max(1))).enumerate() {
        for (e, (&x, &top)) in row.iter_mut().zip(score.iter().zip(&*top)) {
            *e = scalar::exp(scalar::sub(x, top));
        }
        for (sum, &e) in total.iter_mut().zip(&*row) {
            *sum = if number == 0 { e } else { scalar::add(*sum, e) };
        }
    }
    for total in &mut *total {
        *total = scalar::recip(*total);
    }
    for row in rows.chunks_exact_mut(width.max(1)) {
        for (e, &scale) in row.iter_mut().zip(&*total) {
            *e = scalar::mul(*e, scale);
        }
    }
    weights.truncate(scores.len() * width);
}

/// Computes `list::weighted_sum` with contiguous weights, `width` per value.
#[inline(always)]
fn weighted_by(weights: &[f32], width: usize, values: &[&[f32]], out: &mut [f32]) {
    out.fill(0.0);
    for (weight, value) in weights.chunks_exact(width.max(1)).zip(values) {
        if let [weight] = weight {
            for (result, &x) in out.iter_mut().zip(*value) {
                *result = scalar::fma(*weight, x, *result);
            }
        } else {
            for (result, (&c, &x)) in out.iter_mut().zip(weight.iter().zip(*value)) {
                *result = scalar::fma(c, x, *result);
            }
        }
    }
}
