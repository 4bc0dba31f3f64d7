//! Kernels: the program of one lane of a step.
//!
//! A kernel is a straight program over registers. Its first registers are its ports. The others are constants, whole
//! parameters, or temporaries that a stage writes. A [`View`] is a range of a register's elements, so `concat`, `split`,
//! `slice` and `reshape` are views and need no stage.
//!
//! Stages come from a closed set of templates. All lanes are independent. A runtime may execute all stages on a tile of lanes,
//! or one stage on all lanes; both give the same bits.

use super::{ParamPort, RegId, Roles};
use crate::graph::Float;
use crate::graph::{Binary, Compare, Op, Unary};
use crate::types::{DType, Type};
use serde::{Deserialize, Serialize};

/// A range of a register's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    /// The register.
    pub reg: RegId,
    /// The first element.
    pub start: u32,
    /// How many elements.
    pub width: u32,
}

/// The origin of a register's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegKind {
    /// A port: the lane's operand. List ports have a list type and no elements of their own.
    Port,
    /// A parameter port, taken whole.
    Param(ParamPort),
    /// Every element has these bits.
    Const(u32),
    /// Written by stages; each element exactly once.
    Temp,
    /// Written whole by the gradient of a fold: one value for each value of a list. Its type is a list, and only results read it.
    Edges,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reg {
    /// The origin of its elements.
    pub kind: RegKind,
    /// The type of its value. Stages read views with shapes of their own; the type gives the number and kind of elements.
    pub ty: Type,
}

/// The start of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProdInit {
    /// Zero.
    Zero,
    /// The elements of a parameter port, a vector, from the first column of the parts on.
    Bias(ParamPort),
    /// A view as wide as the result: the product continues.
    View(View),
}

/// One part of a product: `source · W[row.., col..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProductPart {
    /// The elements multiplied: `rows` rows of equal width.
    pub source: View,
    /// The weight, a parameter port.
    pub param: ParamPort,
    /// The first row of the weight that is multiplied (of its transpose, if it is transposed).
    pub row: u32,
    /// The first column of the weight that is multiplied (likewise).
    pub col: u32,
    /// Whether the weight is stored transposed.
    pub transposed: bool,
}

/// An operand of an elementwise instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The result of an earlier instruction of the same stage.
    Local(u32),
    /// Element `i` of a view as wide as the stage.
    View(View),
    /// The one element of a view of width 1, for every `i`.
    Scalar(View),
    /// These bits, for every `i`.
    Const(u32),
}

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The operand itself.
    Copy,
    /// A function of one operand.
    Unary(Unary),
    /// `x` where positive, `slope * x` elsewhere.
    LeakyRelu(Float),
    /// `x` where positive, `alpha * (e^x - 1)` elsewhere.
    Elu(Float),
    /// `x` cut to an interval.
    Clamp(Float, Float),
    /// The slope of `tanh` or `sigmoid` at their *result*, of `relu`, `gelu`, `silu`, `softplus` or
    /// `erf` at their operand, as [`Real`](crate::numeric::Real) says. Derivatives of other
    /// functions are made of the instructions above; these need a fused product.
    Slope(Unary),
    /// A function of two operands.
    Binary(Binary),
    /// A comparison.
    Compare(Compare),
    /// `if a { b } else { c }`
    Select,
    /// Conversion to another element type.
    Cast(DType),
}

impl Code {
    /// The elementwise function of an op; `None` for other ops.
    #[must_use]
    pub const fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::Unary(unary) => Self::Unary(unary),
            Op::LeakyRelu { slope } => Self::LeakyRelu(slope),
            Op::Elu { alpha } => Self::Elu(alpha),
            Op::Clamp { low, high } => Self::Clamp(low, high),
            Op::Binary(binary) => Self::Binary(binary),
            Op::Compare(compare) => Self::Compare(compare),
            Op::Select => Self::Select,
            Op::Cast(to) => Self::Cast(to),
            _ => return None,
        })
    }

    /// The op of this function; `None` for copies and slopes.
    #[must_use]
    pub const fn op(self) -> Option<Op> {
        Some(match self {
            Self::Copy | Self::Slope(_) => return None,
            Self::Unary(unary) => Op::Unary(unary),
            Self::LeakyRelu(slope) => Op::LeakyRelu { slope },
            Self::Elu(alpha) => Op::Elu { alpha },
            Self::Clamp(low, high) => Op::Clamp { low, high },
            Self::Binary(binary) => Op::Binary(binary),
            Self::Compare(compare) => Op::Compare(compare),
            Self::Select => Op::Select,
            Self::Cast(to) => Op::Cast(to),
        })
    }

    /// How many operands it takes.
    #[must_use]
    pub const fn arity(self) -> usize {
        match self {
            Self::Copy
            | Self::Unary(_)
            | Self::LeakyRelu(_)
            | Self::Elu(_)
            | Self::Clamp(..)
            | Self::Slope(_)
            | Self::Cast(_) => 1,
            Self::Binary(_) | Self::Compare(_) => 2,
            Self::Select => 3,
        }
    }
}

