//! What the stages of a kernel compute, one value at a time, straight from [`numeric`].
//!
//! The plan interpreter is made of these functions, and a runtime may fall back on them wherever it
//! has no kernel of its own. Values are runs of words; a float is its bits, so one type of buffer
//! serves all element types. Nothing is allocated but the growth of a [`Scratch`], once.
//!
//! The widths of all runs are those that the types say; the verifier's rules P11 to P13 see to that
//! for stages of a verified plan.
//!
//! [`numeric`]: crate::numeric

use super::Code;
use crate::graph::{Binary, Compare, Fold, ListFold, Op, Over, Unary};
use crate::hash::noise_key;
pub use crate::numeric::noise::Noise;
use crate::numeric::noise::Stream;
use crate::numeric::{Real, int, list, loss, noise, product, row, scalar};
use crate::types::{DType, Shape, Type};

/// Which part of a kernel plays an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Template {
    /// None: it is a port, or a kernel of its own that brings numbers in.
    Source,
    /// None: it is a range of its operands' elements, or the very same elements.
    View,
    /// None: it is a list of a fold.
    List,
    /// A map stage.
    Map,
    /// A product.
    Prod,
    /// A lookup.
    Lookup,
    /// A fold over lists.
    Seg,
    /// A row stage.
    Row,
}

/// Which part of a kernel plays `op`.
#[must_use]
pub const fn template(op: Op) -> Template {
    match op {
        Op::Port(_) | Op::Input(_) | Op::Fill { .. } | Op::Param => Template::Source,
        Op::Reshape(_) | Op::Stack | Op::StopGradient | Op::ScaleGradient { .. } => Template::View,
        Op::List => Template::List,
        Op::Unary(_)
        | Op::LeakyRelu { .. }
        | Op::Elu { .. }
        | Op::Clamp { .. }
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select
        | Op::Cast(_) => Template::Map,
        Op::Affine { .. } | Op::AffineRows { .. } => Template::Prod,
        Op::Lookup { .. } => Template::Lookup,
        Op::ListFold(_) | Op::WeightedSum { .. } | Op::Attend { .. } => Template::Seg,
        Op::Broadcast(_)
        | Op::Matmul
        | Op::Dot
        | Op::Outer
        | Op::Concat { .. }
        | Op::Split { .. }
        | Op::Slice { .. }
        | Op::Transpose(_)
        | Op::Pick
        | Op::Reduce { .. }
        | Op::ArgMax
        | Op::TopK { .. }
        | Op::Softmax
        | Op::LogSoftmax
        | Op::LogSumExp
        | Op::Norm
        | Op::LayerNorm { .. }
        | Op::OneHot { .. }
        | Op::PickNegLogSoftmax
        | Op::CrossEntropy
        | Op::KlDiv
        | Op::Mse
        | Op::Bce
        | Op::Hinge { .. }
        | Op::Dropout { .. }
        | Op::ForkNoise { .. } => Template::Row,
    }
}

/// Buffers that folds over lists need; they grow to the largest list and stay.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    weights: Vec<f32>,
}

/// One element of an elementwise function: operands and result as words, `dtype` being the element
/// type that `code` computes in. Operands that the code does not take are not looked at.
#[inline]
#[must_use]
pub fn map_element(code: Code, dtype: DType, [a, b, c]: [u32; 3]) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match code {
        Code::Copy => a,
        Code::Unary(unary) => unary_element(unary, x).to_bits(),
        Code::LeakyRelu(slope) => scalar::leaky_relu(x, slope.get()).to_bits(),
        Code::Elu(alpha) => scalar::elu(x, alpha.get()).to_bits(),
        Code::Clamp(low, high) => scalar::clamp(x, low.get(), high.get()).to_bits(),
        Code::Slope(unary) => slope_element(unary, x).to_bits(),
        Code::Binary(binary) => match dtype {
            DType::F32 => float_binary(binary, x, y).to_bits(),
            DType::I32 => signed_binary(binary, a, b),
            _ => unsigned_binary(binary, a, b),
        },
        Code::Compare(compare) => match dtype {
            DType::F32 => compared(compare, x.partial_cmp(&y)),
            DType::I32 => compared(compare, Some((a as i32).cmp(&(b as i32)))),
            _ => compared(compare, Some(a.cmp(&b))),
        },
        Code::Select => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        Code::Cast(to) => cast_element(dtype, to, a),
    }
}

