//! Tests of row ops: every instruction set gives the bits of the definitions.

use super::sizes;
use crate::kernels::Isa;
use crate::kernels::elementwise::{Elements, ElementsMut};
use crate::kernels::rowwise::{RowResult, run};
use autobatch_ir::graph::{Fold, Op, Over};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::{Noise, row_op};
use autobatch_ir::types::{DType, INDEX, Shape, Type};

/// Rows of numbers, with infinities, NaN and tiny numbers among them if `wild`.
fn rows(count: usize, width: usize, wild: bool) -> Vec<f32> {
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 1e-40, 3e38];
    let number = |i: usize| match (i * 31) % 97 {
        n if wild && n < special.len() => special[n],
        _ => (i as f32 * 0.37).sin() * 6.0,
    };
    (0..count * width).map(number).collect()
}

/// Compares `op` over some lanes, whose values have `of_lane` rows of this width, with its definition on every instruction set.
fn check(op: Op, lanes: usize, of_lane: usize, width: usize, wild: bool) {
    let labelled = matches!(op, Op::PickNegLogSoftmax | Op::Hinge { .. });
    let paired = matches!(op, Op::Dot | Op::CrossEntropy | Op::KlDiv | Op::Mse | Op::Bce);
    let each = matches!(op, Op::Softmax | Op::LogSoftmax | Op::LayerNorm { .. });
    let dims = [of_lane as u32, width as u32];
    let ty = Type::new(DType::F32, Shape::new(&dims[usize::from(of_lane == 1)..]).expect("a shape"));
    let whole = of_lane * width;
    let (x, y) = (rows(lanes, whole, wild), rows(lanes, whole + 1, wild));
    let labels: Vec<f32> =
        (0..lanes).map(|lane| f32::from_bits([0, 7, width as u32 - 1][lane % 3])).collect();
    let second = if labelled { (&labels[..], 1, INDEX) } else { (&y[..], whole, ty) };
    let count = if paired || labelled { 2 } else { 1 };
    let out = of_lane * if each { width } else { 1 };
    let sources = [(&x[..], whole, ty), second];
    let mut expected = vec![0f32; lanes * out];
    for (lane, out) in expected.chunks_exact_mut(out).enumerate() {
        let operands = sources.map(|(x, width, ty)| {
            (bytemuck::cast_slice::<f32, u32>(&x[lane * width..(lane + 1) * width]), ty)
        });
        row_op(op, Noise::Off, &operands[..count], &mut [bytemuck::cast_slice_mut(out)]);
    }
    for isa in Isa::available() {
        let mut found = vec![9f32; lanes * out];
        let operands =
            sources.map(|(x, stride, ty)| (Elements { base: x.as_ptr(), stride, single: false }, ty));
        let rows = ElementsMut { base: found.as_mut_ptr(), stride: out };
        let to = RowResult { rows, width: out };
        // SAFETY: the lanes of each exist, and the instruction set is available.
        let known = unsafe { run(isa, op, lanes, &operands[..count], to) };
        let same = match op {
            Op::ArgMax => found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()),
            _ => found.iter().zip(&expected).all(|(&a, &b)| same_bits(a, b)),
        };
        // Few or wide rows of an argmax have no variant.
        assert!(
            same || !known && op == Op::ArgMax,
            "{op:?} {isa:?} {lanes} x {dims:?}: {found:?}, {expected:?}"
        );
        assert!(known || op == Op::ArgMax, "{op:?} {isa:?} {lanes} x {dims:?}");
    }
}

#[test]
fn row_ops_match_the_definitions_bit_for_bit() {
    let one = [Op::Softmax, Op::LogSoftmax, Op::LogSumExp, Op::Norm, Op::LayerNorm { eps: 1e-5.into() }];
    let folds = [Fold::Sum, Fold::Mean, Fold::Max, Fold::Min];
    let folds = folds.map(|fold| Op::Reduce { fold, over: Over::Last });
    let labelled = [Op::PickNegLogSoftmax, Op::Hinge { margin: 1.0.into() }];
    let pairs = [Op::Dot, Op::CrossEntropy, Op::KlDiv, Op::Mse, Op::Bce];
    let of_rows = || one.into_iter().chain(folds).chain([Op::ArgMax]);
    for (width, wild) in
        sizes([(1, false), (5, true), (16, false), (37, true), (100, false), (2000, true)], 4)
    {
        for op in of_rows().chain(labelled).chain(pairs) {
            check(op, 3, 1, width, wild);
        }
    }
    // Narrow rows are computed together, sixteen at a time.
    for (width, wild) in
        [(1, true), (2, false), (9, true), (16, true), (17, true), (33, false), (48, true), (49, true)]
    {
        for lanes in sizes([21, 4, 16, 40], 1) {
            for op in of_rows().chain(labelled) {
                check(op, lanes, 1, width, wild);
            }
        }
        for op in of_rows() {
            check(op, 7, 3, width, wild);
        }
    }
}

#[test]
fn a_column_is_repeated() {
    let shape = |dims: &[u32]| Shape::new(dims).expect("a shape");
    let x: Vec<f32> = (0..8).map(|number| number as f32 - 3.0).collect();
    let from = Type::new(DType::F32, shape(&[4, 1]));
    for (to, is_known) in [(shape(&[4, 5]), true), (shape(&[3, 4, 5]), false)] {
        for isa in Isa::available() {
            let width = to.elements();
            let mut found = vec![9f32; 2 * width];
            let rows = ElementsMut { base: found.as_mut_ptr(), stride: width };
            let operand = (Elements { base: x.as_ptr(), stride: 4, single: false }, from);
            // SAFETY: two rows exist, and the instruction set is available.
            let known = unsafe { run(isa, Op::Broadcast(to), 2, &[operand], RowResult { rows, width }) };
            assert_eq!(known, is_known);
            if known {
                let expected: Vec<f32> = x.iter().flat_map(|&x| [x; 5]).collect();
                assert_eq!(found, expected, "{isa:?}");
            }
        }
    }
}

#[test]
fn a_whole_value_is_repeated() {
    let shape = |dims: &[u32]| Shape::new(dims).expect("a shape");
    for (from, to) in
        [(&[3][..], &[1, 3][..]), (&[9], &[9, 9]), (&[2, 3], &[5, 2, 3]), (&[1], &[7]), (&[4], &[33, 4])]
    {
        let (from, to) = (shape(from), shape(to));
        let (own, width) = (from.elements(), to.elements());
        let x: Vec<f32> = (0..2 * own).map(|number| number as f32 - 3.0).collect();
        for isa in Isa::available() {
            let mut found = vec![9f32; 2 * width];
            let rows = ElementsMut { base: found.as_mut_ptr(), stride: width };
            let operand =
                (Elements { base: x.as_ptr(), stride: own, single: false }, Type::new(DType::F32, from));
            // SAFETY: two rows exist, and the instruction set is available.
            let known = unsafe { run(isa, Op::Broadcast(to), 2, &[operand], RowResult { rows, width }) };
            let expected: Vec<f32> = x.chunks(own).flat_map(|x| x.repeat(width / own)).collect();
            assert!(known && found == expected, "{isa:?} {from} {to}");
        }
    }
}
