//! Methods of ops on one or two values: elementwise functions, folds, row functions, products and losses.

use super::Value;
use crate::graph::op::{Binary, Compare, Fold, ListFold, Op, Over, Permutation, Unary};
use crate::graph::record::Caller;
use crate::types::{DType, Type};
use std::panic::Location;

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $(($($attribute:ident: $type:ty),*))? => $op:expr;)*) => {
        impl<'g> Value<'g> {
            $($(#[$doc])* #[track_caller] #[inline] #[must_use]
            pub fn $name(self $($(, $attribute: $type)*)?) -> Self { self.unary($op, Location::caller()) })*
        }
    };
}

methods! {
    /// `|x|`
    abs => Op::Unary(Unary::Abs);
    /// `e^x`
    exp => Op::Unary(Unary::Exp);
    /// Natural logarithm.
    log => Op::Unary(Unary::Log);
    /// Square root.
    sqrt => Op::Unary(Unary::Sqrt);
    /// `1 / sqrt(x)`
    rsqrt => Op::Unary(Unary::Rsqrt);
    /// `x * x`
    square => Op::Unary(Unary::Square);
    /// `1 / x`
    recip => Op::Unary(Unary::Recip);
    /// Hyperbolic tangent.
    tanh => Op::Unary(Unary::Tanh);
    /// `1 / (1 + e^-x)`
    sigmoid => Op::Unary(Unary::Sigmoid);
    /// `max(x, 0)`
    relu => Op::Unary(Unary::Relu);
    /// Gaussian error linear unit.
    gelu => Op::Unary(Unary::Gelu);
    /// `x * sigmoid(x)`
    silu => Op::Unary(Unary::Silu);
    /// `log(1 + e^x)`
    softplus => Op::Unary(Unary::Softplus);
    /// Sine.
    sin => Op::Unary(Unary::Sin);
    /// Cosine.
    cos => Op::Unary(Unary::Cos);
    /// The error function.
    erf => Op::Unary(Unary::Erf);
    /// -1, 0 or 1.
    sign => Op::Unary(Unary::Sign);
    /// `e^x / sum e^x` of each row.
    softmax => Op::Softmax;
    /// `log(softmax(x))` of each row.
    log_softmax => Op::LogSoftmax;
    /// The Euclidean length of each row.
    norm => Op::Norm;
    /// The identity with derivative zero.
    stop_gradient => Op::StopGradient;
    /// The sum of each row.
    sum_rows => Op::Reduce { fold: Fold::Sum, over: Over::Last };
    /// The mean of each row.
    mean_rows => Op::Reduce { fold: Fold::Mean, over: Over::Last };
    /// The largest element of each row.
    max_rows => Op::Reduce { fold: Fold::Max, over: Over::Last };
    /// The smallest element of each row.
    min_rows => Op::Reduce { fold: Fold::Min, over: Over::Last };
    /// The matrix with its axes swapped.
    t => Op::Transpose(Permutation::SWAP);
    /// `x` where positive, `slope * x` elsewhere.
    leaky_relu(slope: f32) => Op::LeakyRelu { slope: slope.into() };
    /// `x` where positive, `alpha * (e^x - 1)` elsewhere.
    elu(alpha: f32) => Op::Elu { alpha: alpha.into() };
    /// `x` limited to `low..=high`.
    clamp(low: f32, high: f32) => Op::Clamp { low: low.into(), high: high.into() };
    /// Each row minus its mean, divided by its deviation: the root of variance plus `eps`. `eps` must be
    /// above 0 where rows have one element.
    layer_norm(eps: f32) => Op::LayerNorm { eps: eps.into() };
    /// Conversion to another element type.
    cast(dtype: DType) => Op::Cast(dtype);
    /// The identity; it multiplies the gradient by `by`.
    scale_gradient(by: f32) => Op::ScaleGradient { by: by.into() };
}