/// Whether [`Code::Slope`] knows the slope of a function.
#[must_use]
pub const fn has_slope(unary: Unary) -> bool {
    matches!(
        unary,
        Unary::Tanh | Unary::Sigmoid | Unary::Relu | Unary::Gelu | Unary::Silu | Unary::Softplus | Unary::Erf
    )
}

fn slope_element(unary: Unary, x: f32) -> f32 {
    match unary {
        Unary::Tanh => x.tanh_slope_of_result(),
        Unary::Sigmoid => x.sigmoid_slope_of_result(),
        Unary::Relu => x.relu_slope(),
        Unary::Gelu => x.gelu_slope(),
        Unary::Silu => x.silu_slope(),
        Unary::Softplus => x.softplus_slope(),
        Unary::Erf => x.erf_slope(),
        _ => f32::NAN,
    }
}

fn unary_element(unary: Unary, x: f32) -> f32 {
    match unary {
        Unary::Neg => scalar::neg(x),
        Unary::Abs => scalar::abs(x),
        Unary::Exp => scalar::exp(x),
        Unary::Log => scalar::log(x),
        Unary::Sqrt => scalar::sqrt(x),
        Unary::Rsqrt => scalar::rsqrt(x),
        Unary::Square => scalar::square(x),
        Unary::Recip => scalar::recip(x),
        Unary::Tanh => scalar::tanh(x),
        Unary::Sigmoid => scalar::sigmoid(x),
        Unary::Relu => scalar::relu(x),
        Unary::Gelu => scalar::gelu(x),
        Unary::Silu => scalar::silu(x),
        Unary::Softplus => scalar::softplus(x),
        Unary::Sin => scalar::sin(x),
        Unary::Cos => scalar::cos(x),
        Unary::Erf => scalar::erf(x),
        Unary::Sign => scalar::sign(x),
    }
}

fn float_binary(binary: Binary, x: f32, y: f32) -> f32 {
    match binary {
        Binary::Add => scalar::add(x, y),
        Binary::Sub => scalar::sub(x, y),
        Binary::Mul => scalar::mul(x, y),
        Binary::Div => scalar::div(x, y),
        Binary::Pow => scalar::pow(x, y),
        Binary::Min => scalar::min(x, y),
        Binary::Max => scalar::max(x, y),
    }
}

/// Division and powers are for floats only; types see to it that they do not arrive here.
fn unsigned_binary(binary: Binary, a: u32, b: u32) -> u32 {
    match binary {
        Binary::Add => int::add(a, b),
        Binary::Sub => int::sub(a, b),
        Binary::Mul => int::mul(a, b),
        Binary::Min => int::min(a, b),
        Binary::Max => int::max(a, b),
        Binary::Div | Binary::Pow => 0,
    }
}

/// Two's complement: sums and products have the bits of unsigned ones, order has not.
fn signed_binary(binary: Binary, a: u32, b: u32) -> u32 {
    match binary {
        Binary::Min => (a as i32).min(b as i32) as u32,
        Binary::Max => (a as i32).max(b as i32) as u32,
        _ => unsigned_binary(binary, a, b),
    }
}

fn compared(compare: Compare, order: Option<std::cmp::Ordering>) -> u32 {
    u32::from(match compare {
        Compare::Eq => order.is_some_and(|order| order.is_eq()),
        Compare::Ne => order.is_none_or(|order| order.is_ne()),
        Compare::Lt => order.is_some_and(|order| order.is_lt()),
        Compare::Le => order.is_some_and(|order| order.is_le()),
        Compare::Gt => order.is_some_and(|order| order.is_gt()),
        Compare::Ge => order.is_some_and(|order| order.is_ge()),
    })
}

/// Floats become integers by truncation, out of range the nearest, NaN 0; anything but zero is true.
fn cast_element(from: DType, to: DType, word: u32) -> u32 {
    let float = f32::from_bits(word);
    match (from, to) {
        (DType::F32, DType::I32) => float as i32 as u32,
        (DType::F32, DType::U32) => float as u32,
        (DType::F32, DType::Bool) => u32::from(float != 0.0),
        (DType::I32, DType::F32) => (word as i32 as f32).to_bits(),
        (DType::U32 | DType::Bool, DType::F32) => (word as f32).to_bits(),
        (DType::I32 | DType::U32, DType::Bool) => u32::from(word != 0),
        _ => word,
    }
}

