//! The actions of a recipe's step: every call that a model can make, as plain data.

use autobatch_ir::DType;
use autobatch_ir::graph::{Binary, Compare, Fold, ListFold, Over, Unary};

/// One act of emitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A vector of bound floats.
    Input,
    /// Bound floats of rank 0 to 4.
    InputShaped,
    /// A constant vector.
    Fill,
    /// A parameter as a value.
    Param,
    /// A row of the table at a bound index.
    Look,
    /// A row of the table at the place of a value's largest element.
    LookComputed,
    /// A one-hot vector.
    OneHot,
    /// A bound index as a value.
    Index,
    /// A vector of bound indices.
    Indices,
    /// Integers or truth values of rank 0 to 4.
    Words,
    /// An elementwise function.
    Unary(Unary),
    /// `leaky_relu`.
    LeakyRelu,
    /// `elu`.
    Elu,
    /// `clamp`.
    Clamp,
    /// Two values of one type.
    Binary(Binary),
    /// A value and a number.
    WithNumber(Binary),
    /// A value and a scalar value, on either side.
    WithScalar(Binary),
    /// A matrix and a row, which are repeated to meet.
    Meet,
    /// Two integer values of one type.
    Ints(Binary),
    /// A comparison of two values.
    Compare(Compare),
    /// A selection.
    Select,
    /// A mask of legal choices, made a softmax at once.
    Mask,
    /// A conversion.
    Cast(DType),
    /// A repetition.
    Broadcast,
    /// `x · W` without a bias.
    Affine,
    /// `x · W + b`.
    AffineBias,
    /// `[x y] · W + b`, in two parts.
    AffineParts,
    /// `x · Wᵀ`, with and without a bias.
    AffineTransposed,
    /// Several rows at once.
    AffineRows,
    /// A stretch of the rows of a weight, from any row on, begun or gone on with.
    Stretch,
    /// A weight stored in 16 bits.
    AffineHalf,
    /// A product of two values.
    Matmul,
    /// An inner product.
    Dot,
    /// An outer product.
    Outer,
    /// Side by side along the innermost axis.
    Concat,
    /// Side by side along any axis.
    ConcatAxis,
    /// Two parts of the innermost axis.
    Split,
    /// Equal parts of any axis.
    Chunks,
    /// A range of the innermost axis.
    Slice,
    /// A range of any axis.
    SliceAxis,
    /// Another shape.
    Reshape,
    /// Another order of axes.
    Transpose,
    /// A row, bound or computed.
    Pick,
    /// A new outermost axis.
    Stack,
    /// A fold inside a value.
    Reduce(Fold, Over),
    /// The place of the largest.
    ArgMax,
    /// The largest and their places.
    TopK,
    /// `softmax`.
    Softmax,
    /// `log_softmax`.
    LogSoftmax,
    /// `logsumexp`.
    LogSumExp,
    /// `norm`.
    Norm,
    /// `layer_norm`.
    LayerNorm,
    /// A fold over a list of any length.
    ListFold(ListFold),
    /// A weighted sum over two lists.
    WeightedSum {
        /// Whether the scores are made a softmax.
        softmax: bool,
    },
    /// Attention over two lists.
    Attend,
    /// One value with many readers.
    FanOut,
    /// The loss of a label.
    PickNegLogSoftmax,
    /// The losses of the rows of a matrix.
    LabelledRows,
    /// The loss against a distribution.
    CrossEntropy,
    /// The divergence of two distributions.
    KlDiv,
    /// The mean of squared differences.
    Mse,
    /// Binary cross-entropy.
    Bce,
    /// The margin loss.
    Hinge,
    /// `dropout`.
    Dropout,
    /// `stop_gradient`.
    StopGradient,
    /// `scale_gradient`.
    ScaleGradient,
    /// A call of a cell.
    Call(CellName),
}

/// The cells that recipes call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellName {
    /// An index becomes two vectors.
    Leaf,
    /// A binary Tree-LSTM.
    Node,
    /// A recurrent step.
    Forward,
    /// The same body with other parameters.
    Backward,
    /// A list port, folded.
    Fold,
    /// A list port, attended to.
    Attend,
    /// Two list ports, one of which gives the scores of the other.
    Both,
    /// Noise.
    Drop,
    /// A cell that calls a noisy cell twice.
    Twice,
    /// A cell that calls two cells, one of which has several results.
    Deep,
    /// A cell with an index port that makes a loss.
    Head,
    /// One of the recipe's own cells.
    Free,
}

impl CellName {
    /// Every cell.
    pub const ALL: [Self; 12] = [
        Self::Leaf,
        Self::Node,
        Self::Forward,
        Self::Backward,
        Self::Fold,
        Self::Attend,
        Self::Both,
        Self::Drop,
        Self::Twice,
        Self::Deep,
        Self::Head,
        Self::Free,
    ];
}

const PLAIN: [Act; 52] = [
    Act::Input,
    Act::InputShaped,
    Act::Fill,
    Act::Param,
    Act::Look,
    Act::LookComputed,
    Act::OneHot,
    Act::Index,
    Act::Indices,
    Act::Words,
    Act::LeakyRelu,
    Act::Elu,
    Act::Clamp,
    Act::Meet,
    Act::Select,
    Act::Mask,
    Act::Broadcast,
    Act::Affine,
    Act::AffineBias,
    Act::AffineParts,
    Act::AffineTransposed,
    Act::AffineRows,
    Act::Stretch,
    Act::AffineHalf,
    Act::Matmul,
    Act::Dot,
    Act::Outer,
    Act::Concat,
    Act::ConcatAxis,
    Act::Split,
    Act::Chunks,
    Act::Slice,
    Act::SliceAxis,
    Act::Reshape,
    Act::Transpose,
    Act::Pick,
    Act::Stack,
    Act::ArgMax,
    Act::TopK,
    Act::Softmax,
    Act::LogSoftmax,
    Act::LogSumExp,
    Act::Norm,
    Act::LayerNorm,
    Act::Attend,
    Act::FanOut,
    Act::PickNegLogSoftmax,
    Act::LabelledRows,
    Act::CrossEntropy,
    Act::KlDiv,
    Act::Mse,
    Act::Bce,
];

