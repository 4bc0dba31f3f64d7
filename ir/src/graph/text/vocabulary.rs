//! The attributes of every op, in one table for the printer and the parser.
//!
//! [`attributes`] visits the attributes of an op in order, with names and mutable access: the printer writes them and the
//! parser fills them in. The visit is an exhaustive match that destructures every op, and the table of spellings comes from
//! the same lines. So an op or attribute without a spelling does not compile, and printer and parser agree.

use crate::graph::op::{Binary, Compare, Float, Fold, ListFold, Op, Over, Permutation, Unary};
use crate::types::{DType, INDEX, Shape, Type};
use std::sync::LazyLock;

/// One attribute, with mutable access to its value.
pub(crate) enum Attr<'a> {
    /// The type behind the word of the op, outside the braces. It has no name.
    Type(&'a mut Type),
    Axis(&'a mut u8),
    Number(&'a mut u32),
    Float(&'a mut Float),
    /// The bits of an element of this type.
    Element(DType, &'a mut u32),
    /// A bare name, which text writes if it is true.
    Flag(&'a mut bool),
    DType(&'a mut DType),
    Shape(&'a mut Shape),
    Order(&'a mut Permutation),
    Fold(&'a mut Fold),
    Over(&'a mut Over),
}

const ZERO: Float = Float::new(0.0);
const SCALAR: Type = Type::scalar(DType::F32);

macro_rules! vocabulary {
    (
        $visit:ident
        families { $($family:ident: $words:ident,)* }
        plain { $($plain:ident,)* }
        tuples { $($tuple:ident($part:ident: $part_as:ident = $part_zero:expr),)* }
        structs { $($struct:ident { $($field:ident: $field_as:ident = $field_zero:expr),+ },)* }
        special { $($pattern:pat = $prototype:expr => $body:expr,)* }
    ) => {
        /// Visits the attributes of `op` in the order in which they print.
        #[inline]
        pub(crate) fn attributes<E>(
            op: &mut Op,
            $visit: &mut impl FnMut(&'static str, Attr<'_>) -> Result<(), E>,
        ) -> Result<(), E> {
            match op {
                $(Op::$family(_) => Ok(()),)*
                $(Op::$plain => Ok(()),)*
                $(Op::$tuple($part) => $visit(stringify!($part), Attr::$part_as($part)),)*
                $(Op::$struct { $($field),+ } => {
                    $($visit(stringify!($field), Attr::$field_as($field))?;)+
                    Ok(())
                })*
                $($pattern => $body,)*
            }
        }

        /// One op of each spelling, with placeholder attributes.
        fn prototypes() -> Vec<Op> {
            let mut ops = Vec::new();
            $(ops.extend($words::ALL.iter().map(|&word| Op::$family(word)));)*
            $(ops.push(Op::$plain);)*
            $(ops.push(Op::$tuple($part_zero));)*
            $(ops.push(Op::$struct { $($field: $field_zero),+ });)*
            $(ops.push($prototype);)*
            ops
        }
    };
}

vocabulary! {
    visit
    families { Unary: Unary, Binary: Binary, Compare: Compare, ListFold: ListFold, }
    plain {
        Param, List, Select, Matmul, Dot, Outer, Pick, Stack, ArgMax, Softmax, LogSoftmax, LogSumExp,
        Norm, PickNegLogSoftmax, CrossEntropy, KlDiv, Mse, Bce, StopGradient, Lookup, Append, LabelLoss, ListPick,
    }
    tuples {
        Cast(to: DType = DType::F32),
        Broadcast(shape: Shape = Shape::SCALAR),
        Reshape(shape: Shape = Shape::SCALAR),
        Transpose(order: Order = Permutation([0, 1, 2, 3])),
    }
    structs {
        LeakyRelu { slope: Float = ZERO },
        Elu { alpha: Float = ZERO },
        Clamp { low: Float = ZERO, high: Float = ZERO },
        Concat { axis: Axis = 0 },
        Split { axis: Axis = 0, parts: Number = 0 },
        Slice { axis: Axis = 0, start: Number = 0, len: Number = 0 },
        Reduce { fold: Fold = Fold::Sum, over: Over = Over::Last },
        TopK { k: Number = 0 },
        LayerNorm { eps: Float = ZERO },
        WeightedSum { softmax: Flag = false },
        Attend { scale: Float = ZERO },
        GraphAttend { slope: Float = ZERO },
        OneHot { width: Number = 0 },
        Hinge { margin: Float = ZERO },
        Dropout { rate: Float = ZERO, ordinal: Number = 0 },
        ForkNoise { ordinal: Number = 0 },
        ScaleGradient { by: Float = ZERO },
    }
    special {
        Op::Port(ty) = Op::Port(INDEX) => visit("", Attr::Type(ty)),
        Op::Input(ty) = Op::Input(INDEX) => visit("", Attr::Type(ty)),
        Op::Fill { ty, bits } = Op::Fill { ty: SCALAR, bits: 0 } => {
            visit("", Attr::Type(ty))?;
            visit("value", Attr::Element(ty.dtype, bits))
        },
        // The number of parameter arguments tells whether there is a bias.
        Op::Affine { bias: _, transposed } = Op::Affine { bias: false, transposed: false } => {
            visit("transposed", Attr::Flag(transposed))
        },
        Op::AffineRows { row, bias: _, onto } = Op::AffineRows { row: 0, bias: false, onto: false } => {
            visit("row", Attr::Number(row))?;
            visit("onto", Attr::Flag(onto))
        },
    }
}

/// The ops by spelling, in alphabetical order.
static BY_SPELLING: LazyLock<Vec<(&'static str, Op)>> = LazyLock::new(|| {
    let mut table: Vec<(&'static str, Op)> = prototypes().iter().map(|op| (op.spelling(), *op)).collect();
    table.sort_by_key(|&(word, _)| word);
    table
});

/// The op with this spelling and placeholder attributes.
pub(crate) fn prototype(word: &str) -> Option<Op> {
    let table = &*BY_SPELLING;
    let place = table.binary_search_by_key(&word, |&(spelling, _)| spelling).ok()?;
    Some(table[place].1)
}

/// The words of all ops.
pub(crate) fn spellings() -> impl Iterator<Item = &'static str> {
    BY_SPELLING.iter().map(|&(word, _)| word)
}

#[cfg(test)]
#[path = "tests/vocabulary.rs"]
mod tests;
