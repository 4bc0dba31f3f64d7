//! The derivative rule of every op: from the gradients `dy` of the results to those of the operands.
//!
//! The rules use only [`Real`] and the folds of [`numeric`](autobatch_ir::numeric), so their bits are defined as
//! exactly as those of the forward ops. Products are chains of `fma` from `+0`. If several result elements contribute
//! to one operand element, their sum is [`row::sum`] in ascending order. `x` is an operand, `y` the result; a product
//! of several factors is multiplied from left to right.
//!
//! | op | rule |
//! |---|---|
//! | `neg` `add` `sub` | `dx = -dy`; `da = dy, db = dy`; `da = dy, db = -dy` |
//! | other functions of one operand | `dx = dy * slope`, see [`elementwise`] |
//! | `mul` | `da = dy * b, db = dy * a` |
//! | `div` | `da = dy / b, db = -(dy * y / b)` |
//! | `pow` | `da = dy * (b * a^(b - 1))`, 0 where `b` is 0; `db = dy * (y * log a)`, 0 where `a` is 0, NaN below |
//! | `min` `max` | `dy` to the operand taken, the first of ties; 0 to the other |
//! | a broadcast scalar | the sum of the contributions of all elements |
//! | comparisons, `sign`, `argmax`, `one_hot`, `fork_noise`, integers | none |
//! | `cast` | from `f32` to itself `dx = dy`, else none |
//! | `select` | `dy` to the selected operand, 0 to the other |
//! | moves (`concat` .. `stack`, `broadcast`) | the sum of the gradients of its copies, 0 without any |
//! | `affine` | `dx[k] = chain over n of dy[n] * W[k][n]`; `dW[k][n] = chain of x[k] * dy[n]`; `db = sum of dy` |
//! | `affine_rows` | as `affine`, for its rows; if its chains start at a value, `dy` to that value |
//! | `matmul` | `da[i][k] = chain over j of dc[i][j] * b[k][j]`; `db[k][j] = chain over i of a[i][k] * dc[i][j]` |
//! | `outer` | as the matmul of a column and a row |
//! | `dot` | `da = dy * b, db = dy * a` |
//! | `reduce` sum, mean | `dx = dy`, `dx = dy / n` |
//! | `reduce` max, min | `dy` to the first of ties (the first NaN), 0 elsewhere |
//! | `top_k` | `dy` to the selected elements, 0 elsewhere |
//! | `softmax` | `dx = y * (dy - dot(dy, y))` |
//! | `log_softmax` | `dx = dy - exp(y) * sum(dy)` |
//! | `logsumexp` | `dx = dy * softmax(x)`, 0 where `y` is -inf, because every element then is |
//! | `norm` | `dx = dy * (x / y)`, 0 where `y` is 0 |
//! | `layer_norm` | `dx = f * ((dy - mean(dy)) - y * (dot(dy, y) / n))`, `f` the factor of the row |
//! | list `sum`, `mean`, `max` | `dv = dy`; `dv = dy / n`; `dy` to the first of ties |
//! | list `logsumexp` | `dv_i = dy * w_i` with the softmax `w` of the values, 0 where every element is -inf |
//! | list `argmax` | none |
//! | `list_pick` | `dy` to the value at the index, 0 to the others |
//! | `wsum` | `dv_i = c_i * dy`; `dc_i = dot(dy, v_i)` for a score of one element, else `dy * v_i` |
//! | softmax `wsum` | the same with the weights `w`, then `ds_i = w_i * (dw_i - t)`, `t = chain over i of w_i * dw_i` |
//! | `attend` | the weights `w` and slopes `g` of `attention_slopes`: `dq = chain over i of g_i * k_i`; `dk_i`, `dv_i` = chain of `g_i * q`, `w_i * dy` over all nodes that attend to the item, see [`reverse`](super::reverse) |
//! | `lookup` | the row of the table; the reference keeps the gradient of the whole table |
//! | `pick_neg_log_softmax` | `dx = dy * (softmax(x) - 1 at the label)` |
//! | `label_loss` | `dx = dy * slope`; `dW[v] = chain of dlogit[v] * x`, see [`label_loss`](autobatch_ir::numeric::label_loss) |
//! | `cross_entropy` | `dx = dy * (softmax(x) * sum(t) - t)`; `dt = dy * -log_softmax(x)` |
//! | `kl_div` | `dx = -(dy * t)`; `dt = dy * ((log t + 1) - x)`, 0 where `t` is 0 |
//! | `mse` | `da = (2 dy / n) * (a - b), db = -da` |
//! | `bce` | `dx = (dy / n) * (sigmoid(x) - t)`; `dt = (dy / n) * -x` |
//! | `hinge` | `dx_j = dy` where the margin is violated; `-(dy * violations)` at the label |
//! | `dropout` | the dropout of `dy` with the same mask |
//! | `stop_gradient` | none |
//! | `scale_gradient` | `dx = dy * by` |

