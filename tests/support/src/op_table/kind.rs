//! One name for every op and every attribute that changes the result of an op.
//!
//! [`Kind::of`] matches [`Op`] and its members without a wildcard. A new op, or a new member of one, does not
//! compile until it has a kind. A new kind does not compile until it has an entry.

use autobatch_ir::DType;
use autobatch_ir::graph::{Binary, Compare, Fold, ListFold, Op, Over, Unary};

macro_rules! kinds {
    ($($kind:ident)*) => {
        /// An op with the attributes that change its result.
        #[allow(missing_docs, reason = "the names are the names of the ops")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($kind,)* }

        impl Kind {
            /// Every kind, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];
        }
    };
}

kinds! {
    Port Input Fill Param List Append
    Neg Abs Exp Log Sqrt Rsqrt Square Recip Tanh Sigmoid Relu Gelu Silu Softplus Sin Cos Erf Sign
    LeakyRelu Elu Clamp
    Add Sub Mul Div Pow Minimum Maximum
    Equal NotEqual Less LessEqual Greater GreaterEqual
    Select CastF32 CastI32 CastU32 CastBool Broadcast
    Affine AffineBias AffineTransposed AffineTransposedBias AffineRows AffineRowsBias AffineOnto Matmul Dot Outer
    Concat Split Slice Reshape Transpose Pick Stack
    SumLast SumAll MeanLast MeanAll MaxLast MaxAll MinLast MinAll
    ArgMax TopK Softmax LogSoftmax LogSumExp Norm LayerNorm
    ListSum ListMean ListMax ListLogSumExp ListArgMax ListPick WeightedSum SoftmaxSum Attend GraphAttend
    Lookup OneHot
    PickNegLogSoftmax LabelLoss CrossEntropy KlDiv Mse Bce Hinge
    Dropout ForkNoise StopGradient ScaleGradient
}

impl Kind {
    /// Returns the kind of an op.
    #[must_use]
    pub const fn of(op: &Op) -> Self {
        match op {
            Op::Port(_) => Self::Port,
            Op::Input(_) => Self::Input,
            Op::Fill { ty: _, bits: _ } => Self::Fill,
            Op::Param => Self::Param,
            Op::List => Self::List,
            Op::Append => Self::Append,
            Op::Unary(unary) => Self::of_unary(*unary),
            Op::LeakyRelu { slope: _ } => Self::LeakyRelu,
            Op::Elu { alpha: _ } => Self::Elu,
            Op::Clamp { low: _, high: _ } => Self::Clamp,
            Op::Binary(binary) => Self::of_binary(*binary),
            Op::Compare(compare) => Self::of_compare(*compare),
            Op::Select => Self::Select,
            // Inference rejects the storage formats; the error test of `CastF32` shows it.
            Op::Cast(DType::F32 | DType::F16 | DType::BF16) => Self::CastF32,
            Op::Cast(DType::I32) => Self::CastI32,
            Op::Cast(DType::U32) => Self::CastU32,
            Op::Cast(DType::Bool) => Self::CastBool,
            Op::Broadcast(_) => Self::Broadcast,
            Op::Affine { bias: false, transposed: false } => Self::Affine,
            Op::Affine { bias: true, transposed: false } => Self::AffineBias,
            Op::Affine { bias: false, transposed: true } => Self::AffineTransposed,
            Op::Affine { bias: true, transposed: true } => Self::AffineTransposedBias,
            Op::AffineRows { row: _, bias: _, onto: true } => Self::AffineOnto,
            Op::AffineRows { row: _, bias: true, onto: false } => Self::AffineRowsBias,
            Op::AffineRows { row: _, bias: false, onto: false } => Self::AffineRows,
            Op::Matmul => Self::Matmul,
            Op::Dot => Self::Dot,
            Op::Outer => Self::Outer,
            Op::Concat { axis: _ } => Self::Concat,
            Op::Split { axis: _, parts: _ } => Self::Split,
            Op::Slice { axis: _, start: _, len: _ } => Self::Slice,
            Op::Reshape(_) => Self::Reshape,
            Op::Transpose(_) => Self::Transpose,
            Op::Pick => Self::Pick,
            Op::Stack => Self::Stack,
            Op::Reduce { fold, over } => Self::of_reduce(*fold, *over),
            Op::ArgMax => Self::ArgMax,
            Op::TopK { k: _ } => Self::TopK,
            Op::Softmax => Self::Softmax,
            Op::LogSoftmax => Self::LogSoftmax,
            Op::LogSumExp => Self::LogSumExp,
            Op::Norm => Self::Norm,
            Op::LayerNorm { eps: _ } => Self::LayerNorm,
            Op::ListFold(ListFold::Sum) => Self::ListSum,
            Op::ListFold(ListFold::Mean) => Self::ListMean,
            Op::ListFold(ListFold::Max) => Self::ListMax,
            Op::ListFold(ListFold::LogSumExp) => Self::ListLogSumExp,
            Op::ListFold(ListFold::ArgMax) => Self::ListArgMax,
            Op::ListPick => Self::ListPick,
            Op::WeightedSum { softmax: false } => Self::WeightedSum,
            Op::WeightedSum { softmax: true } => Self::SoftmaxSum,
            Op::Attend { scale: _ } => Self::Attend,
            Op::GraphAttend { slope: _ } => Self::GraphAttend,
            Op::Lookup => Self::Lookup,
            Op::OneHot { width: _ } => Self::OneHot,
            Op::PickNegLogSoftmax => Self::PickNegLogSoftmax,
            Op::LabelLoss => Self::LabelLoss,
            Op::CrossEntropy => Self::CrossEntropy,
            Op::KlDiv => Self::KlDiv,
            Op::Mse => Self::Mse,
            Op::Bce => Self::Bce,
            Op::Hinge { margin: _ } => Self::Hinge,
            Op::Dropout { rate: _, ordinal: _ } => Self::Dropout,
            Op::ForkNoise { ordinal: _ } => Self::ForkNoise,
            Op::StopGradient => Self::StopGradient,
            Op::ScaleGradient { by: _ } => Self::ScaleGradient,
        }
    }

