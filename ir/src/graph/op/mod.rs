//! The built-in ops: one enum with typed attributes.
//!
//! Ops know nothing about batches: shapes are those of a single instance. A node reads values as operands and parameters as
//! parameter arguments of its signature. Numbers that the model fixes are attributes of the op.

mod attribute;

pub use attribute::{Binary, Compare, Float, Fold, ListFold, Over, Permutation, Unary};

use crate::types::{DType, Shape, Type};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// One of the built-in operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// A port of a cell body. Legal only at the head of a body.
    Port(Type),
    /// Numbers bound when the graph is executed; the operand names their slot.
    Input(Type),
    /// A constant: every element has these bits.
    Fill {
        /// The type of the constant.
        ty: Type,
        /// The bits of each element.
        bits: u32,
    },
    /// The value of a parameter.
    Param,
    /// A list of any number of values. Only ops and ports that take lists may read it.
    List,
    /// An elementwise function of one operand.
    Unary(Unary),
    /// `x` where positive, `slope * x` elsewhere.
    LeakyRelu {
        /// The factor below zero.
        slope: Float,
    },
    /// `x` where positive, `alpha * (e^x - 1)` elsewhere.
    Elu {
        /// The negation of the limit towards minus infinity.
        alpha: Float,
    },
    /// `x` limited to an interval.
    Clamp {
        /// The lower bound.
        low: Float,
        /// The upper bound.
        high: Float,
    },
    /// An elementwise function of two operands.
    Binary(Binary),
    /// An elementwise comparison.
    Compare(Compare),
    /// `if condition { a } else { b }`, element by element.
    Select,
    /// Conversion to another element type.
    Cast(DType),
    /// Repetition along axes of extent 1 and new outer axes.
    Broadcast(Shape),
    /// `x · W (+ b)`, where `x` is the concatenation of the operands. A matrix `x` gives one product per row.
    Affine {
        /// Whether it adds a bias row.
        bias: bool,
        /// Whether the parameter is stored as `Wᵀ`.
        transposed: bool,
    },
    /// The matrix product of two values; a vector is a row on the left and a column on the right.
    Matmul,
    /// The inner product of two vectors.
    Dot,
    /// The outer product of two vectors.
    Outer,
    /// The concatenation of values along an axis.
    Concat {
        /// The axis of the concatenation.
        axis: u8,
    },
    /// Equal parts along an axis, as several results.
    Split {
        /// The axis.
        axis: u8,
        /// The number of parts.
        parts: u32,
    },
    /// A range along an axis.
    Slice {
        /// The axis.
        axis: u8,
        /// The first index of the range.
        start: u32,
        /// The length of the range.
        len: u32,
    },
    /// The same elements in another shape.
    Reshape(Shape),
    /// The axes in another order.
    Transpose(Permutation),
    /// The element or row at an index of the outermost axis. An index out of range selects the last.
    Pick,
    /// Values of one type along a new outermost axis.
    Stack,
    /// A fold inside a value.
    Reduce {
        /// The function.
        fold: Fold,
        /// The elements that it folds together.
        over: Over,
    },
    /// The index of the largest element of each row; ties select the first.
    ArgMax,
    /// The largest elements of each row, descending, and their indices.
    TopK {
        /// The number of elements.
        k: u32,
    },
    /// `e^x / sum e^x` of each row.
    Softmax,
    /// `log(softmax(x))` of each row.
    LogSoftmax,
    /// `log(sum e^x)` of each row.
    LogSumExp,
    /// The Euclidean length of each row.
    Norm,
    /// Each row minus its mean, divided by its deviation.
    LayerNorm {
        /// Added to the variance.
        eps: Float,
    },
    /// A fold over the values of a list, element by element.
    ListFold(ListFold),
    /// `sum of score_i * value_i` over two lists of equal length. Scores are scalars or have the shape of the values.
    WeightedSum {
        /// Whether it replaces the scores by their softmax over the list.
        softmax: bool,
    },
    /// `sum of softmax_i(scale * q·k_i) * v_i` over a query, a list of keys and a list of values.
    Attend {
        /// The factor of the scores.
        scale: Float,
    },
    /// A row of a table.
    Lookup,
    /// 1 at an index, 0 elsewhere. An index out of range selects the last element.
    OneHot {
        /// The width of the result.
        width: u32,
    },
    /// `-log_softmax(x)[label]` of each row.
    PickNegLogSoftmax,
    /// `-sum target * log_softmax(x)`.
    CrossEntropy,
    /// `sum target * (log target - x)` where `x` holds log-probabilities; 0 where the target is 0.
    KlDiv,
    /// The mean of the squared differences.
    Mse,
    /// The mean binary cross-entropy of logits against targets.
    Bce,
    /// `sum over j ≠ label of max(0, margin + x_j - x_label)`.
    Hinge {
        /// The margin.
        margin: Float,
    },
    /// In training, zero with probability `rate` and scaled up elsewhere; the identity otherwise.
    Dropout {
        /// The probability of zero.
        rate: Float,
        /// Distinguishes several uses of one noise key.
        ordinal: u32,
    },
    /// A noise key derived from another, for a cell called inside a cell.
    ForkNoise {
        /// Distinguishes several forks of one key.
        ordinal: u32,
    },
    /// The identity with derivative zero.
    StopGradient,
    /// The identity; it multiplies the gradient.
    ScaleGradient {
        /// The factor.
        by: Float,
    },
    /// A part of the sums of an affine: `x · W[row..]`, with as many rows of the weight as `x` is wide. The sums start at
    /// zero, at a bias row, or at the first operand. So several nodes can compute a product with the bits of a single one.
    AffineRows {
        /// The first row of the weight.
        row: u32,
        /// Whether the sums start at a bias row.
        bias: bool,
        /// Whether the sums start at the first operand.
        onto: bool,
    },
}

