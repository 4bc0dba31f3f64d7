//! Folds over lists, compiled once for each instruction set: sums, weighted sums, attention.
//!
//! **Bits.** `ir::numeric::list` defines them: left to right in the order listed, element by element. Elements of a value are independent, so
//! they are computed together; the softmax of scores of width 1 lies side by side, where exponentials are computed together and the sum goes
//! from left to right as always.

use super::isa::Isa;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::numeric::{list, row, scalar};

/// Computes a fold over lists: `out = op(query, first, second)`. Only attention has a query, and sums have one list. `weights` is space that
/// grows to the elements of the largest list of scores. An op of another template changes nothing.
///
/// # Safety
/// `isa` is available.
pub unsafe fn run(
    isa: Isa,
    op: Op,
    query: &[f32],
    lists: [&[&[f32]]; 2],
    out: &mut [f32],
    weights: &mut Vec<f32>,
) {
    match isa {
        // SAFETY: the caller vouches for the instruction set.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { run_avx512(op, query, lists, out, weights) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(op, query, lists, out, weights) },
        _ => fold(op, query, lists, out, weights),
    }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn run_avx512(op: Op, query: &[f32], lists: [&[&[f32]]; 2], out: &mut [f32], weights: &mut Vec<f32>) {
    fold(op, query, lists, out, weights);
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2(op: Op, query: &[f32], lists: [&[&[f32]]; 2], out: &mut [f32], weights: &mut Vec<f32>) {
    fold(op, query, lists, out, weights);
}

#[inline(always)]
fn fold(op: Op, query: &[f32], [first, second]: [&[&[f32]]; 2], out: &mut [f32], weights: &mut Vec<f32>) {
    weights.clear();
    match op {
        Op::ListFold(ListFold::Sum) => list::sum(first, out),
        Op::ListFold(ListFold::Mean) => list::mean(first, out),
        Op::ListFold(ListFold::Max) => list::max(first, out),
        Op::WeightedSum { softmax: false } => list::weighted_sum(first, second, out),
        Op::WeightedSum { softmax: true } => {
            let width = first.first().map_or(0, |scores| scores.len());
            if width == 1 {
                weights.extend(first.iter().map(|score| score[0]));
                softmax_of_numbers(weights);
            } else {
                softmax_of_rows(first, width, weights);
            }
            weighted_by(weights, width, second, out);
        }
        Op::Attend { scale } => {
            for key in first {
                weights.push(scalar::mul(row::dot(query, key), scale.get()));
            }
            softmax_of_numbers(weights);
            weighted_by(weights, 1, second, out);
        }
        _ => {}
    }
}

/// `list::softmax` of scores of width 1 that stand side by side. Exponentials are computed in whole groups; what fills the last one up is cut
/// off before the sum.
#[inline(always)]
pub(super) fn softmax_of_numbers(scores: &mut Vec<f32>) {
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

/// `list::softmax` of wider scores: `weights` receives one row per score.
#[inline(always)]
pub(super) fn softmax_of_rows(scores: &[&[f32]], width: usize, weights: &mut Vec<f32>) {
    // Two more rows: the maxima, then the sums.
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
}

/// `list::weighted_sum` with weights that stand side by side, `width` for each value.
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

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::plan::row_ops::{Scratch, seg_op};

    fn rows(count: usize, width: usize, wild: bool) -> Vec<Vec<f32>> {
        let strange = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 1e-40, 3e38];
        (0..count)
            .map(|i| {
                (0..width)
                    .map(|j| match (i * 31 + j * 17) % 13 {
                        n if wild && n < strange.len() => strange[n],
                        _ => ((i * 7 + j * 3) as f32 * 0.37).sin() * 4.0,
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn folds_on_every_instruction_set_have_the_bits_of_the_definitions() {
        let mut ops = vec![Op::WeightedSum { softmax: false }, Op::WeightedSum { softmax: true }];
        ops.extend([ListFold::Sum, ListFold::Mean, ListFold::Max].map(Op::ListFold));
        ops.push(Op::Attend { scale: 0.125.into() });
        for (count, width, wild) in
            [(0, 5, false), (1, 1, false), (3, 37, true), (40, 16, false), (17, 100, true)]
        {
            for scores_width in [1, width] {
                let (scores, values) = (rows(count, scores_width, wild), rows(count, width, wild));
                let query = &rows(1, scores_width, false)[0];
                let scores: Vec<&[f32]> = scores.iter().map(Vec::as_slice).collect();
                let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
                for &op in &ops {
                    let lists: &[&[&[f32]]] = match op {
                        Op::ListFold(_) => &[&values],
                        _ => &[&scores, &values],
                    };
                    let (first, second) = (lists[0], lists.get(1).copied().unwrap_or(&[]));
                    let mut expected = vec![7.0f32; width];
                    seg_op(op, query, lists, &mut expected, &mut Scratch::default());
                    for isa in Isa::available() {
                        let mut found = vec![9.0f32; width];
                        // SAFETY: the instruction set is available.
                        unsafe { run(isa, op, query, [first, second], &mut found, &mut Vec::new()) };
                        let same = found.iter().zip(&expected).all(|(&a, &b)| scalar_same(a, b));
                        assert!(same, "{op:?} {isa:?} {count} {width}: {found:?}, not {expected:?}");
                    }
                }
            }
        }
    }

    fn scalar_same(a: f32, b: f32) -> bool {
        autobatch_ir::numeric::same_bits(a, b)
    }
}
