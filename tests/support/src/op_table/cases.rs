//! The entries, one per kind. The expected numbers are literals or results of the standard library's f64
//! functions. The project computes none of them.

mod elementwise;
mod lists;
mod losses;
mod products;
mod rows;
mod shapes;
mod sources;

use super::{Attempt, Bad, Build, Example, Gradient, Kind, OpCase};

/// Returns the entry of a kind.
#[must_use]
#[expect(clippy::too_many_lines, reason = "a table with one line per kind")]
pub fn case(kind: Kind) -> OpCase {
    match kind {
        Kind::Port => sources::port(),
        Kind::Input => sources::input(),
        Kind::Fill => sources::fill(),
        Kind::Param => sources::param(),
        Kind::List => lists::list(),
        Kind::Append => lists::append(),
        Kind::Neg => elementwise::neg(),
        Kind::Abs => elementwise::abs(),
        Kind::Exp => elementwise::exp(),
        Kind::Log => elementwise::log(),
        Kind::Sqrt => elementwise::sqrt(),
        Kind::Rsqrt => elementwise::rsqrt(),
        Kind::Square => elementwise::square(),
        Kind::Recip => elementwise::recip(),
        Kind::Tanh => elementwise::tanh(),
        Kind::Sigmoid => elementwise::sigmoid(),
        Kind::Relu => elementwise::relu(),
        Kind::Gelu => elementwise::gelu(),
        Kind::Silu => elementwise::silu(),
        Kind::Softplus => elementwise::softplus(),
        Kind::Sin => elementwise::sin(),
        Kind::Cos => elementwise::cos(),
        Kind::Erf => elementwise::erf(),
        Kind::Sign => elementwise::sign(),
        Kind::LeakyRelu => elementwise::leaky_relu(),
        Kind::Elu => elementwise::elu(),
        Kind::Clamp => elementwise::clamp(),
        Kind::Add => elementwise::add(),
        Kind::Sub => elementwise::sub(),
        Kind::Mul => elementwise::mul(),
        Kind::Div => elementwise::div(),
        Kind::Pow => elementwise::pow(),
        Kind::Minimum => elementwise::minimum(),
        Kind::Maximum => elementwise::maximum(),
        Kind::Equal => elementwise::equal(),
        Kind::NotEqual => elementwise::not_equal(),
        Kind::Less => elementwise::less(),
        Kind::LessEqual => elementwise::less_equal(),
        Kind::Greater => elementwise::greater(),
        Kind::GreaterEqual => elementwise::greater_equal(),
        Kind::Select => elementwise::select(),
        Kind::CastF32 => elementwise::cast_f32(),
        Kind::CastI32 => elementwise::cast_i32(),
        Kind::CastU32 => elementwise::cast_u32(),
        Kind::CastBool => elementwise::cast_bool(),
        Kind::Broadcast => shapes::broadcast(),
        Kind::Affine => products::affine(),
        Kind::AffineBias => products::affine_bias(),
        Kind::AffineTransposed => products::affine_transposed(),
        Kind::AffineTransposedBias => products::affine_transposed_bias(),
        Kind::AffineRows => products::affine_rows(),
        Kind::AffineRowsBias => products::affine_rows_bias(),
        Kind::AffineOnto => products::affine_onto(),
        Kind::Matmul => products::matmul(),
        Kind::Dot => products::dot(),
        Kind::Outer => products::outer(),
        Kind::Concat => shapes::concat(),
        Kind::Split => shapes::split(),
        Kind::Slice => shapes::slice(),
        Kind::Reshape => shapes::reshape(),
        Kind::Transpose => shapes::transpose(),
        Kind::Pick => shapes::pick(),
        Kind::Stack => shapes::stack(),
        Kind::SumLast => rows::sum_last(),
        Kind::SumAll => rows::sum_all(),
        Kind::MeanLast => rows::mean_last(),
        Kind::MeanAll => rows::mean_all(),
        Kind::MaxLast => rows::max_last(),
        Kind::MaxAll => rows::max_all(),
        Kind::MinLast => rows::min_last(),
        Kind::MinAll => rows::min_all(),
        Kind::ArgMax => rows::argmax(),
        Kind::TopK => rows::top_k(),
        Kind::Softmax => rows::softmax(),
        Kind::LogSoftmax => rows::log_softmax(),
        Kind::LogSumExp => rows::logsumexp(),
        Kind::Norm => rows::norm(),
        Kind::LayerNorm => rows::layer_norm(),
        Kind::ListSum => lists::sum(),
        Kind::ListMean => lists::mean(),
        Kind::ListMax => lists::max(),
        Kind::ListLogSumExp => lists::logsumexp(),
        Kind::ListArgMax => lists::argmax(),
        Kind::ListPick => lists::pick(),
        Kind::WeightedSum => lists::weighted_sum(),
        Kind::SoftmaxSum => lists::softmax_sum(),
        Kind::Attend => lists::attend(),
        Kind::GraphAttend => lists::graph_attend(),
        Kind::Lookup => sources::lookup(),
        Kind::OneHot => sources::one_hot(),
        Kind::PickNegLogSoftmax => losses::pick_neg_log_softmax(),
        Kind::LabelLoss => losses::label_loss(),
        Kind::CrossEntropy => losses::cross_entropy(),
        Kind::KlDiv => losses::kl_div(),
        Kind::Mse => losses::mse(),
        Kind::Bce => losses::bce(),
        Kind::Hinge => losses::hinge(),
        Kind::Dropout => sources::dropout(),
        Kind::ForkNoise => sources::fork_noise(),
        Kind::StopGradient => sources::stop_gradient(),
        Kind::ScaleGradient => sources::scale_gradient(),
    }
}

const TRUE: Gradient = Gradient::TimesTrue(1.0);

/// Makes an entry whose invalid use goes through the emitter.
fn entry(examples: Vec<Example>, gradient: Gradient, message: &'static str, bad: Build) -> OpCase {
    OpCase { examples, gradient, bad: Bad { attempt: Attempt::Emit(bad), message } }
}

/// Makes a valid use.
fn good(types: &[&'static str], numbers: Vec<Vec<f64>>, build: Build) -> Example {
    Example { build, types: types.to_vec(), numbers }
}
