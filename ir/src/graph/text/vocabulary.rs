//! Every op's attributes, once for the printer and the parser.
//!
//! [`attributes`] walks the attributes of an op in order and hands each, mutable, with its name to
//! a visitor: the printer's writes them, the parser's fills them in. The walk is an exhaustive match
//! with destructuring and the table of spellings comes out of the same lines, so an op or attribute
//! without text does not compile, and the two directions cannot differ.

use crate::graph::op::{Binary, Compare, Float, Fold, ListFold, Op, Over, Permutation, Unary};
use crate::types::{DType, INDEX, Shape, Type};
use std::sync::LazyLock;

/// What is done with each attribute.
pub(crate) trait Visitor {
    /// What ends the walk.
    type Error;
    /// The type that follows the op's word, outside the braces.
    fn ty(&mut self, ty: &mut Type) -> Result<(), Self::Error>;
    fn axis(&mut self, name: &'static str, axis: &mut u8) -> Result<(), Self::Error>;
    fn number(&mut self, name: &'static str, number: &mut u32) -> Result<(), Self::Error>;
    fn float(&mut self, name: &'static str, number: &mut Float) -> Result<(), Self::Error>;
    /// One element of a type that is known already.
    fn element(&mut self, name: &'static str, of: DType, bits: &mut u32) -> Result<(), Self::Error>;
    /// A bare name: true where it stands.
    fn flag(&mut self, name: &'static str, flag: &mut bool) -> Result<(), Self::Error>;
    fn dtype(&mut self, name: &'static str, dtype: &mut DType) -> Result<(), Self::Error>;
    fn shape(&mut self, name: &'static str, shape: &mut Shape) -> Result<(), Self::Error>;
    fn order(&mut self, name: &'static str, order: &mut Permutation) -> Result<(), Self::Error>;
    fn fold(&mut self, name: &'static str, fold: &mut Fold) -> Result<(), Self::Error>;
    fn over(&mut self, name: &'static str, over: &mut Over) -> Result<(), Self::Error>;
}

const ZERO: Float = Float::new(0.0);
const SCALAR: Type = Type::scalar(DType::F32);

macro_rules! vocabulary {
    (
        $visitor:ident
        families { $($family:ident: $words:ident,)* }
        plain { $($plain:ident,)* }
        tuples { $($tuple:ident($part:ident: $part_as:ident = $part_zero:expr),)* }
        structs { $($struct:ident { $($field:ident: $field_as:ident = $field_zero:expr),+ },)* }
        special { $($pattern:pat = $prototype:expr => $body:expr,)* }
    ) => {
        /// Walks the attributes of `op` in the order in which they print.
        pub(crate) fn attributes<V: Visitor>(op: &mut Op, $visitor: &mut V) -> Result<(), V::Error> {
            match op {
                $(Op::$family(_) => Ok(()),)*
                $(Op::$plain => Ok(()),)*
                $(Op::$tuple($part) => $visitor.$part_as(stringify!($part), $part),)*
                $(Op::$struct { $($field),+ } => {
                    $($visitor.$field_as(stringify!($field), $field)?;)+
                    Ok(())
                })*
                $($pattern => $body,)*
            }
        }

        /// One op of each spelling, its attributes to be filled in.
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
    v
    families { Unary: Unary, Binary: Binary, Compare: Compare, ListFold: ListFold, }
    plain {
        Param, List, Select, Matmul, Dot, Outer, Pick, Stack, ArgMax, Softmax, LogSoftmax, LogSumExp,
        Norm, PickNegLogSoftmax, CrossEntropy, KlDiv, Mse, Bce, StopGradient, Lookup,
    }
    tuples {
        Cast(to: dtype = DType::F32),
        Broadcast(shape: shape = Shape::SCALAR),
        Reshape(shape: shape = Shape::SCALAR),
        Transpose(order: order = Permutation([0, 1, 2, 3])),
    }
    structs {
        LeakyRelu { slope: float = ZERO },
        Elu { alpha: float = ZERO },
        Clamp { low: float = ZERO, high: float = ZERO },
        Concat { axis: axis = 0 },
        Split { axis: axis = 0, parts: number = 0 },
        Slice { axis: axis = 0, start: number = 0, len: number = 0 },
        Reduce { fold: fold = Fold::Sum, over: over = Over::Last },
        TopK { k: number = 0 },
        LayerNorm { eps: float = ZERO },
        WeightedSum { softmax: flag = false },
        Attend { scale: float = ZERO },
        OneHot { width: number = 0 },
        Hinge { margin: float = ZERO },
        Dropout { rate: float = ZERO, ordinal: number = 0 },
        ForkNoise { ordinal: number = 0 },
        ScaleGradient { by: float = ZERO },
    }
    special {
        Op::Port(ty) = Op::Port(INDEX) => v.ty(ty),
        Op::Input(ty) = Op::Input(INDEX) => v.ty(ty),
        Op::Fill { ty, bits } = Op::Fill { ty: SCALAR, bits: 0 } => {
            v.ty(ty)?;
            v.element("value", ty.dtype, bits)
        },
        // Whether there is a bias is how many parameters follow.
        Op::Affine { bias: _, transposed } = Op::Affine { bias: false, transposed: false } => {
            v.flag("transposed", transposed)
        },
        Op::AffineRows { row, bias: _, onto } = Op::AffineRows { row: 0, bias: false, onto: false } => {
            v.number("row", row)?;
            v.flag("onto", onto)
        },
    }
}

/// The ops by spelling, in the order of the alphabet.
static BY_SPELLING: LazyLock<Vec<(&'static str, Op)>> = LazyLock::new(|| {
    let mut table: Vec<(&'static str, Op)> = prototypes().iter().map(|op| (op.spelling(), *op)).collect();
    table.sort_by_key(|&(word, _)| word);
    table
});

/// The op that `word` spells, its attributes to be filled in.
pub(crate) fn prototype(word: &str) -> Option<Op> {
    let table = &*BY_SPELLING;
    let place = table.binary_search_by_key(&word, |&(spelling, _)| spelling).ok()?;
    Some(table[place].1)
}

/// Every op's word.
pub(crate) fn spellings() -> impl Iterator<Item = &'static str> {
    BY_SPELLING.iter().map(|&(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_means_one_op() {
        let ops = prototypes();
        assert_eq!(ops.len(), BY_SPELLING.len());
        for op in ops {
            assert_eq!(prototype(op.spelling()), Some(op), "{}", op.spelling());
        }
        let words: Vec<&str> = spellings().collect();
        assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "{words:?}");
    }

    #[test]
    fn every_op_but_ports_stands_in_the_corpus() {
        use crate::graph::{Callee, GraphData};
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/graphs");
        let mut missing: std::collections::BTreeSet<&str> =
            spellings().filter(|&word| word != "port").collect();
        for entry in std::fs::read_dir(folder).unwrap() {
            let graph = GraphData::from_text(std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            for signature in graph.sigs.items() {
                if let Callee::Op(op) = signature.callee {
                    missing.remove(op.spelling());
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
