//! Tests of row ops: every instruction set gives the bits of the definitions.

use crate::kernels::Isa;
use crate::kernels::elementwise::{Elements, ElementsMut};
use crate::kernels::rowwise::{RowResult, run};
use autobatch_ir::graph::{Fold, Op, Over};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::{Noise, row_op};
use autobatch_ir::types::{DType, INDEX, Shape, Type};

/// Rows of numbers, with infinities, NaN and tiny numbers among them if `wild`.
fn rows(width: usize, wild: bool) -> Vec<f32> {
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 1e-40, 3e38];
    let number = |i: usize| match (i * 31) % 97 {
        n if wild && n < special.len() => special[n],
        _ => (i as f32 * 0.37).sin() * 6.0,
    };
    (0..3 * width).map(number).collect()
}

#[test]
fn row_ops_match_the_definitions_bit_for_bit() {
    let one = [Op::Softmax, Op::LogSoftmax, Op::LogSumExp, Op::Norm, Op::LayerNorm { eps: 1e-5.into() }];
    let folds = [Fold::Sum, Fold::Mean, Fold::Max, Fold::Min];
    let folds = folds.map(|fold| Op::Reduce { fold, over: Over::Last });
    let labelled = [Op::PickNegLogSoftmax, Op::Hinge { margin: 1.0.into() }];
    let pairs = [Op::Dot, Op::CrossEntropy, Op::KlDiv, Op::Mse, Op::Bce];
    for (width, wild) in [(1, false), (5, true), (16, false), (37, true), (100, false), (2000, true)] {
        let ty = Type::new(DType::F32, Shape::new(&[width as u32]).expect("a shape"));
        let (x, y) = (rows(width, wild), rows(width + 1, wild));
        let labels = [0, 7, width as u32 - 1].map(f32::from_bits);
        for op in one.into_iter().chain(folds).chain(labelled).chain(pairs) {
            let out =
                if matches!(op, Op::Softmax | Op::LogSoftmax | Op::LayerNorm { .. }) { width } else { 1 };
            let second = match op {
                op if labelled.contains(&op) => (&labels[..], 1, INDEX),
                _ => (&y[..], width, ty),
            };
            let count = if pairs.contains(&op) || labelled.contains(&op) { 2 } else { 1 };
            let sources = [(&x[..], width, ty), second];
            let mut expected = vec![0f32; 3 * out];
            for (lane, out) in expected.chunks_exact_mut(out).enumerate() {
                let operands = sources.map(|(x, width, ty)| {
                    (bytemuck::cast_slice::<f32, u32>(&x[lane * width..(lane + 1) * width]), ty)
                });
                row_op(op, Noise::Off, &operands[..count], &mut [bytemuck::cast_slice_mut(out)]);
            }
            for isa in Isa::available() {
                let mut found = vec![9f32; 3 * out];
                let operands =
                    sources.map(|(x, stride, ty)| (Elements { base: x.as_ptr(), stride, single: false }, ty));
                let rows = ElementsMut { base: found.as_mut_ptr(), stride: out };
                let to = RowResult { rows, width: out };
                // SAFETY: three rows of each exist, and the instruction set is available.
                let known = unsafe { run(isa, op, 3, &operands[..count], to) };
                let same = found.iter().zip(&expected).all(|(&a, &b)| same_bits(a, b));
                assert!(known && same, "{op:?} {isa:?} {width}: {found:?}, expected {expected:?}");
            }
        }
    }
}

#[test]
fn a_column_is_repeated() {
    let shape = |dims: &[u32]| Shape::new(dims).expect("a shape");
    let x: Vec<f32> = (0..8).map(|number| number as f32 - 3.0).collect();
    let from = Type::new(DType::F32, shape(&[4, 1]));
    for (to, is_known) in [(shape(&[4, 5]), true), (shape(&[2, 4, 1]), false)] {
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
