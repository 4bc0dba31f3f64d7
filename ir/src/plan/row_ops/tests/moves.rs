//! Tests of ops that move elements.

use super::*;
use crate::types::DType;

#[test]
fn axes_are_moved_repeated_and_cut() {
    let ty = |dims: &[u32]| Type::new(DType::U32, Shape::new(dims).unwrap());
    let x: Vec<u32> = (0..6).collect();
    let execute = |op: Op, sources: &[(&[u32], Type)], len: usize| {
        let mut out = vec![9; len];
        row_op(op, Noise::Off, sources, &mut [&mut out]);
        out
    };
    let matrix = (&x[..], ty(&[2, 3]));
    let transpose = Op::Transpose(crate::graph::Permutation::SWAP);
    assert_eq!(execute(transpose, &[matrix], 6), [0, 3, 1, 4, 2, 5]);
    assert_eq!(execute(Op::Slice { axis: 1, start: 1, len: 2 }, &[matrix], 4), [1, 2, 4, 5]);
    let column = (&x[..2], ty(&[2, 1]));
    assert_eq!(
        execute(Op::Broadcast(Shape::new(&[2, 2, 2]).unwrap()), &[column], 8),
        [0, 0, 1, 1, 0, 0, 1, 1]
    );
    assert_eq!(execute(Op::Concat { axis: 1 }, &[column, matrix], 8), [0, 0, 1, 2, 1, 3, 4, 5]);
    assert_eq!(execute(Op::Pick, &[matrix, (&[7], crate::types::INDEX)], 3), [3, 4, 5]);
}