    const fn of_unary(unary: Unary) -> Self {
        match unary {
            Unary::Neg => Self::Neg,
            Unary::Abs => Self::Abs,
            Unary::Exp => Self::Exp,
            Unary::Log => Self::Log,
            Unary::Sqrt => Self::Sqrt,
            Unary::Rsqrt => Self::Rsqrt,
            Unary::Square => Self::Square,
            Unary::Recip => Self::Recip,
            Unary::Tanh => Self::Tanh,
            Unary::Sigmoid => Self::Sigmoid,
            Unary::Relu => Self::Relu,
            Unary::Gelu => Self::Gelu,
            Unary::Silu => Self::Silu,
            Unary::Softplus => Self::Softplus,
            Unary::Sin => Self::Sin,
            Unary::Cos => Self::Cos,
            Unary::Erf => Self::Erf,
            Unary::Sign => Self::Sign,
        }
    }

    const fn of_binary(binary: Binary) -> Self {
        match binary {
            Binary::Add => Self::Add,
            Binary::Sub => Self::Sub,
            Binary::Mul => Self::Mul,
            Binary::Div => Self::Div,
            Binary::Pow => Self::Pow,
            Binary::Min => Self::Minimum,
            Binary::Max => Self::Maximum,
        }
    }

    const fn of_compare(compare: Compare) -> Self {
        match compare {
            Compare::Eq => Self::Equal,
            Compare::Ne => Self::NotEqual,
            Compare::Lt => Self::Less,
            Compare::Le => Self::LessEqual,
            Compare::Gt => Self::Greater,
            Compare::Ge => Self::GreaterEqual,
        }
    }

    const fn of_reduce(fold: Fold, over: Over) -> Self {
        match (fold, over) {
            (Fold::Sum, Over::Last) => Self::SumLast,
            (Fold::Sum, Over::All) => Self::SumAll,
            (Fold::Mean, Over::Last) => Self::MeanLast,
            (Fold::Mean, Over::All) => Self::MeanAll,
            (Fold::Max, Over::Last) => Self::MaxLast,
            (Fold::Max, Over::All) => Self::MaxAll,
            (Fold::Min, Over::Last) => Self::MinLast,
            (Fold::Min, Over::All) => Self::MinAll,
        }
    }
}
