//! The built-in ops: one enum with typed attributes.
//!
//! Ops know nothing about batches: shapes are those of a single instance. A node reads values as operands and parameters as
//! parameter arguments of its signature. Numbers that the model fixes are attributes of the op.

mod attribute;

pub use attribute::{Binary, Compare, Float, Fold, ListFold, Over, Permutation, Unary};

use crate::types::{DType, Shape, Type};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// Declares [`Op`] with the word of each op in text and its number of operands. Both expressions may read the attributes.
macro_rules! ops {
    ($(
        $(#[$doc:meta])*
        $name:ident $(($part:ident: $part_type:ty))? $({ $($field:ident: $type:ty),+ })? = $word:expr, $arity:expr;
    )*) => {
        /// One of the built-in operations. A field is the attribute that text spells with its name.
        #[expect(missing_docs, reason = "the description of an op names its attributes")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Op {
            $($(#[$doc])* $name $(($part_type))? $({ $($field: $type),+ })?,)*
        }

        #[allow(unused_variables, reason = "most words and arities do not depend on attributes")]
        impl Op {
            /// The word of the op in text. Ops that differ in more than attributes have different words.
            #[must_use]
            pub const fn spelling(&self) -> &'static str {
                match self { $(Self::$name $(($part))? $({ $($field),+ })? => $word,)* }
            }

            /// The number of operands.
            #[must_use]
            pub const fn arity(&self) -> Arity {
                use Arity::{AtLeast, Exactly, Free};
                match self { $(Self::$name $(($part))? $({ $($field),+ })? => $arity,)* }
            }
        }
    };
}

ops! {
    /// A port of a cell body. Legal only at the head of a body.
    Port(ty: Type) = "port", Exactly(0);
    /// Numbers bound when the graph is executed; the operand names their slot.
    Input(ty: Type) = "input", Exactly(1);
    /// A constant: every element has these bits.
    Fill { ty: Type, bits: u32 } = "fill", Exactly(0);
    /// The value of a parameter.
    Param = "param", Exactly(0);
    /// A list of any number of values. Only ops and ports that take lists may read it.
    List = "list", Free;
    /// An elementwise function of one operand.
    Unary(unary: Unary) = unary.spelling(), Exactly(1);
    /// `x` where positive, `slope * x` elsewhere.
    LeakyRelu { slope: Float } = "leaky_relu", Exactly(1);
    /// `x` where positive, `alpha * (e^x - 1)` elsewhere.
    Elu { alpha: Float } = "elu", Exactly(1);
    /// `x` limited to `low..=high`.
    Clamp { low: Float, high: Float } = "clamp", Exactly(1);
    /// An elementwise function of two operands.
    Binary(binary: Binary) = binary.spelling(), Exactly(2);
    /// An elementwise comparison.
    Compare(compare: Compare) = compare.spelling(), Exactly(2);
    /// `if condition { a } else { b }`, element by element.
    Select = "select", Exactly(3);
    /// Conversion to another element type.
    Cast(to: DType) = "cast", Exactly(1);
    /// Repetition along axes of extent 1 and new outer axes.
    Broadcast(shape: Shape) = "broadcast", Exactly(1);
    /// `x · W (+ b)`, where `x` is the concatenation of the operands. A matrix `x` gives one product per row. `bias` says
    /// whether there is a `b`, `transposed` whether the parameter is stored as `Wᵀ`.
    Affine { bias: bool, transposed: bool } = "affine", AtLeast(1);
    /// The matrix product of two values; a vector is a row on the left and a column on the right.
    Matmul = "matmul", Exactly(2);
    /// The inner product of two vectors.
    Dot = "dot", Exactly(2);
    /// The outer product of two vectors.
    Outer = "outer", Exactly(2);
    /// The concatenation of values along an axis.
    Concat { axis: u8 } = "concat", AtLeast(1);
    /// Equal parts along an axis, as several results.
    Split { axis: u8, parts: u32 } = "split", Exactly(1);
    /// The range of `len` indices from `start` on, along an axis.
    Slice { axis: u8, start: u32, len: u32 } = "slice", Exactly(1);
    /// The same elements in another shape.
    Reshape(shape: Shape) = "reshape", Exactly(1);
    /// The axes in another order.
    Transpose(order: Permutation) = "transpose", Exactly(1);
    /// The element or row at an index of the outermost axis. An index out of range selects the last.
    Pick = "pick", Exactly(2);
    /// Values of one type along a new outermost axis.
    Stack = "stack", AtLeast(1);
    /// A fold of the elements inside a value that `over` names.
    Reduce { fold: Fold, over: Over } = "reduce", Exactly(1);
    /// The index of the largest element of each row; ties select the first.
    ArgMax = "argmax", Exactly(1);
    /// The `k` largest elements of each row, descending, and their indices.
    TopK { k: u32 } = "top_k", Exactly(1);
    /// `e^x / sum e^x` of each row.
    Softmax = "softmax", Exactly(1);
    /// `log(softmax(x))` of each row.
    LogSoftmax = "log_softmax", Exactly(1);
    /// `log(sum e^x)` of each row.
    LogSumExp = "logsumexp", Exactly(1);
    /// The Euclidean length of each row.
    Norm = "norm", Exactly(1);
    /// Each row minus its mean, divided by its deviation: the root of variance plus `eps`.
    LayerNorm { eps: Float } = "layer_norm", Exactly(1);
    /// A fold over the values of a list, element by element.
    ListFold(fold: ListFold) = fold.spelling(), Exactly(1);
    /// `sum of score_i * value_i` over two lists of equal length. Scores are scalars or have the shape of the values.
    /// `softmax` replaces the scores by their softmax over the list.
    WeightedSum { softmax: bool } = "wsum", Exactly(2);
    /// `sum of softmax_i(scale * q·k_i) * v_i` over a query, a list of keys and a list of values.
    Attend { scale: Float } = "attend", Exactly(3);
    /// A row of a table.
    Lookup = "lookup", Exactly(1);
    /// 1 at an index below `width`, 0 elsewhere. An index out of range selects the last element.
    OneHot { width: u32 } = "one_hot", Exactly(1);
    /// `-log_softmax(x)[label]` of each row.
    PickNegLogSoftmax = "pick_neg_log_softmax", Exactly(2);
    /// `-sum target * log_softmax(x)`.
    CrossEntropy = "cross_entropy", Exactly(2);
    /// `sum target * (log target - x)` where `x` holds log-probabilities; 0 where the target is 0.
    KlDiv = "kl_div", Exactly(2);
    /// The mean of the squared differences.
    Mse = "mse", Exactly(2);
    /// The mean binary cross-entropy of logits against targets.
    Bce = "bce", Exactly(2);
    /// `sum over j ≠ label of max(0, margin + x_j - x_label)`.
    Hinge { margin: Float } = "hinge", Exactly(2);
    /// In training, zero with probability `rate` and scaled up elsewhere; the identity otherwise. `ordinal` distinguishes
    /// several uses of one noise key.
    Dropout { rate: Float, ordinal: u32 } = "dropout", Exactly(3);
    /// A noise key derived from another, for a cell called inside a cell. `ordinal` distinguishes several forks of one key.
    ForkNoise { ordinal: u32 } = "fork_noise", Exactly(2);
    /// The identity with derivative zero.
    StopGradient = "stop_gradient", Exactly(1);
    /// The identity; it multiplies the gradient by the factor `by`.
    ScaleGradient { by: Float } = "scale_gradient", Exactly(1);
    /// A part of the sums of an affine: `x · W[row..]`, with as many rows of the weight as `x` is wide. The sums start at
    /// zero, at a bias row if `bias`, or at the first operand if `onto`. So several nodes can compute a product with the
    /// bits of a single one.
    AffineRows { row: u32, bias: bool, onto: bool } = "affine_rows", AtLeast(if *onto { 2 } else { 1 });
    /// A list with one further item at its end. It shares the other items. Legal only in graphs.
    Append = "append", Exactly(2);
    /// `sum of softmax_i(leaky_relu(q + k_i)) * v_i` over a query, a list of keys and a list of values. A query and a key have
    /// one number per head, and a value has one group of elements per head.
    GraphAttend { slope: Float } = "graph_attend", Exactly(3);
    /// `-log_softmax(W · x)[label]`, where the parameter `W` has a row for each label. It keeps no number per label, so there may
    /// be 10^5 of them.
    LabelLoss = "label_loss", Exactly(2);
    /// The value of a list at an index, the first operand. An index out of range selects the last.
    ListPick = "list_pick", Exactly(2);
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

    /// The number of parameter arguments.
    #[must_use]
    pub const fn params(&self) -> usize {
        match self {
            Self::Affine { bias: true, .. } | Self::AffineRows { bias: true, .. } => 2,
            Self::Affine { bias: false, .. }
            | Self::AffineRows { bias: false, .. }
            | Self::Lookup
            | Self::LabelLoss
            | Self::Param => 1,
            _ => 0,
        }
    }
}