/// The number of operands of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this number.
    Exactly(usize),
    /// At least this number. The actual number is part of the signature.
    AtLeast(usize),
    /// Any number. The number is *not* part of the signature.
    Free,
}

/// A hasher that returns the word of a discriminant.
struct Discriminant(u64);

impl Hasher for Discriminant {
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_isize(&mut self, word: isize) {
        self.0 = word as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |word, &byte| word << 8 | u64::from(byte));
    }
}

impl Op {
    /// A cheap hash of the op without its attributes, to select a cache slot. It may differ between builds.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        let mut kind = Discriminant(0);
        std::mem::discriminant(self).hash(&mut kind);
        let member = match *self {
            Self::Unary(unary) => unary as u64,
            Self::Binary(binary) => binary as u64,
            Self::Compare(compare) => compare as u64,
            _ => 0,
        };
        kind.0 << 8 | member
    }

    /// The word of the op in text. Ops that differ in more than attributes have different words.
    #[must_use]
    pub const fn spelling(&self) -> &'static str {
        match self {
            Self::Port(_) => "port",
            Self::Input(_) => "input",
            Self::Fill { .. } => "fill",
            Self::Param => "param",
            Self::List => "list",
            Self::Unary(unary) => unary.spelling(),
            Self::LeakyRelu { .. } => "leaky_relu",
            Self::Elu { .. } => "elu",
            Self::Clamp { .. } => "clamp",
            Self::Binary(binary) => binary.spelling(),
            Self::Compare(compare) => compare.spelling(),
            Self::Select => "select",
            Self::Cast(_) => "cast",
            Self::Broadcast(_) => "broadcast",
            Self::Affine { .. } => "affine",
            Self::Matmul => "matmul",
            Self::Dot => "dot",
            Self::Outer => "outer",
            Self::Concat { .. } => "concat",
            Self::Split { .. } => "split",
            Self::Slice { .. } => "slice",
            Self::Reshape(_) => "reshape",
            Self::Transpose(_) => "transpose",
            Self::Pick => "pick",
            Self::Stack => "stack",
            Self::Reduce { .. } => "reduce",
            Self::ArgMax => "argmax",
            Self::TopK { .. } => "top_k",
            Self::Softmax => "softmax",
            Self::LogSoftmax => "log_softmax",
            Self::LogSumExp => "logsumexp",
            Self::Norm => "norm",
            Self::LayerNorm { .. } => "layer_norm",
            Self::ListFold(fold) => fold.spelling(),
            Self::WeightedSum { .. } => "wsum",
            Self::Attend { .. } => "attend",
            Self::Lookup => "lookup",
            Self::OneHot { .. } => "one_hot",
            Self::PickNegLogSoftmax => "pick_neg_log_softmax",
            Self::CrossEntropy => "cross_entropy",
            Self::KlDiv => "kl_div",
            Self::Mse => "mse",
            Self::Bce => "bce",
            Self::Hinge { .. } => "hinge",
            Self::Dropout { .. } => "dropout",
            Self::ForkNoise { .. } => "fork_noise",
            Self::StopGradient => "stop_gradient",
            Self::ScaleGradient { .. } => "scale_gradient",
            Self::AffineRows { .. } => "affine_rows",
        }
    }

    /// The number of operands.
    #[must_use]
    pub const fn arity(&self) -> Arity {
        match self {
            Self::Port(_) | Self::Fill { .. } | Self::Param => Arity::Exactly(0),
            Self::Input(_)
            | Self::Unary(_)
            | Self::LeakyRelu { .. }
            | Self::Elu { .. }
            | Self::Clamp { .. }
            | Self::Cast(_)
            | Self::Broadcast(_)
            | Self::Split { .. }
            | Self::Slice { .. }
            | Self::Reshape(_)
            | Self::Transpose(_)
            | Self::Reduce { .. }
            | Self::ArgMax
            | Self::TopK { .. }
            | Self::Softmax
            | Self::LogSoftmax
            | Self::LogSumExp
            | Self::Norm
            | Self::LayerNorm { .. }
            | Self::ListFold(_)
            | Self::Lookup
            | Self::OneHot { .. }
            | Self::StopGradient
            | Self::ScaleGradient { .. } => Arity::Exactly(1),
            Self::Binary(_)
            | Self::Compare(_)
            | Self::Matmul
            | Self::Dot
            | Self::Outer
            | Self::Pick
            | Self::WeightedSum { .. }
            | Self::PickNegLogSoftmax
            | Self::CrossEntropy
            | Self::KlDiv
            | Self::Mse
            | Self::Bce
            | Self::Hinge { .. }
            | Self::ForkNoise { .. } => Arity::Exactly(2),
            Self::Select | Self::Attend { .. } | Self::Dropout { .. } => Arity::Exactly(3),
            Self::Affine { .. }
            | Self::AffineRows { onto: false, .. }
            | Self::Concat { .. }
            | Self::Stack => Arity::AtLeast(1),
            Self::AffineRows { onto: true, .. } => Arity::AtLeast(2),
            Self::List => Arity::Free,
        }
    }

    /// The number of parameter arguments.
    #[must_use]
    pub const fn params(&self) -> usize {
        match self {
            Self::Affine { bias: true, .. } | Self::AffineRows { bias: true, .. } => 2,
            Self::Affine { bias: false, .. }
            | Self::AffineRows { bias: false, .. }
            | Self::Lookup
            | Self::Param => 1,
            _ => 0,
        }
    }
}