/// One elementwise instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instr {
    /// The function.
    pub code: Code,
    /// The element type of its operands, in which it computes.
    pub dtype: DType,
    /// Its operands, as many as the code takes.
    pub sources: Vec<Source>,
    /// Where the result is stored, if another stage or a result reads it.
    pub store: Option<View>,
}

/// A list inside a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListSource {
    /// A list port, by its register.
    Port(RegId),
    /// Values of the kernel itself.
    Views(Vec<View>),
}

/// One step of a kernel's program.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// `dst = init; for each part, for k ascending: dst = fma(source[k], W[row + k, col..], dst)`. The parts are added in
    /// order. A matrix value has `rows` rows, a vector 1.
    Prod { dst: View, rows: u32, init: ProdInit, parts: Vec<ProductPart> },
    /// A straight line of elementwise instructions over `width` elements. Each instruction is a local, numbered from 0.
    Map { width: u32, code: Vec<Instr> },
    /// Any op that reads a value as a whole and that no other template executes: row reductions, softmax, losses, matrix
    /// products of values, transposes, picks, dropout. `numeric` defines it. The sources have their types beside them.
    Row { op: Op, sources: Vec<(View, Type)>, dsts: Vec<View> },
    /// A fold over lists: `ListFold`, `ListPick`, `WeightedSum`, `Attend` or `GraphAttend`. The query is that of an attention, or
    /// the index of a pick. The lists are values; scores and values; or keys and values. `elements` has the type of each list's elements.
    Seg { op: Op, query: Option<View>, lists: Vec<ListSource>, elements: Vec<Type>, dst: View },
    /// The gradient of a fold over lists, all of them ports. `dy` is the gradient of the fold's result. Per list, a register of
    /// edges in `dsts` takes the gradients of its values, if they are needed. The query is the index of a pick.
    SegGrad {
        op: Op,
        query: Option<View>,
        lists: Vec<RegId>,
        elements: Vec<Type>,
        dy: View,
        dsts: Vec<Option<RegId>>,
    },
    /// The gradient of the mean of a list port, which is the same for all its values: `dst = dy / max(length, 1)`.
    MeanGrad { list: RegId, dy: View, dst: View },
    /// The reverse of an attention, `Attend` or `GraphAttend`, for its query. `keys` and `values` are list ports, `dy` is the
    /// gradient of the result. `dst` takes the gradient of the query, `reader` the row that [`AttendPull`](Self::AttendPull)
    /// reads: the query, `dy` and the numbers that [`attend_grad`](super::row_ops::attend_grad) adds. Either may be absent.
    AttendGrad {
        op: Op,
        query: View,
        keys: RegId,
        values: RegId,
        dy: View,
        dst: Option<View>,
        reader: Option<View>,
    },
    /// The reverse of an attention, for one key and its value. `readers` is a list port: a row of each query that reads them.
    /// `key_dst` and `value_dst` take the gradients of the key and of the value, if they are needed.
    AttendPull {
        op: Op,
        key: View,
        value: View,
        readers: RegId,
        key_dst: Option<View>,
        value_dst: Option<View>,
    },
    /// A row of the table at a parameter port. The index is one word.
    Lookup { param: ParamPort, index: View, dst: View },
    /// The loss of a label, `LabelLoss`. `x` is as wide as the rows of the parameter port. For the reverse, `log_sum` takes
    /// the logarithm of the sum over all labels, and `slope` the derivative of the loss with respect to `x`.
    LabelLoss {
        param: ParamPort,
        x: View,
        label: View,
        dst: View,
        log_sum: Option<View>,
        slope: Option<View>,
    },
}