pub mod elementwise;
mod lists;
mod losses;
mod product;
mod rows;

use super::datum::Datum;
use super::error::{Checked, malformed};
use super::frame::Call;
use super::ops::{self, Chains, movement};
use super::uses::{ParamUse, Share, ShareKind};
use autobatch_ir::graph::Op;
use autobatch_ir::numeric::{Real, graph_attention, row};
use autobatch_ir::types::DType;
use std::sync::Arc;

/// The contribution of a node to the gradient of one operand.
pub(crate) enum Partial<T> {
    None,
    One(Arc<[T]>),
    /// To the values of a list: each gets any number of contributions, in ascending order.
    Many(Vec<Vec<Addend<T>>>),
}

/// A contribution to the gradient of a value of a list.
pub(crate) enum Addend<T> {
    Row(Arc<[T]>),
    Link(Link<T>),
}

/// A link of a chain over the nodes that attend to a value: `gradient = fma(factor, row, gradient)`. Each factor belongs to one
/// of equal parts of the row.
pub(crate) struct Link<T> {
    pub(crate) factors: Arc<[T]>,
    pub(crate) row: Arc<[T]>,
    /// The operand that holds the values of the keys, or the keys of the values.
    pub(crate) partner: usize,
}

impl<T: Real> Link<T> {
    /// Continues a chain.
    pub(crate) fn add_to(&self, sum: &mut [T]) {
        graph_attention::add_weighted(&self.factors, &self.row, sum);
    }
}

impl<T: Real> Addend<T> {
    /// The contribution. That of a link is a chain of its own.
    pub(crate) fn elements(&self) -> Arc<[T]> {
        match self {
            Self::Row(row) => Arc::clone(row),
            Self::Link(link) => {
                let mut sum = vec![T::ZERO; link.row.len()];
                link.add_to(&mut sum);
                sum.into()
            }
        }
    }
}

impl<T> Partial<T> {
    fn one(elements: Vec<T>) -> Self {
        Self::One(elements.into())
    }

    fn many(elements: Vec<Vec<T>>) -> Self {
        Self::Many(elements.into_iter().map(|elements| vec![Addend::Row(elements.into())]).collect())
    }
}

/// The contributions of a node.
pub(crate) struct Partials<T> {
    pub(crate) operands: Vec<Partial<T>>,
    /// To parameters, in the order of the operands.
    pub(crate) params: Vec<ParamUse<T>>,
}

impl<T> From<Vec<Partial<T>>> for Partials<T> {
    fn from(operands: Vec<Partial<T>>) -> Self {
        Self { operands, params: Vec::new() }
    }
}

