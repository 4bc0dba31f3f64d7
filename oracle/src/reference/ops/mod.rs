//! The definition of every op, for the elements of one node.
//!
//! [`numeric`](autobatch_ir::numeric) defines the bits. This module selects the function of each op and the order of
//! elements, which is row-major. A *row* is a range along the innermost axis.

use super::datum::{Argument, Datum};
use super::error::{Checked, malformed};
use super::frame::Call;
use autobatch_ir::graph::Op;
use autobatch_ir::numeric::Real;
use autobatch_ir::with_unary;

mod elementwise;
mod index;
mod lists;
mod losses;
pub(crate) mod movement;
mod product;
mod rows;

pub(crate) use elementwise::takes_second;
pub(crate) use index::{label, mask, place_of, row_of};
pub(crate) use lists::PICKED;
pub(crate) use losses::label_loss;
pub(crate) use product::{Chains, matrices};

/// The results of an op.
pub(crate) fn evaluate<T: Real>(op: &Op, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    match op {
        Op::Port(_) => malformed("a port is not at the start of a body"),
        Op::List | Op::Append => malformed("a list is not a value"),
        Op::Input(_) | Op::StopGradient | Op::ScaleGradient { .. } => identity(call),
        Op::Fill { ty, bits } => elementwise::fill(*ty, *bits),
        Op::Param => Ok(vec![Datum::floats(call.params[0].values)]),
        Op::Unary(unary) => with_unary!(*unary, |f| elementwise::map(call, f)),
        Op::LeakyRelu { slope } => elementwise::map(call, |x| x.leaky_relu(T::from_f32(slope.get()))),
        Op::Elu { alpha } => elementwise::map(call, |x| x.elu(T::from_f32(alpha.get()))),
        Op::Clamp { low, high } => {
            elementwise::map(call, |x| x.clamp(T::from_f32(low.get()), T::from_f32(high.get())))
        }
        Op::Binary(binary) => elementwise::binary(*binary, call),
        Op::Compare(compare) => elementwise::compare(*compare, call),
        Op::Select => elementwise::select(call),
        Op::Cast(to) => elementwise::cast(*to, call),
        Op::Broadcast(_)
        | Op::Concat { .. }
        | Op::Split { .. }
        | Op::Slice { .. }
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Pick
        | Op::Stack => movement::evaluate(op, call),
        Op::Affine { bias, transposed } => {
            product::affine(Chains { bias: *bias, transposed: *transposed, ..Chains::default() }, call)
        }
        Op::AffineRows { row, bias, onto } => {
            product::affine(Chains { row: *row as usize, bias: *bias, onto: *onto, transposed: false }, call)
        }
        Op::Matmul => product::matmul(call),
        Op::Dot => product::dot(call),
        Op::Outer => product::outer(call),
        Op::Reduce { fold, over } => rows::reduce(*fold, *over, call),
        Op::ArgMax => rows::argmax(call),
        Op::TopK { k } => rows::top_k(*k as usize, call),
        Op::Softmax => rows::map_rows(call, autobatch_ir::numeric::row::softmax),
        Op::LogSoftmax => rows::map_rows(call, autobatch_ir::numeric::row::log_softmax),
        Op::LogSumExp => rows::fold_rows(call, autobatch_ir::numeric::row::logsumexp),
        Op::Norm => rows::fold_rows(call, autobatch_ir::numeric::row::norm),
        Op::LayerNorm { eps } => rows::map_rows(call, |row, out| {
            autobatch_ir::numeric::row::layer_norm(row, T::from_f32(eps.get()), out);
        }),
        Op::ListFold(fold) => lists::fold(*fold, call),
        Op::ListPick => lists::pick(call),
        Op::WeightedSum { softmax } => lists::weighted_sum(*softmax, call),
        Op::Attend { scale } => lists::attend(T::from_f32(scale.get()), call),
        Op::GraphAttend { slope } => lists::graph_attend(T::from_f32(slope.get()), call),
        Op::Lookup => index::lookup(call),
        Op::OneHot { width } => index::one_hot(*width as usize, call),
        Op::PickNegLogSoftmax => losses::pick_neg_log_softmax(call),
        Op::LabelLoss => Ok(floats(vec![losses::label_loss(call)?.0.loss])),
        Op::CrossEntropy => losses::of_pair(call, autobatch_ir::numeric::loss::cross_entropy),
        Op::KlDiv => losses::of_pair(call, autobatch_ir::numeric::loss::kl_div),
        Op::Mse => losses::of_pair(call, autobatch_ir::numeric::loss::mse),
        Op::Bce => losses::of_pair(call, autobatch_ir::numeric::loss::bce),
        Op::Hinge { margin } => losses::hinge(T::from_f32(margin.get()), call),
        Op::Dropout { rate, ordinal } => index::dropout(rate.get(), *ordinal, call),
        Op::ForkNoise { ordinal } => index::fork_noise(*ordinal, call),
    }
}

/// `input`, `stop_gradient` and `scale_gradient` return their operand.
fn identity<T: Real>(call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    match &call.args[0] {
        Argument::One(datum) => Ok(vec![datum.clone()]),
        Argument::Many(_) => malformed("a list is not a value"),
    }
}

fn floats<T>(elements: Vec<T>) -> Vec<Datum<T>> {
    vec![Datum::floats(elements)]
}

/// The element at `index`; an operand of one element is broadcast.
pub(crate) fn at<N: Copy>(elements: &[N], index: usize) -> N {
    elements[if elements.len() == 1 { 0 } else { index }]
}
