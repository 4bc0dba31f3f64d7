//! The built-in vocabulary: one enum, with typed attributes.
//!
//! An op says nothing about batches: shapes are those of one instance. What a *value* contributes
//! is an operand, what a *parameter* contributes is a parameter argument of the signature, what a
//! number fixed by the model contributes is an attribute here.

mod attribute;

pub use attribute::{Binary, Compare, Float, Fold, ListFold, Over, Permutation, Unary};

use crate::types::{DType, Shape, Type};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// One of the built-in operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// The value that enters a cell body here. Legal only at the head of a body.
    Port(Type),
    /// Numbers bound when the graph is executed; the operand names their place.
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
    /// Any number of values under one name; legal only where a list is taken.
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
        /// The negative limit, without its sign.
        alpha: Float,
    },
    /// `x` cut to an interval.
    Clamp {
        /// The least result.
        low: Float,
        /// The greatest result.
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
    /// `x · W (+ b)`: operands side by side make up `x`; a matrix operand is so many rows.
    Affine {
        /// Whether a bias row is added.
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
    /// Values side by side along an axis.
    Concat {
        /// The axis that grows.
        axis: u8,
    },
    /// Equal parts along an axis, as several results.
    Split {
        /// The axis that is cut.
        axis: u8,
        /// How many parts.
        parts: u32,
    },
    /// A range along an axis.
    Slice {
        /// The axis that is cut.
        axis: u8,
        /// The first index kept.
        start: u32,
        /// How many are kept.
        len: u32,
    },
    /// The same elements in another shape.
    Reshape(Shape),
    /// The axes in another order.
    Transpose(Permutation),
    /// The element or row at an index of the outermost axis; an index out of range takes the last.
    Pick,
    /// Values of one type along a new outermost axis.
    Stack,
    /// A fold inside a value.
    Reduce {
        /// How.
        fold: Fold,
        /// Which elements together.
        over: Over,
    },
    /// The index of the largest element of each row; the first of ties.
    ArgMax,
    /// The largest elements of each row, descending, and their indices.
    TopK {
        /// How many.
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
    /// Each row less its mean, divided by its deviation.
    LayerNorm {
        /// Added to the variance.
        eps: Float,
    },
    /// A fold over the values of a list, element by element.
    ListFold(ListFold),
    /// `sum of score_i * value_i` over two lists of equal length; scores are scalars or as wide as
    /// the values.
    WeightedSum {
        /// Whether the scores are first made a softmax over the list.
        softmax: bool,
    },
    /// `sum of softmax_i(scale * q·k_i) * v_i` over a query, a list of keys and a list of values.
    Attend {
        /// The factor of the scores.
        scale: Float,
    },
    /// A row of a table.
    Lookup,
    /// 1 at an index, 0 elsewhere; an index out of range takes the last.
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
        /// The wanted distance.
        margin: Float,
    },
    /// In training, zero with probability `rate` and scaled up elsewhere; the identity otherwise.
    Dropout {
        /// The probability of zero.
        rate: Float,
        /// Tells several uses of one noise key apart.
        ordinal: u32,
    },
    /// A noise key derived from another, for a cell called inside a cell.
    ForkNoise {
        /// Tells several derived keys apart.
        ordinal: u32,
    },
    /// The identity, whose derivative is taken as zero.
    StopGradient,
    /// The identity, whose derivative is multiplied.
    ScaleGradient {
        /// The factor.
        by: Float,
    },
    /// A stretch of the chains of an affine: `x · W[row..]`, as many rows of the weight as `x` is wide.
    /// The chains begin at zero, at a bias row, or where a value left them, which is then the first
    /// operand: so a product can be done in several nodes with the bits of one.
    AffineRows {
        /// The first row of the weight that is met.
        row: u32,
        /// Whether the chains begin at a bias row.
        bias: bool,
        /// Whether the chains begin at the first operand.
        onto: bool,
    },
}

/// How many operands an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly so many.
    Exactly(usize),
    /// At least so many; the number is part of the signature.
    AtLeast(usize),
    /// Any number, which is *not* part of the signature.
    Free,
}

/// Takes the one word that a discriminant hashes to.
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
    /// A small number that ops with different words share rarely: where to look for an op, never
    /// what it is, and not the same in every build.
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
}

impl Op {
    /// The word for it in text. Distinct ops have distinct words, attributes apart.
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

    /// How many operands it takes.
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

    /// How many parameter arguments it takes.
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