impl Stage {
    /// The views that it reads. List ports are operands, not views.
    #[must_use]
    pub fn reads(&self) -> Vec<View> {
        match self {
            Self::Prod { init, parts, .. } => {
                let init = match init {
                    ProdInit::View(view) => Some(*view),
                    ProdInit::Zero | ProdInit::Bias(_) => None,
                };
                init.into_iter().chain(parts.iter().map(|part| part.source)).collect()
            }
            Self::Map { code, .. } => {
                let view = |source: &Source| match source {
                    Source::View(view) | Source::Scalar(view) => Some(*view),
                    Source::Local(_) | Source::Const(_) => None,
                };
                code.iter().flat_map(|instr| &instr.sources).filter_map(view).collect()
            }
            Self::Row { sources, .. } => sources.iter().map(|source| source.0).collect(),
            Self::Seg { query, lists, .. } => {
                let views = |list: &ListSource| match list {
                    ListSource::Port(_) => Vec::new(),
                    ListSource::Views(views) => views.clone(),
                };
                query.iter().copied().chain(lists.iter().flat_map(views)).collect()
            }
            Self::SegGrad { query, dy, .. } => query.iter().chain([dy]).copied().collect(),
            Self::MeanGrad { dy, .. } => vec![*dy],
            Self::AttendGrad { query, dy, .. } => vec![*query, *dy],
            Self::AttendPull { key, value, .. } => vec![*key, *value],
            Self::Lookup { index, .. } => vec![*index],
            Self::LabelLoss { x, label, .. } => vec![*x, *label],
        }
    }

    /// The views that it writes. Edges are no views.
    #[must_use]
    pub fn writes(&self) -> Vec<View> {
        match self {
            Self::Prod { dst, .. }
            | Self::Seg { dst, .. }
            | Self::MeanGrad { dst, .. }
            | Self::Lookup { dst, .. } => vec![*dst],
            Self::Map { code, .. } => code.iter().filter_map(|instr| instr.store).collect(),
            Self::Row { dsts, .. } => dsts.clone(),
            Self::SegGrad { .. } => Vec::new(),
            Self::AttendGrad { dst, reader, .. } => dst.iter().chain(reader).copied().collect(),
            Self::AttendPull { key_dst, value_dst, .. } => key_dst.iter().chain(value_dst).copied().collect(),
            Self::LabelLoss { dst, log_sum, slope, .. } => {
                [*dst].iter().chain(log_sum).chain(slope).copied().collect()
            }
        }
    }
}

/// A program over one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kernel {
    /// The name in text: the cell's or op's.
    pub name: String,
    /// How many of the first registers are ports.
    pub ports: u32,
    /// The types of the parameter ports.
    pub params: Vec<Type>,
    /// Ports first, then the rest.
    pub regs: Vec<Reg>,
    /// The program.
    pub stages: Vec<Stage>,
    /// The results.
    pub results: Vec<View>,
    /// Whether it only brings in bindings, constants or parameters.
    pub source: bool,
    /// The roles of ports and results, exactly if the kernel belongs to the reverse (rule P36).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Roles>,
}

impl Kernel {
    /// Whether it only moves values, so that the certificate counts its rows as copied. Sources do not count, because every plan
    /// needs them.
    #[must_use]
    pub fn only_moves(&self) -> bool {
        let moves = |stage: &Stage| match stage {
            Stage::Map { code, .. } => code.iter().all(|instr| instr.code == Code::Copy),
            Stage::Row { op, .. } => matches!(
                op,
                Op::Broadcast(_) | Op::Concat { .. } | Op::Split { .. } | Op::Slice { .. } | Op::Transpose(_)
            ),
            Stage::Prod { .. }
            | Stage::Seg { .. }
            | Stage::SegGrad { .. }
            | Stage::MeanGrad { .. }
            | Stage::AttendGrad { .. }
            | Stage::AttendPull { .. }
            | Stage::Lookup { .. }
            | Stage::LabelLoss { .. } => false,
        };
        !self.source && self.stages.iter().all(moves)
    }

    /// The view of a whole register.
    #[must_use]
    pub fn whole(&self, reg: RegId) -> View {
        View { reg, start: 0, width: self.regs[reg.index()].ty.shape.elements() as u32 }
    }
}