fn floats(words: &[u32]) -> &[f32] {
    bytemuck::cast_slice(words)
}

fn floats_mut(words: &mut [u32]) -> &mut [f32] {
    bytemuck::cast_slice_mut(words)
}

/// What a row stage computes: `dsts = op(sources)`. An op of another template changes nothing.
pub fn row_op(op: Op, noise: Noise, sources: &[(&[u32], Type)], dsts: &mut [&mut [u32]]) {
    match (op, sources) {
        (Op::Concat { axis }, _) => concat(axis, sources, &mut *dsts[0]),
        (Op::Split { axis, .. }, [(whole, ty)]) => split(axis, whole, *ty, dsts),
        (Op::ForkNoise { ordinal }, [(low, _), (high, _)]) => {
            let key = noise_key([low[0], high[0]], ordinal);
            dsts[0][0] = key[0];
            dsts[1][0] = key[1];
        }
        (Op::TopK { k }, [(x, ty)]) => top_k(k as usize, floats(x), ty.shape.width(), dsts),
        (Op::Dropout { rate, ordinal }, [(x, _), (low, _), (high, _)]) => match noise {
            Noise::Off => dsts[0].copy_from_slice(x),
            Noise::On { seed, step } => {
                let [low, high] = noise_key([low[0], high[0]], ordinal);
                let stream = Stream::new(seed, step, u64::from(high) << 32 | u64::from(low));
                noise::dropout(floats(x), rate.get(), stream, floats_mut(dsts[0]));
            }
        },
        (_, [(x, ty)]) => one_operand(op, x, *ty, dsts[0]),
        (_, [(a, a_ty), (b, b_ty)]) => two_operands(op, (a, *a_ty), (b, *b_ty), dsts[0]),
        _ => {}
    }
}

/// Row by row: `each(row of x, row of the result)`, where a result row has `out.len() / rows` words.
fn by_rows(x: &[u32], ty: Type, out: &mut [u32], each: impl Fn(&[f32], &mut [u32])) {
    let out_width = out.len() / ty.shape.rows();
    for (row, result) in floats(x).chunks_exact(ty.shape.width()).zip(out.chunks_exact_mut(out_width)) {
        each(row, result);
    }
}

fn one_operand(op: Op, x: &[u32], ty: Type, out: &mut [u32]) {
    let number = |f: fn(&[f32]) -> f32| move |row: &[f32], out: &mut [u32]| out[0] = f(row).to_bits();
    match op {
        Op::Broadcast(shape) => broadcast(x, ty.shape, shape, out),
        Op::Slice { axis, start, len } => slice(axis, start as usize, len as usize, x, ty.shape, out),
        Op::Transpose(permutation) => transpose(permutation.0, x, ty.shape, out),
        Op::Reduce { fold, over } => {
            let f = match fold {
                Fold::Sum => row::sum,
                Fold::Mean => row::mean,
                Fold::Max => row::max,
                Fold::Min => row::min,
            };
            match over {
                Over::Last => by_rows(x, ty, out, number(f)),
                Over::All => out[0] = f(floats(x)).to_bits(),
            }
        }
        Op::ArgMax => by_rows(x, ty, out, |row, out| out[0] = row::argmax(row)),
        Op::Softmax => by_rows(x, ty, out, |row, out| row::softmax(row, floats_mut(out))),
        Op::LogSoftmax => by_rows(x, ty, out, |row, out| row::log_softmax(row, floats_mut(out))),
        Op::LogSumExp => by_rows(x, ty, out, number(row::logsumexp)),
        Op::Norm => by_rows(x, ty, out, number(row::norm)),
        Op::LayerNorm { eps } => {
            by_rows(x, ty, out, |row, out| row::layer_norm(row, eps.get(), floats_mut(out)));
        }
        Op::OneHot { width } => {
            out.fill(0f32.to_bits());
            out[x[0].min(width - 1) as usize] = 1f32.to_bits();
        }
        _ => {}
    }
}

