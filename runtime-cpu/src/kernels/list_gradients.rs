//! What folds over lists hand back, compiled once for each instruction set.
//!
//! **Bits.** `ir::plan::row_ops::seg_grad` defines them; here the same functions are inlined into code that has fused multiply-adds and
//! vectors. Elements of a value are independent, and sums over a list go from left to right.

use super::isa::Isa;
use super::lists::{softmax_of_numbers, softmax_of_rows};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::numeric::{list, row, scalar};

/// A fold whose gradient `dy` is known. Only attention has a query, and sums have one list.
#[derive(Clone, Copy, Debug)]
pub struct FoldGradient<'a> {
    /// The fold.
    pub op: Op,
    /// The query of an attention.
    pub query: &'a [f32],
    /// Its lists: values; scores and values; keys and values.
    pub lists: [&'a [&'a [f32]]; 2],
    /// The gradient of its result.
    pub dy: &'a [f32],
}

/// Space that grows to the elements of the largest list of scores.
#[derive(Clone, Debug, Default)]
pub struct FoldSpace {
    weights: Vec<f32>,
    slopes: Vec<f32>,
    common: Vec<f32>,
    winners: Vec<u32>,
}

/// Computes the gradients of the values of both lists, side by side, and that of the query. A slice without elements is not wanted. An op
/// of another template changes nothing.
///
/// # Safety
/// `isa` is available.
pub unsafe fn run(
    isa: Isa,
    fold: FoldGradient<'_>,
    query_out: &mut [f32],
    outs: [&mut [f32]; 2],
    space: &mut FoldSpace,
) {
    match isa {
        // SAFETY: the caller vouches for the instruction set.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { run_avx512(fold, query_out, outs, space) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(fold, query_out, outs, space) },
        _ => fold.gradients(query_out, outs, space),
    }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn run_avx512(
    f: FoldGradient<'_>,
    query_out: &mut [f32],
    outs: [&mut [f32]; 2],
    space: &mut FoldSpace,
) {
    f.gradients(query_out, outs, space);
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2(f: FoldGradient<'_>, query_out: &mut [f32], outs: [&mut [f32]; 2], space: &mut FoldSpace) {
    f.gradients(query_out, outs, space);
}

impl FoldGradient<'_> {
    #[inline(always)]
    fn gradients(
        self,
        query_out: &mut [f32],
        [first_out, second_out]: [&mut [f32]; 2],
        space: &mut FoldSpace,
    ) {
        let Self { op, query, lists: [first, second], dy } = self;
        let FoldSpace { weights, slopes, common, winners } = space;
        weights.clear();
        slopes.clear();
        match op {
            Op::ListFold(fold) => of_one_list(fold, first, dy, first_out, winners),
            Op::WeightedSum { softmax } => {
                let width = first.first().map_or(1, |score| score.len());
                coefficients(width, second, dy, slopes);
                if softmax {
                    match width {
                        1 => {
                            weights.extend(first.iter().map(|score| score[0]));
                            softmax_of_numbers(weights);
                        }
                        _ => {
                            softmax_of_rows(first, width, weights);
                            weights.truncate(first.len() * width);
                        }
                    }
                    through_softmax(weights, slopes, width, common);
                } else {
                    first.iter().for_each(|score| weights.extend_from_slice(score));
                }
                if !first_out.is_empty() {
                    first_out.copy_from_slice(slopes);
                }
                scaled(weights, width, dy, second_out);
            }
            Op::Attend { scale } => {
                weights.extend(first.iter().map(|key| scalar::mul(row::dot(query, key), scale.get())));
                softmax_of_numbers(weights);
                coefficients(1, second, dy, slopes);
                through_softmax(weights, slopes, 1, common);
                for slope in &mut *slopes {
                    *slope = scalar::mul(*slope, scale.get());
                }
                scaled(weights, 1, dy, second_out);
                scaled(slopes, 1, query, first_out);
                if !query_out.is_empty() {
                    query_out.fill(0.0);
                    for (&slope, key) in slopes.iter().zip(first) {
                        for (sum, &k) in query_out.iter_mut().zip(*key) {
                            *sum = scalar::fma(slope, k, *sum);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

#[inline(always)]
fn of_one_list(fold: ListFold, values: &[&[f32]], dy: &[f32], out: &mut [f32], winners: &mut Vec<u32>) {
    let rows = out.chunks_exact_mut(dy.len().max(1));
    match fold {
        ListFold::Sum => rows.for_each(|row| row.copy_from_slice(dy)),
        ListFold::Mean => {
            let count = values.len() as f32;
            for row in rows {
                for (dx, &dy) in row.iter_mut().zip(dy) {
                    *dx = scalar::div(dy, count);
                }
            }
        }
        ListFold::Max => {
            winners.clear();
            winners.resize(dy.len(), 0);
            list::argmax(values, winners);
            for (number, row) in rows.enumerate() {
                for ((dx, &dy), &winner) in row.iter_mut().zip(dy).zip(&*winners) {
                    *dx = if winner as usize == number { dy } else { 0.0 };
                }
            }
        }
    }
}

/// `dc_i = dot(dy, v_i)` for a coefficient of one element, else `dy * v_i`.
#[inline(always)]
fn coefficients(width: usize, values: &[&[f32]], dy: &[f32], made: &mut Vec<f32>) {
    if width == 1 {
        made.extend(values.iter().map(|value| row::dot(dy, value)));
        return;
    }
    made.resize(values.len() * width, 0.0);
    for (row, value) in made.chunks_exact_mut(width.max(1)).zip(values) {
        for (dc, (&dy, &v)) in row.iter_mut().zip(dy.iter().zip(*value)) {
            *dc = scalar::mul(dy, v);
        }
    }
}

/// `ds_i = w_i * (dw_i - t)` with `t = chain over i from +0 of w_i * dw_i`, element by element, in place of `dw`.
#[inline(always)]
fn through_softmax(weights: &[f32], dw: &mut [f32], width: usize, common: &mut Vec<f32>) {
    if width == 1 {
        let mut t = 0.0;
        for (&w, &dw) in weights.iter().zip(&*dw) {
            t = scalar::fma(w, dw, t);
        }
        for (dw, &w) in dw.iter_mut().zip(weights) {
            *dw = scalar::mul(w, scalar::sub(*dw, t));
        }
        return;
    }
    common.clear();
    common.resize(width, 0.0);
    let width = width.max(1);
    for (w, dw) in weights.chunks_exact(width).zip(dw.chunks_exact(width)) {
        for (t, (&w, &dw)) in common.iter_mut().zip(w.iter().zip(dw)) {
            *t = scalar::fma(w, dw, *t);
        }
    }
    for (w, dw) in weights.chunks_exact(width).zip(dw.chunks_exact_mut(width)) {
        for (dw, (&w, &t)) in dw.iter_mut().zip(w.iter().zip(&*common)) {
            *dw = scalar::mul(w, scalar::sub(*dw, t));
        }
    }
}

/// `dv_i = c_i * dy`, where `c_i` has `width` elements.
#[inline(always)]
fn scaled(coefficients: &[f32], width: usize, dy: &[f32], out: &mut [f32]) {
    for (row, c) in out.chunks_exact_mut(dy.len().max(1)).zip(coefficients.chunks_exact(width.max(1))) {
        if let [c] = c {
            for (dv, &dy) in row.iter_mut().zip(dy) {
                *dv = scalar::mul(*c, dy);
            }
        } else {
            for (dv, (&c, &dy)) in row.iter_mut().zip(c.iter().zip(dy)) {
                *dv = scalar::mul(c, dy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::numeric::same_bits;
    use autobatch_ir::plan::row_ops::seg_grad;

    fn rows(count: usize, width: usize, salt: usize) -> Vec<Vec<f32>> {
        let element = |i: usize, j: usize| ((i * 7 + j * 3 + salt) as f32 * 0.37).sin() * 3.0;
        (0..count).map(|i| (0..width).map(|j| element(i, j)).collect()).collect()
    }

    #[test]
    fn gradients_of_folds_on_every_instruction_set_have_the_bits_of_the_definitions() {
        let mut ops = vec![Op::WeightedSum { softmax: false }, Op::WeightedSum { softmax: true }];
        ops.extend([ListFold::Sum, ListFold::Mean, ListFold::Max].map(Op::ListFold));
        ops.push(Op::Attend { scale: 0.125.into() });
        for (count, width) in [(0, 5), (1, 1), (1, 20), (3, 37), (40, 16), (17, 100)] {
            for (op, score_width) in ops.iter().flat_map(|&op| [(op, 1), (op, width)]) {
                let attends = matches!(op, Op::Attend { .. });
                let score_width = if attends { width } else { score_width };
                let (scores, values) = (rows(count, score_width, 1), rows(count, width, 5));
                let (query, dy) = (&rows(1, score_width, 9)[0], &rows(1, width, 2)[0]);
                let scores: Vec<&[f32]> = scores.iter().map(Vec::as_slice).collect();
                let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
                let lists: Vec<&[&[f32]]> = match op {
                    Op::ListFold(_) => vec![&values],
                    _ => vec![&scores, &values],
                };
                let query = if attends { &query[..] } else { &[] };
                let first = if lists.len() == 1 { width } else { score_width } * count;
                let second = if lists.len() == 1 { 0 } else { width * count };
                let mut wanted = (vec![7.0f32; query.len()], vec![7.0f32; first], vec![7.0f32; second]);
                let mut outs: Vec<&mut [f32]> = vec![&mut wanted.1];
                if lists.len() == 2 {
                    outs.push(&mut wanted.2);
                }
                seg_grad(op, query, &lists, dy, &mut wanted.0, &mut outs);
                let lists = [lists[0], lists.get(1).copied().unwrap_or(&[])];
                let fold = FoldGradient { op, query, lists, dy };
                for isa in Isa::available() {
                    let mut found = (vec![9.0f32; query.len()], vec![9.0f32; first], vec![9.0f32; second]);
                    let outs = [&mut found.1[..], &mut found.2[..]];
                    // SAFETY: the instruction set is available.
                    unsafe { run(isa, fold, &mut found.0, outs, &mut FoldSpace::default()) };
                    let pairs = [(&found.0, &wanted.0), (&found.1, &wanted.1), (&found.2, &wanted.2)];
                    let same =
                        |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).all(|(&a, &b)| same_bits(a, b));
                    assert!(pairs.into_iter().all(same), "{op:?} {isa:?} {count} {width}");
                }
            }
        }
    }
}