const ON_BLOCKS: [Act; 38] = [
    Act::InputShaped,
    Act::InputShaped,
    Act::Words,
    Act::Words,
    Act::Input,
    Act::Param,
    Act::Index,
    Act::Unary(Unary::Tanh),
    Act::Unary(Unary::Square),
    Act::Binary(Binary::Add),
    Act::Binary(Binary::Mul),
    Act::WithScalar(Binary::Sub),
    Act::WithScalar(Binary::Max),
    Act::Ints(Binary::Add),
    Act::Ints(Binary::Min),
    Act::Compare(Compare::Lt),
    Act::Compare(Compare::Ne),
    Act::Select,
    Act::Select,
    Act::Select,
    Act::Cast(DType::F32),
    Act::Cast(DType::Bool),
    Act::Meet,
    Act::Stretch,
    Act::Stretch,
    Act::AffineRows,
    Act::Matmul,
    Act::Outer,
    Act::ArgMax,
    Act::TopK,
    Act::Softmax,
    Act::LogSumExp,
    Act::LayerNorm,
    Act::LayerNorm,
    Act::LabelledRows,
    Act::LabelledRows,
    Act::Mse,
    Act::Call(CellName::Free),
];
/// Actions that move elements. On blocks they are half of all actions.
const MOVES: [Act; 8] = [
    Act::Broadcast,
    Act::ConcatAxis,
    Act::Chunks,
    Act::SliceAxis,
    Act::Reshape,
    Act::Transpose,
    Act::Pick,
    Act::Stack,
];

const RARE: [Act; 4] = [Act::Hinge, Act::Dropout, Act::StopGradient, Act::ScaleGradient];
const INT_OPS: [Binary; 5] = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Min, Binary::Max];

impl Act {
    /// Every act, in a fixed order.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut acts: Vec<Self> = PLAIN.into_iter().chain(RARE).collect();
        acts.extend(Unary::ALL.iter().map(|&unary| Self::Unary(unary)));
        for &binary in Binary::ALL {
            acts.extend([Self::Binary(binary), Self::WithNumber(binary), Self::WithScalar(binary)]);
        }
        acts.extend(INT_OPS.map(Self::Ints));
        acts.extend(Compare::ALL.iter().map(|&compare| Self::Compare(compare)));
        acts.extend([DType::F32, DType::I32, DType::U32, DType::Bool].map(Self::Cast));
        for &fold in Fold::ALL {
            acts.extend(Over::ALL.iter().map(|&over| Self::Reduce(fold, over)));
        }
        acts.extend(ListFold::ALL.iter().map(|&fold| Self::ListFold(fold)));
        acts.extend([false, true].map(|softmax| Self::WeightedSum { softmax }));
        acts.extend(CellName::ALL.map(Self::Call));
        acts
    }

    /// Acts on values of any rank and element type, those that move elements several times.
    #[must_use]
    pub fn on_blocks() -> Vec<Self> {
        let folds = Fold::ALL.iter().map(|&fold| Self::Reduce(fold, Over::Last));
        let lists = ListFold::ALL.iter().map(|&fold| Self::ListFold(fold));
        let sums = [false, true].map(|softmax| Self::WeightedSum { softmax });
        let moves = MOVES.into_iter().cycle().take(6 * MOVES.len());
        ON_BLOCKS.into_iter().chain(folds).chain(lists).chain(sums).chain(moves).collect()
    }

    /// Whether what it makes depends smoothly on its operands, and its derivative is the true one.
    ///
    /// `elu` is, because recipes use it with the limit 1; indices are bound, never computed, where
    /// smoothness is asked for.
    #[must_use]
    pub const fn is_smooth(self) -> bool {
        match self {
            Self::Unary(unary) => !matches!(unary, Unary::Abs | Unary::Relu | Unary::Sign),
            Self::Binary(binary) | Self::WithNumber(binary) | Self::WithScalar(binary) => {
                !matches!(binary, Binary::Min | Binary::Max)
            }
            Self::Reduce(fold, _) => matches!(fold, Fold::Sum | Fold::Mean),
            Self::ListFold(fold) => !matches!(fold, ListFold::Max),
            Self::LookComputed
            | Self::LeakyRelu
            | Self::Clamp
            | Self::Ints(_)
            | Self::Compare(_)
            | Self::Select
            | Self::Mask
            | Self::Cast(_)
            | Self::AffineHalf
            | Self::ArgMax
            | Self::TopK
            | Self::Hinge
            | Self::StopGradient
            | Self::ScaleGradient => false,
            _ => true,
        }
    }

    /// Whether it has a meaning in training only.
    #[must_use]
    pub const fn is_for_training(self) -> bool {
        matches!(
            self,
            Self::Dropout
                | Self::StopGradient
                | Self::ScaleGradient
                | Self::Call(CellName::Drop | CellName::Twice)
        )
    }
}