fn two_operands(op: Op, (a, a_ty): (&[u32], Type), (b, b_ty): (&[u32], Type), out: &mut [u32]) {
    let (x, y) = (floats(a), floats(b));
    let labelled = |out: &mut [u32], f: &dyn Fn(&[f32], u32) -> f32| {
        for ((row, &label), result) in x.chunks_exact(a_ty.shape.width()).zip(b).zip(out) {
            *result = f(row, label).to_bits();
        }
    };
    match op {
        Op::Matmul => matmul(x, a_ty.shape, y, b_ty.shape, floats_mut(out)),
        Op::Dot => out[0] = row::dot(x, y).to_bits(),
        Op::Outer => product::outer(x, y, floats_mut(out)),
        Op::Pick => {
            let last = a_ty.shape.dims()[0] - 1;
            let at = b[0].min(last) as usize * out.len();
            out.copy_from_slice(&a[at..at + out.len()]);
        }
        Op::PickNegLogSoftmax => labelled(out, &|row, label| loss::pick_neg_log_softmax(row, label)),
        Op::Hinge { margin } => labelled(out, &|row, label| loss::hinge(row, label, margin.get())),
        Op::CrossEntropy => out[0] = loss::cross_entropy(x, y).to_bits(),
        Op::KlDiv => out[0] = loss::kl_div(x, y).to_bits(),
        Op::Mse => out[0] = loss::mse(x, y).to_bits(),
        Op::Bce => out[0] = loss::bce(x, y).to_bits(),
        _ => {}
    }
}

/// A vector is a row on the left and a column on the right.
fn matmul(x: &[f32], x_shape: Shape, y: &[f32], y_shape: Shape, out: &mut [f32]) {
    let inner = x_shape.width();
    let columns = if y_shape.rank() == 1 { 1 } else { y_shape.width() };
    for (row, results) in x.chunks_exact(inner).zip(out.chunks_exact_mut(columns)) {
        for (column, result) in results.iter_mut().enumerate() {
            *result = product::prod_chain(0.0, &[product::Part::column(row, y, columns, 0, column)]);
        }
    }
}

/// Elements inside one step along an axis, and how many runs of them there are outside of it.
fn around(shape: Shape, axis: u8) -> (usize, usize, usize) {
    let axis = axis as usize;
    let product = |dims: &[u32]| dims.iter().map(|&extent| extent as usize).product::<usize>();
    let dims = shape.dims();
    (product(&dims[..axis]), dims[axis] as usize, product(&dims[axis + 1..]))
}

fn concat(axis: u8, sources: &[(&[u32], Type)], out: &mut [u32]) {
    let run = |ty: &Type| {
        let (_, extent, inner) = around(ty.shape, axis);
        extent * inner
    };
    let total: usize = sources.iter().map(|(_, ty)| run(ty)).sum();
    let mut at = 0;
    for (words, ty) in sources {
        let run = run(ty);
        for (from, to) in words.chunks_exact(run).zip(out.chunks_exact_mut(total)) {
            to[at..at + run].copy_from_slice(from);
        }
        at += run;
    }
}

fn split(axis: u8, whole: &[u32], ty: Type, dsts: &mut [&mut [u32]]) {
    let (_, extent, _) = around(ty.shape, axis);
    let len = extent / dsts.len();
    for (number, dst) in dsts.iter_mut().enumerate() {
        slice(axis, number * len, len, whole, ty.shape, dst);
    }
}

fn slice(axis: u8, start: usize, len: usize, x: &[u32], shape: Shape, out: &mut [u32]) {
    let (_, extent, inner) = around(shape, axis);
    for (from, to) in x.chunks_exact(extent * inner).zip(out.chunks_exact_mut(len * inner)) {
        to.copy_from_slice(&from[start * inner..(start + len) * inner]);
    }
}

/// Per axis how far its neighbours lie apart.
fn strides(shape: Shape) -> [usize; Shape::MAX_RANK] {
    let mut strides = [0; Shape::MAX_RANK];
    let mut step = 1;
    for (axis, &extent) in shape.dims().iter().enumerate().rev() {
        strides[axis] = step;
        step *= extent as usize;
    }
    strides
}

/// Copies element by element: result axis `i` walks `x` in steps of `steps[i]`.
fn walk(x: &[u32], dims: &[u32], steps: &[usize; Shape::MAX_RANK], out: &mut [u32]) {
    let mut index = [0u32; Shape::MAX_RANK];
    let mut at = 0;
    for result in out {
        *result = x[at];
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            at += steps[axis];
            if index[axis] < dims[axis] {
                break;
            }
            at -= steps[axis] * dims[axis] as usize;
            index[axis] = 0;
        }
    }
}

