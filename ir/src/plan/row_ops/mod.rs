//! The stages of a kernel, one value at a time, by the definitions of [`numeric`].
//!
//! The naive executor consists of these functions, and a runtime may use them for stages without a kernel of its own. Values
//! are runs of words, and a float is its bits, so one type of buffer serves all element types. Only a [`Scratch`] allocates,
//! when it grows.
//!
//! The widths of all runs are those of the types. Rules P11 to P13 guarantee this for stages of a verified plan.
//!
//! [`numeric`]: crate::numeric

mod elementwise;
mod lists;

pub use crate::numeric::noise::Noise;
pub use elementwise::{cast_element, has_slope, integer_binary, integer_compare, map_element};
pub use lists::{Scratch, attend_grad, attend_pull, mean_grad, reader_width, seg_grad, seg_op};

use crate::graph::{Fold, Op, Over};
use crate::hash::noise_key;
use crate::numeric::noise::Stream;
use crate::numeric::{loss, noise, product, row};
use crate::types::{Shape, Type};

/// The part of a kernel that executes an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Template {
    /// No stage: the op is a port, or a source kernel.
    Source,
    /// No stage: the op is a view of its operands.
    View,
    /// No stage: the op is a list of a fold.
    List,
    /// A map stage.
    Map,
    /// A product.
    Prod,
    /// A lookup.
    Lookup,
    /// The loss of a label.
    LabelLoss,
    /// A fold over lists.
    Seg,
    /// A row stage.
    Row,
}

/// The part of a kernel that executes `op`.
#[must_use]
pub const fn template(op: Op) -> Template {
    match op {
        Op::Port(_) | Op::Input(_) | Op::Fill { .. } | Op::Param => Template::Source,
        Op::Reshape(_) | Op::Stack | Op::StopGradient | Op::ScaleGradient { .. } => Template::View,
        Op::List | Op::Append => Template::List,
        Op::Unary(_)
        | Op::LeakyRelu { .. }
        | Op::Elu { .. }
        | Op::Clamp { .. }
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select
        | Op::Cast(_) => Template::Map,
        Op::Affine { .. } | Op::AffineRows { .. } => Template::Prod,
        Op::Lookup => Template::Lookup,
        Op::LabelLoss => Template::LabelLoss,
        Op::ListFold(_)
        | Op::ListPick
        | Op::WeightedSum { .. }
        | Op::Attend { .. }
        | Op::GraphAttend { .. } => Template::Seg,
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

fn floats(words: &[u32]) -> &[f32] {
    bytemuck::cast_slice(words)
}

fn floats_mut(words: &mut [u32]) -> &mut [f32] {
    bytemuck::cast_slice_mut(words)
}

/// Computes a row stage: `dsts = op(sources)`. An op of another template has no effect.
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
        (_, [(a, a_ty), (b, b_ty)]) => two_operands(op, a, *a_ty, b, *b_ty, dsts[0]),
        _ => {}
    }
}

/// Calls `each(row of x, row of the result)` for every row. A result row has `out.len() / rows` words.
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

fn two_operands(op: Op, a: &[u32], a_ty: Type, b: &[u32], b_ty: Type, out: &mut [u32]) {
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

/// The number of elements in one step along an axis, and the number of runs along it.
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

/// Per axis the distance between neighbours.
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
    if let [rows, columns] = *from.dims()
        && permutation[0] == 1
    {
        return transpose_matrix(x, [rows as usize, columns as usize], out);
    }
    let own = strides(from);
    let (mut steps, mut dims) = ([0; Shape::MAX_RANK], [0; Shape::MAX_RANK]);
    for axis in 0..from.rank() {
        let source = permutation[axis] as usize;
        (steps[axis], dims[axis]) = (own[source], from.dims()[source]);
    }
    walk(x, &dims[..from.rank()], &steps, out);
}

/// Transposes some rows at a time, so that few lines of the result are open at once.
fn transpose_matrix(x: &[u32], [rows, columns]: [usize; 2], out: &mut [u32]) {
    const ROWS: usize = 16;
    for (first, block) in (0..rows).step_by(ROWS).zip(x.chunks(ROWS * columns)) {
        let count = ROWS.min(rows - first);
        for (column, result) in out.chunks_exact_mut(rows).enumerate() {
            for (to, row) in result[first..first + count].iter_mut().zip(block.chunks_exact(columns)) {
                *to = row[column];
            }
        }
    }
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

#[cfg(test)]
#[path = "tests/moves.rs"]
mod tests;
