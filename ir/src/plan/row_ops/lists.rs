//! Folds over lists, and their gradients.

use crate::graph::{ListFold, Op};
use crate::numeric::{graph_attention, list, row, scalar};

/// Buffers of folds over lists, which grow to the largest list.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    weights: Vec<f32>,
}

/// Computes a fold over lists: `out = op(query, lists)`. The query is that of an attention, or the index of a pick. Words are
/// the bits of floats. An op of another template has no effect.
pub fn seg_op(op: Op, query: &[f32], lists: &[&[&[f32]]], out: &mut [f32], scratch: &mut Scratch) {
    match (op, lists) {
        (Op::ListFold(ListFold::Sum), [values]) => list::sum(values, out),
        (Op::ListFold(ListFold::Mean), [values]) => list::mean(values, out),
        (Op::ListFold(ListFold::Max), [values]) => list::max(values, out),
        (Op::ListFold(ListFold::LogSumExp), [values]) => list::logsumexp(values, out),
        (Op::ListFold(ListFold::ArgMax), [values]) => list::argmax(values, bytemuck::cast_slice_mut(out)),
        (Op::ListPick, [values]) => list::pick(values, query[0].to_bits(), out),
        (Op::WeightedSum { softmax: false }, [scores, values]) => list::weighted_sum(scores, values, out),
        (Op::WeightedSum { softmax: true }, [scores, values]) => {
            let weights = &mut scratch.weights;
            weights.clear();
            weights.resize(scores.iter().map(|score| score.len()).sum(), 0.0);
            list::softmax(scores, weights);
            weighted_by(weights, values, out);
        }
        (Op::Attend { scale }, [keys, values]) => {
            let weights = &mut scratch.weights;
            list::attention_weights(query, keys, scale.get(), weights);
            weighted_by(weights, values, out);
        }
        (Op::GraphAttend { slope }, [keys, values]) => {
            graph_attention::attend(query, keys, values, slope.get(), out);
        }
        _ => {}
    }
}

/// Computes the gradient of a fold over lists, by the rules of the oracle's `reference::derivative`. `outs` take the gradients
/// of the values of its lists, side by side. An empty slice takes none. Attention has stages of its own.
pub fn seg_grad(op: Op, query: &[f32], lists: &[&[&[f32]]], dy: &[f32], outs: &mut [&mut [f32]]) {
    match (op, lists, outs) {
        (Op::ListPick, [_], [out]) => list::pick_gradient(query[0].to_bits(), dy, out),
        (Op::ListFold(fold), [values], [out]) => fold_grad(fold, values, dy, out),
        (Op::WeightedSum { softmax }, [scores, values], [ds, dv]) => {
            let width = scores.first().map_or(1, |score| score.len());
            let mut weights: Vec<f32> = scores.concat();
            let mut dc = coefficient_grads(width, values, dy);
            if softmax {
                list::softmax(scores, &mut weights);
                dc = softmax_grads(&weights, &dc, width);
            }
            copy_wanted(&dc, ds);
            value_grads(&weights, dy, dv);
        }
        _ => {}
    }
}

/// The gradient of the mean of `count` values for each of them; of none, `dy`.
pub fn mean_grad(count: usize, dy: &[f32], out: &mut [f32]) {
    let count = count.max(1) as f32;
    out.iter_mut().zip(dy).for_each(|(dx, &dy)| *dx = scalar::div(dy, count));
}

/// The elements of the row of a reader of a key and its value; `None` if the op is no attention.
#[must_use]
pub fn reader_width(op: Op, [key, value]: [u32; 2]) -> Option<u64> {
    let [key, value] = [key, value].map(u64::from);
    match op {
        Op::Attend { .. } => Some(key + value + list::READER_NUMBERS as u64),
        Op::GraphAttend { .. } => Some(graph_attention::reader_width(key, value)),
        _ => None,
    }
}

/// The reverse of an attention for its query: its gradient, and the row that readers hand to [`attend_pull`]. An empty slice
/// takes nothing. An op that is no attention has no effect.
pub fn attend_grad(op: Op, query: &[f32], lists: [&[&[f32]]; 2], dy: &[f32], [dq, reader]: [&mut [f32]; 2]) {
    let (mut weights, mut slopes) = (Vec::new(), Vec::new());
    let both = [&mut weights, &mut slopes];
    let numbers = match op {
        Op::Attend { scale } => {
            let numbers = list::attention_slopes(query, lists, dy, scale.get(), both);
            let columns: Vec<&[f32]> = slopes.chunks(1).collect();
            list::weighted_sum(&columns, lists[0], dq);
            numbers.to_vec()
        }
        Op::GraphAttend { slope } => {
            let numbers = graph_attention::slopes(query, lists, dy, slope.get(), both);
            graph_attention::query_gradient(&slopes, dq);
            numbers
        }
        _ => return,
    };
    let elements = query.iter().chain(dy).chain(&numbers);
    reader.iter_mut().zip(elements).for_each(|(to, &element)| *to = element);
}