fn broadcast(x: &[u32], from: Shape, to: Shape, out: &mut [u32]) {
    let own = strides(from);
    let mut steps = [0; Shape::MAX_RANK];
    let new = to.rank() - from.rank();
    for (axis, &extent) in from.dims().iter().enumerate() {
        steps[new + axis] = if extent == 1 { 0 } else { own[axis] };
    }
    walk(x, to.dims(), &steps, out);
}

fn transpose(permutation: [u8; Shape::MAX_RANK], x: &[u32], from: Shape, out: &mut [u32]) {
    let own = strides(from);
    let (mut steps, mut dims) = ([0; Shape::MAX_RANK], [0; Shape::MAX_RANK]);
    for axis in 0..from.rank() {
        let source = permutation[axis] as usize;
        (steps[axis], dims[axis]) = (own[source], from.dims()[source]);
    }
    walk(x, &dims[..from.rank()], &steps, out);
}

fn top_k(k: usize, x: &[f32], width: usize, dsts: &mut [&mut [u32]]) {
    let [values, indices] = dsts else { return };
    let results = values.chunks_exact_mut(k).zip(indices.chunks_exact_mut(k));
    for (row, (values, indices)) in x.chunks_exact(width).zip(results) {
        row::top_k(row, indices);
        for (value, &index) in values.iter_mut().zip(&*indices) {
            *value = row[index as usize].to_bits();
        }
    }
}

/// What a fold over lists computes: `out = op(query, lists)`. Only attention has a query. An op of
/// another template changes nothing.
pub fn seg_op(op: Op, query: &[f32], lists: &[&[&[f32]]], out: &mut [f32], scratch: &mut Scratch) {
    match (op, lists) {
        (Op::ListFold(ListFold::Sum), [values]) => list::sum(values, out),
        (Op::ListFold(ListFold::Mean), [values]) => list::mean(values, out),
        (Op::ListFold(ListFold::Max), [values]) => list::max(values, out),
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
            weights.clear();
            weights.extend(keys.iter().map(|key| scalar::mul(row::dot(query, key), scale.get())));
            softmax_of_numbers(weights);
            weighted_by(weights, values, out);
        }
        _ => {}
    }
}

