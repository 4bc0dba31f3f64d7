//! The actions of a recipe's steps. They cover every call that a model can make, as plain data.

use autobatch_ir::DType;
use autobatch_ir::graph::{Binary, Compare, Fold, ListFold, Over, Unary};

/// One action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A vector input.
    Input,
    /// A float input of rank 0 to 4.
    InputShaped,
    /// A constant vector.
    Fill,
    /// A parameter as a value.
    Param,
    /// A table lookup at a bound index.
    Look,
    /// A table lookup at the index of a value's largest element.
    LookComputed,
    /// A one-hot vector.
    OneHot,
    /// A bound index as a value.
    Index,
    /// A vector of bound indices.
    Indices,
    /// Integers or booleans of rank 0 to 4.
    Words,
    /// An elementwise function.
    Unary(Unary),
    /// `leaky_relu`.
    LeakyRelu,
    /// `elu`.
    Elu,
    /// `clamp`.
    Clamp,
    /// A function of two values of one type.
    Binary(Binary),
    /// A function of a value and a number.
    WithNumber(Binary),
    /// A function of a value and a scalar value, in either order.
    WithScalar(Binary),
    /// A function of a matrix and a row, which broadcast to one shape.
    WithRow,
    /// A function of two integer values of one type.
    Ints(Binary),
    /// A comparison of two values.
    Compare(Compare),
    /// A selection.
    Select,
    /// A mask of allowed choices with a softmax.
    Mask,
    /// A conversion.
    Cast(DType),
    /// A broadcast.
    Broadcast,
    /// `x · W` without a bias.
    Affine,
    /// `x · W + b`.
    AffineBias,
    /// `[x y] · W + b`, in two parts.
    AffineParts,
    /// `x · Wᵀ`, with and without a bias.
    AffineTransposed,
    /// A product of several rows.
    AffineRows,
    /// A product with a range of a weight's rows. It starts a sum or continues one.
    Stretch,
    /// A product with a weight stored in 16 bits.
    AffineHalf,
    /// A product of two values.
    Matmul,
    /// An inner product.
    Dot,
    /// An outer product.
    Outer,
    /// A concatenation along the innermost axis.
    Concat,
    /// A concatenation along any axis.
    ConcatAxis,
    /// A split of the innermost axis into two parts.
    Split,
    /// A split of any axis into equal parts.
    Chunks,
    /// A range of the innermost axis.
    Slice,
    /// A range of any axis.
    SliceAxis,
    /// A reshape.
    Reshape,
    /// A permutation of the axes.
    Transpose,
    /// A row at a bound or computed index.
    Pick,
    /// A stack along a new outermost axis.
    Stack,
    /// A reduction within a value.
    Reduce(Fold, Over),
    /// The index of the largest element.
    ArgMax,
    /// The largest elements and their indices.
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
    /// The value of a list at a bound or computed index.
    ListPick,
    /// A weighted sum over two lists.
    WeightedSum {
        /// Whether a softmax normalises the scores.
        softmax: bool,
    },
    /// Attention over two lists.
    Attend,
    /// One value with many readers.
    FanOut,
    /// The loss of one label.
    PickNegLogSoftmax,
    /// The losses of a matrix, one per row.
    LabelledRows,
    /// The cross-entropy with a distribution.
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
    /// A cell that turns an index into two vectors.
    Leaf,
    /// A binary Tree-LSTM cell.
    Node,
    /// A recurrent step.
    Forward,
    /// The body of `Forward` with other parameters.
    Backward,
    /// A cell that folds a list port.
    Fold,
    /// A cell that attends to a list port.
    Attend,
    /// A cell with two list ports: one holds the scores of the other.
    Both,
    /// A cell that draws noise.
    Drop,
    /// A cell that calls a noisy cell twice.
    Twice,
    /// A cell that calls two cells, one of which has several results.
    Deep,
    /// A cell with an index port that computes a loss.
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

const PLAIN: [Act; 53] = [
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
    Act::WithRow,
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
    Act::ListPick,
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
    Act::WithRow,
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
/// Actions that move elements. They make up half of the actions on blocks.
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
    /// Returns every action in a fixed order.
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

    /// Returns the actions on values of any rank and element type. Actions that move elements occur several times.
    #[must_use]
    pub fn on_blocks() -> Vec<Self> {
        let folds = Fold::ALL.iter().map(|&fold| Self::Reduce(fold, Over::Last));
        let lists = ListFold::ALL.iter().map(|&fold| Self::ListFold(fold));
        let sums = [false, true].map(|softmax| Self::WeightedSum { softmax });
        let moves = MOVES.into_iter().cycle().take(6 * MOVES.len());
        ON_BLOCKS.into_iter().chain(folds).chain(lists).chain(sums).chain(moves).collect()
    }

    /// Returns whether the results depend smoothly on the operands and the gradient is their true derivative.
    ///
    /// `elu` is smooth, because recipes use it with the limit 1. Smooth recipes bind all indices and compute
    /// none.
    #[must_use]
    pub const fn is_smooth(self) -> bool {
        match self {
            Self::Unary(unary) => !matches!(unary, Unary::Abs | Unary::Relu | Unary::Sign),
            Self::Binary(binary) | Self::WithNumber(binary) | Self::WithScalar(binary) => {
                !matches!(binary, Binary::Min | Binary::Max)
            }
            Self::Reduce(fold, _) => matches!(fold, Fold::Sum | Fold::Mean),
            Self::ListFold(fold) => !matches!(fold, ListFold::Max | ListFold::ArgMax),
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

    /// Returns whether the action has an effect in training only.
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