macro_rules! pairs {
    ($($(#[$doc:meta])* $name:ident($other:ident) => $op:expr;)*) => {
        impl<'g> Value<'g> {
            $($(#[$doc])* #[track_caller] #[must_use]
            pub fn $name(self, $other: Self) -> Self { self.with($op, $other, Location::caller()) })*
        }
    };
}

pairs! {
    /// The matrix product of two values.
    matmul(other) => Op::Matmul;
    /// The inner product of two vectors.
    dot(other) => Op::Dot;
    /// The outer product of two vectors.
    outer(other) => Op::Outer;
    /// `-sum target * log_softmax(self)`.
    cross_entropy_with(target) => Op::CrossEntropy;
    /// `sum target * (log target - self)`, where `self` holds log-probabilities.
    kl_div(target) => Op::KlDiv;
    /// The mean of the squared differences.
    mse(target) => Op::Mse;
    /// The mean binary cross-entropy of these logits against targets in `0..=1`.
    bce(target) => Op::Bce;
}

macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident => $fold:ident, $of_value:expr;)*) => {
        impl<'g> Value<'g> {
            $($(#[$doc])* #[track_caller] #[must_use]
            pub fn $name(self) -> Self {
                let op = if self.ty().is_list {
                    Op::ListFold(ListFold::$fold)
                } else {
                    $of_value
                };
                self.folded(op, Location::caller())
            })*
        }
    };
}

impl<'g> Value<'g> {
    /// The smallest element.
    #[track_caller]
    #[must_use]
    pub fn min(self) -> Self {
        self.folded(Op::Reduce { fold: Fold::Min, over: Over::All }, Location::caller())
    }

    /// Applies a fold. A fold over all elements of one number is this number.
    fn folded(self, op: Op, caller: Caller) -> Self {
        match op {
            Op::Reduce { over: Over::All, .. } if self.ty() == Type::scalar(DType::F32) => self,
            op => self.unary(op, caller),
        }
    }
}

folds! {
    /// The sum. A value gives the sum of all its elements, one number. A list gives the elementwise sum
    /// of its values, a value of their type: a list of vectors needs `.sum().sum()` for one number.
    sum => Sum, Op::Reduce { fold: Fold::Sum, over: Over::All };
    /// The mean, over the elements of a value or over the values of a list, as [`sum`](Self::sum).
    mean => Mean, Op::Reduce { fold: Fold::Mean, over: Over::All };
    /// The maximum, over the elements of a value or over the values of a list, as [`sum`](Self::sum).
    max => Max, Op::Reduce { fold: Fold::Max, over: Over::All };
    /// `log(sum e^x)` of each row of a value. A list gives that over its values, element by element.
    logsumexp => LogSumExp, Op::LogSumExp;
    /// The index of the largest element of each row of a value. A list gives the place of the value with the largest
    /// element, element by element.
    argmax => ArgMax, Op::ArgMax;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident => $op:expr;)*) => {
        impl<'g> Value<'g> {
            $($(#[$doc])* #[track_caller] #[must_use]
            pub fn $name(self, other: impl Into<Term<'g>>) -> Self {
                let caller = Location::caller();
                let other = other.into().value(self, caller);
                self.elementwise($op, other, caller)
            })*
        }
    };
}

/// The second operand of an elementwise method: a value or a number.
#[derive(Clone, Copy, Debug)]
pub enum Term<'g> {
    /// A value of the same graph.
    Value(Value<'g>),
    /// A constant.
    Number(f32),
}

impl<'g> Term<'g> {
    fn value(self, first: Value<'g>, caller: Caller) -> Value<'g> {
        match self {
            Self::Value(value) => value,
            Self::Number(number) => first.number(number, caller),
        }
    }
}

impl<'g> From<Value<'g>> for Term<'g> {
    fn from(value: Value<'g>) -> Self {
        Self::Value(value)
    }
}

impl<'g> From<&Value<'g>> for Term<'g> {
    fn from(value: &Value<'g>) -> Self {
        Self::Value(*value)
    }
}

impl From<f32> for Term<'_> {
    fn from(number: f32) -> Self {
        Self::Number(number)
    }
}

binary_methods! {
    /// `self ^ other`
    pow => Op::Binary(Binary::Pow);
    /// The smaller of the two, element by element.
    minimum => Op::Binary(Binary::Min);
    /// The larger of the two, element by element.
    maximum => Op::Binary(Binary::Max);
    /// Whether equal, element by element.
    equal => Op::Compare(Compare::Eq);
    /// Whether different, element by element.
    not_equal => Op::Compare(Compare::Ne);
    /// Whether less, element by element.
    less => Op::Compare(Compare::Lt);
    /// Whether less or equal, element by element.
    less_equal => Op::Compare(Compare::Le);
    /// Whether greater, element by element.
    greater => Op::Compare(Compare::Gt);
    /// Whether greater or equal, element by element.
    greater_equal => Op::Compare(Compare::Ge);
}