/// What a fold over lists hands back, by the rules of [`reference::derivative`]: `outs` take the
/// gradients of the values of its lists side by side, `query_out` that of the query. A slice without
/// elements is not wanted.
///
/// [`reference::derivative`]: crate::reference::derivative
pub fn seg_grad(
    op: Op,
    query: &[f32],
    lists: &[&[&[f32]]],
    dy: &[f32],
    query_out: &mut [f32],
    outs: &mut [&mut [f32]],
) {
    match (op, lists, outs) {
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
        (Op::Attend { scale }, [keys, values], [dk, dv]) => {
            let score = |key: &&[f32]| scalar::mul(row::dot(query, key), scale.get());
            let scores: Vec<f32> = keys.iter().map(score).collect();
            let columns: Vec<&[f32]> = scores.chunks(1).collect();
            let mut weights = scores.clone();
            list::softmax(&columns, &mut weights);
            let mut ds = softmax_grads(&weights, &coefficient_grads(1, values, dy), 1);
            ds.iter_mut().for_each(|ds| *ds = scalar::mul(*ds, scale.get()));
            value_grads(&weights, dy, dv);
            value_grads(&ds, query, dk);
            if !query_out.is_empty() {
                let columns: Vec<&[f32]> = ds.chunks(1).collect();
                list::weighted_sum(&columns, keys, query_out);
            }
        }
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
        ListFold::Mean => {
            let count = values.len() as f32;
            rows.for_each(|row| row.iter_mut().zip(dy).for_each(|(dx, &dy)| *dx = scalar::div(dy, count)));
        }
        ListFold::Max => {
            let mut winners = vec![0; dy.len()];
            list::argmax(values, &mut winners);
            for (number, row) in rows.enumerate() {
                for ((dx, &dy), &winner) in row.iter_mut().zip(dy).zip(&winners) {
                    *dx = if winner as usize == number { dy } else { 0.0 };
                }
            }
        }
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

/// [`list::softmax`] of scores of width 1 that stand side by side.
fn softmax_of_numbers(scores: &mut [f32]) {
    let Some(top) = scores.iter().copied().reduce(scalar::max) else { return };
    for score in &mut *scores {
        *score = scalar::exp(scalar::sub(*score, top));
    }
    let total = scores.iter().copied().reduce(scalar::add).unwrap_or(0.0);
    let scale = scalar::recip(total);
    for score in scores {
        *score = scalar::mul(*score, scale);
    }
}

/// [`list::weighted_sum`] with weights that stand side by side.
fn weighted_by(weights: &[f32], values: &[&[f32]], out: &mut [f32]) {
    out.fill(0.0);
    if values.is_empty() {
        return;
    }
    for (weight, value) in weights.chunks_exact((weights.len() / values.len()).max(1)).zip(values) {
        list_fma(weight, value, out);
    }
}

fn list_fma(weight: &[f32], value: &[f32], out: &mut [f32]) {
    if let [weight] = weight {
        for (result, &x) in out.iter_mut().zip(value) {
            *result = scalar::fma(*weight, x, *result);
        }
    } else {
        for (result, (&c, &x)) in out.iter_mut().zip(weight.iter().zip(value)) {
            *result = scalar::fma(c, x, *result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Float;

    #[test]
    fn folds_with_scratch_have_the_bits_of_the_definitions() {
        let rows: Vec<Vec<f32>> =
            (0..5).map(|i| (0..3).map(|j| ((i * 7 + j * 3) as f32 * 0.37).sin()).collect()).collect();
        let keys: Vec<Vec<f32>> =
            (0..5).map(|i| (0..3).map(|j| ((i * 5 + j * 11) as f32 * 0.21).cos()).collect()).collect();
        let query = [0.3f32, -1.2, 0.7];
        let mut scratch = Scratch::default();
        for len in [5, 1, 0, 3] {
            let values: Vec<&[f32]> = rows[..len].iter().map(Vec::as_slice).collect();
            let keys: Vec<&[f32]> = keys[..len].iter().map(Vec::as_slice).collect();
            let narrow: Vec<&[f32]> = keys.iter().map(|key| &key[..1]).collect();
            let (mut own, mut defined) = ([0f32; 3], [0f32; 3]);
            let attend = Op::Attend { scale: Float::new(0.5) };
            seg_op(attend, &query, &[&keys, &values], &mut own, &mut scratch);
            list::attend(&query, &keys, &values, 0.5, &mut defined);
            assert_eq!(own.map(f32::to_bits), defined.map(f32::to_bits), "attend over {len}");
            for scores in [&keys, &narrow] {
                let wsum = Op::WeightedSum { softmax: true };
                seg_op(wsum, &[], &[scores, &values], &mut own, &mut scratch);
                list::softmax_weighted_sum(scores, &values, &mut defined);
                assert_eq!(own.map(f32::to_bits), defined.map(f32::to_bits), "softmax over {len}");
            }
        }
    }

    #[test]
    fn axes_are_moved_repeated_and_cut() {
        let ty = |dims: &[u32]| Type::new(DType::U32, Shape::new(dims).unwrap());
        let x: Vec<u32> = (0..6).collect();
        let play = |op: Op, sources: &[(&[u32], Type)], len: usize| {
            let mut out = vec![9; len];
            row_op(op, Noise::Off, sources, &mut [&mut out]);
            out
        };
        let matrix = (&x[..], ty(&[2, 3]));
        let transpose = Op::Transpose(crate::graph::Permutation::SWAP);
        assert_eq!(play(transpose, &[matrix], 6), [0, 3, 1, 4, 2, 5]);
        assert_eq!(play(Op::Slice { axis: 1, start: 1, len: 2 }, &[matrix], 4), [1, 2, 4, 5]);
        let column = (&x[..2], ty(&[2, 1]));
        assert_eq!(
            play(Op::Broadcast(Shape::new(&[2, 2, 2]).unwrap()), &[column], 8),
            [0, 0, 1, 1, 0, 0, 1, 1]
        );
        assert_eq!(play(Op::Concat { axis: 1 }, &[column, matrix], 8), [0, 0, 1, 2, 1, 3, 4, 5]);
        assert_eq!(play(Op::Pick, &[matrix, (&[7], crate::types::INDEX)], 3), [3, 4, 5]);
    }
}
