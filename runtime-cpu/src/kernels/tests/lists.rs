//! Tests of folds over lists: every instruction set gives the bits of the definitions.

use crate::kernels::Isa;
use crate::kernels::lists::kernel;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::{Scratch, seg_op};

fn rows(count: usize, width: usize, wild: bool) -> Vec<Vec<f32>> {
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 1e-40, 3e38];
    (0..count)
        .map(|i| {
            (0..width)
                .map(|j| match (i * 31 + j * 17) % 13 {
                    n if wild && n < special.len() => special[n],
                    _ => ((i * 7 + j * 3) as f32 * 0.37).sin() * 4.0,
                })
                .collect()
        })
        .collect()
}

#[test]
fn folds_match_the_definitions_bit_for_bit() {
    let mut ops = vec![Op::WeightedSum { softmax: false }, Op::WeightedSum { softmax: true }];
    ops.extend(ListFold::ALL.iter().map(|&fold| Op::ListFold(fold)));
    ops.push(Op::ListPick);
    ops.push(Op::Attend { scale: 0.125.into() });
    for (count, width, wild) in
        [(0, 5, false), (1, 1, false), (3, 37, true), (40, 16, false), (17, 100, true)]
    {
        for scores_width in [1, width] {
            let (scores, values) = (rows(count, scores_width, wild), rows(count, width, wild));
            let query = rows(1, scores_width, false).swap_remove(0);
            let index = [f32::from_bits(count as u32 / 2)];
            let scores: Vec<&[f32]> = scores.iter().map(Vec::as_slice).collect();
            let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
            for &op in &ops {
                let query = if op == Op::ListPick { &index[..] } else { &query[..] };
                check(op, query, &scores, &values);
            }
        }
    }
}

/// Compares every instruction set with the definition.
fn check(op: Op, query: &[f32], scores: &[&[f32]], values: &[&[f32]]) {
    let lists: &[&[&[f32]]] = match op {
        Op::ListFold(_) | Op::ListPick => &[values],
        _ => &[scores, values],
    };
    let width = values.first().map_or(5, |value| value.len());
    let (first, second) = (lists[0], lists.get(1).copied().unwrap_or(&[]));
    let mut expected = vec![7.0f32; width];
    seg_op(op, query, lists, &mut expected, &mut Scratch::default());
    for isa in Isa::available() {
        let mut found = vec![9.0f32; width];
        // SAFETY: the instruction set is available.
        unsafe { kernel(isa)(op, query, [first, second], &mut found, &mut Vec::new()) };
        let same = found.iter().zip(&expected).all(|(&a, &b)| same_bits(a, b));
        assert!(same, "{op:?} {isa:?} {} values: {found:?}, expected {expected:?}", values.len());
    }
}