/// Applies the rule of an op, given its results and their gradients, at least one of which is present.
pub(crate) fn derive<T: Real>(
    op: &Op,
    call: &Call<'_, T>,
    made: &[Datum<T>],
    grads: &[Option<Arc<[T]>>],
) -> Checked<Partials<T>> {
    let dy: Arc<[T]> = match &grads[0] {
        Some(dy) => Arc::clone(dy),
        None => vec![T::ZERO; call.results[0].shape.elements()].into(),
    };
    let one = |elements: Vec<T>| Ok(vec![Partial::one(elements)].into());
    match op {
        Op::Input(_) => Ok(vec![Partial::One(dy)].into()),
        Op::Fill { .. } | Op::ArgMax | Op::OneHot { .. } | Op::ForkNoise { .. } | Op::Compare(_) => {
            none(call)
        }
        Op::StopGradient => none(call),
        Op::Port(_) | Op::List | Op::Append => malformed("ports and lists have no derivative"),
        Op::Param => use_of(call, 0, Share { dy, kind: ShareKind::Rows }),
        Op::Unary(unary) => elementwise::unary(*unary, call, y(made)?, &dy),
        Op::LeakyRelu { slope } => {
            one(elementwise::scaled(call, &dy, |x| x.leaky_relu_slope(T::from_f32(slope.get())))?)
        }
        Op::Elu { alpha } => one(elementwise::scaled(call, &dy, |x| x.elu_slope(T::from_f32(alpha.get())))?),
        Op::Clamp { low, high } => {
            let (low, high) = (T::from_f32(low.get()), T::from_f32(high.get()));
            one(elementwise::scaled(call, &dy, |x| x.clamp_slope(low, high))?)
        }
        Op::Binary(binary) => elementwise::binary(*binary, call, made, &dy),
        Op::Select => elementwise::select(call, &dy),
        Op::Cast(to) if *to == DType::F32 && call.types[0].dtype == DType::F32 => {
            Ok(vec![Partial::One(dy)].into())
        }
        Op::Cast(_) => none(call),
        Op::Broadcast(_)
        | Op::Concat { .. }
        | Op::Split { .. }
        | Op::Slice { .. }
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Pick
        | Op::Stack => moved(op, call, grads),
        Op::Affine { bias, transposed } => {
            product::affine(Chains { bias: *bias, transposed: *transposed, ..Chains::default() }, call, &dy)
        }
        Op::AffineRows { row, bias, onto } => {
            let chains = Chains { row: *row as usize, bias: *bias, onto: *onto, transposed: false };
            product::affine(chains, call, &dy)
        }
        Op::Matmul => product::matmul(call, &dy),
        Op::Dot => product::dot(call, &dy),
        Op::Outer => product::outer(call, &dy),
        Op::Reduce { fold, over } => rows::reduce(*fold, *over, call, &dy),
        Op::TopK { k } => rows::top_k(*k as usize, call, made, &dy),
        Op::Softmax => rows::softmax(call, y(made)?, &dy),
        Op::LogSoftmax => rows::log_softmax(call, y(made)?, &dy),
        Op::LogSumExp => rows::logsumexp(call, y(made)?, &dy),
        Op::Norm => rows::norm(call, y(made)?, &dy),
        Op::LayerNorm { eps } => rows::layer_norm(T::from_f32(eps.get()), call, y(made)?, &dy),
        Op::ListFold(fold) => lists::fold(*fold, call, &dy),
        Op::ListPick => lists::pick(call, &dy),
        Op::WeightedSum { softmax } => lists::weighted_sum(*softmax, call, &dy),
        Op::Attend { scale } => lists::attend(T::from_f32(scale.get()), call, &dy),
        Op::GraphAttend { slope } => lists::graph_attend(T::from_f32(slope.get()), call, &dy),
        Op::Lookup => use_of(call, 1, Share { dy, kind: ShareKind::Row(ops::row_of(call)?) }),
        Op::PickNegLogSoftmax => losses::pick_neg_log_softmax(call, &dy),
        Op::LabelLoss => losses::label_loss(call, dy[0]),
        Op::CrossEntropy => losses::cross_entropy(call, dy[0]),
        Op::KlDiv => losses::kl_div(call, dy[0]),
        Op::Mse => losses::mse(call, dy[0]),
        Op::Bce => losses::bce(call, dy[0]),
        Op::Hinge { margin } => losses::hinge(T::from_f32(margin.get()), call, &dy),
        Op::Dropout { rate, ordinal } => {
            let dx = ops::mask(rate.get(), *ordinal, call, &dy)?;
            Ok(vec![Partial::one(dx), Partial::None, Partial::None].into())
        }
        Op::ScaleGradient { by } => one(dy.iter().map(|dy| dy.mul(T::from_f32(by.get()))).collect()),
    }
}

/// The first result, which must be a float value.
fn y<T>(made: &[Datum<T>]) -> Checked<&[T]> {
    match made.first() {
        Some(Datum::Floats(elements)) => Ok(elements),
        _ => malformed("a result is not a float value"),
    }
}

fn none<T>(call: &Call<'_, T>) -> Checked<Partials<T>> {
    Ok(call.args.iter().map(|_| Partial::None).collect::<Vec<_>>().into())
}

/// The contribution of an op that has a derivative only with respect to its parameter.
fn use_of<T>(call: &Call<'_, T>, operands: usize, share: Share<T>) -> Checked<Partials<T>> {
    let params = vec![ParamUse { node: None, param: call.params[0].id, share }];
    Ok(Partials { operands: (0..operands).map(|_| Partial::None).collect(), params })
}

/// The rule of moves: each operand element gets the sum of the gradients of its copies.
fn moved<T: Real>(op: &Op, call: &Call<'_, T>, grads: &[Option<Arc<[T]>>]) -> Checked<Partials<T>> {
    let operands = if *op == Op::Pick { 1 } else { call.args.len() };
    let elements = |operand: usize| call.types[operand].shape.elements();
    let mut copies: Vec<Vec<Vec<T>>> =
        (0..operands).map(|operand| vec![Vec::new(); elements(operand)]).collect();
    for (sources, dy) in movement::sources(op, call)?.iter().zip(grads) {
        for (number, source) in sources.iter().enumerate() {
            if let Some(dy) = dy {
                copies[source.operand][source.element].push(dy[number]);
            }
        }
    }
    let sum = |copies: Vec<T>| if let [only] = copies[..] { only } else { row::sum(&copies) };
    let mut partials: Vec<Partial<T>> =
        copies.into_iter().map(|operand| Partial::one(operand.into_iter().map(sum).collect())).collect();
    partials.resize_with(call.args.len(), || Partial::None);
    Ok(partials.into())
}