/// The reverse of an attention for one key and its value, over the rows of its readers. An empty slice takes nothing.
pub fn attend_pull(op: Op, key: &[f32], value: &[f32], readers: &[&[f32]], dsts: [&mut [f32]; 2]) {
    match op {
        Op::Attend { scale } => list::pull_attention(key, value, readers, scale.get(), dsts),
        Op::GraphAttend { slope } => graph_attention::pull(key, value, readers, slope.get(), dsts),
        _ => {}
    }
}

fn copy_wanted(from: &[f32], to: &mut [f32]) {
    if !to.is_empty() {
        to.copy_from_slice(from);
    }
}

fn fold_grad(fold: ListFold, values: &[&[f32]], dy: &[f32], out: &mut [f32]) {
    let rows = out.chunks_exact_mut(dy.len());
    match fold {
        ListFold::Sum => rows.for_each(|row| row.copy_from_slice(dy)),
        ListFold::Mean => rows.for_each(|row| mean_grad(values.len(), dy, row)),
        ListFold::Max => {
            let mut winners = vec![0; dy.len()];
            list::argmax(values, &mut winners);
            for (number, row) in rows.enumerate() {
                for ((dx, &dy), &winner) in row.iter_mut().zip(dy).zip(&winners) {
                    *dx = if winner as usize == number { dy } else { 0.0 };
                }
            }
        }
        ListFold::LogSumExp => {
            let mut tops = vec![0.0; dy.len()];
            list::max(values, &mut tops);
            list::softmax(values, out);
            list::logsumexp_gradient(&tops, dy, out);
        }
        // It has no gradient (rule P30).
        ListFold::ArgMax => {}
    }
}

/// `dc_i = dot(dy, v_i)` for a coefficient of one element, else `dy * v_i`.
fn coefficient_grads(width: usize, values: &[&[f32]], dy: &[f32]) -> Vec<f32> {
    let mut made = Vec::with_capacity(values.len() * width);
    for value in values {
        match width {
            1 => made.push(row::dot(dy, value)),
            _ => made.extend(dy.iter().zip(*value).map(|(&dy, &v)| scalar::mul(dy, v))),
        }
    }
    made
}

/// `ds_i = w_i * (dw_i - t)` with `t = chain over i from +0 of w_i * dw_i`, element by element.
fn softmax_grads(weights: &[f32], dw: &[f32], width: usize) -> Vec<f32> {
    let mut common = vec![0.0; width];
    for (w, dw) in weights.chunks_exact(width).zip(dw.chunks_exact(width)) {
        for ((t, &w), &dw) in common.iter_mut().zip(w).zip(dw) {
            *t = scalar::fma(w, dw, *t);
        }
    }
    let of = |((&w, &dw), t): ((&f32, &f32), &f32)| scalar::mul(w, scalar::sub(dw, *t));
    weights.iter().zip(dw).zip(common.iter().cycle()).map(of).collect()
}

/// `dv_i = c_i * dy`.
fn value_grads(coefficients: &[f32], dy: &[f32], out: &mut [f32]) {
    if out.is_empty() {
        return;
    }
    let width = coefficients.len() * dy.len() / out.len();
    for (row, c) in out.chunks_exact_mut(dy.len()).zip(coefficients.chunks_exact(width.max(1))) {
        for (e, (dv, &dy)) in row.iter_mut().zip(dy).enumerate() {
            *dv = scalar::mul(if let [c] = c { *c } else { c[e] }, dy);
        }
    }
}

/// [`list::weighted_sum`] with weights side by side.
fn weighted_by(weights: &[f32], values: &[&[f32]], out: &mut [f32]) {
    out.fill(0.0);
    if values.is_empty() {
        return;
    }
    for (weight, value) in weights.chunks_exact((weights.len() / values.len()).max(1)).zip(values) {
        list::add_weighted(weight, value, out);
    }
}

#[cfg(test)]
#[path = "tests/lists.rs"]
mod tests;
