//! Tests of gradients of folds: every instruction set gives the bits of the definitions.

use crate::kernels::Isa;
use crate::kernels::list_gradients::{FoldGradient, FoldSpace, kernel};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::seg_grad;

fn rows(count: usize, width: usize, salt: usize) -> Vec<Vec<f32>> {
    let element = |i: usize, j: usize| ((i * 7 + j * 3 + salt) as f32 * 0.37).sin() * 3.0;
    (0..count).map(|i| (0..width).map(|j| element(i, j)).collect()).collect()
}

#[test]
fn gradients_of_folds_match_the_definitions_bit_for_bit() {
    let mut ops = vec![Op::WeightedSum { softmax: false }, Op::WeightedSum { softmax: true }];
    ops.extend(
        ListFold::ALL.iter().filter(|&&fold| fold != ListFold::ArgMax).map(|&fold| Op::ListFold(fold)),
    );
    ops.push(Op::ListPick);
    for (count, width) in [(0, 5), (1, 1), (1, 20), (3, 37), (40, 16), (17, 100)] {
        for (op, score_width) in ops.iter().flat_map(|&op| [(op, 1), (op, width)]) {
            let (scores, values) = (rows(count, score_width, 1), rows(count, width, 5));
            let dy = &rows(1, width, 2)[0];
            let scores: Vec<&[f32]> = scores.iter().map(Vec::as_slice).collect();
            let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
            let lists: Vec<&[&[f32]]> = match op {
                Op::ListFold(_) | Op::ListPick => vec![&values],
                _ => vec![&scores, &values],
            };
            let first = if lists.len() == 1 { width } else { score_width } * count;
            let second = if lists.len() == 1 { 0 } else { width * count };
            let mut expected = (vec![7.0f32; first], vec![7.0f32; second]);
            let mut outs: Vec<&mut [f32]> = vec![&mut expected.0];
            if lists.len() == 2 {
                outs.push(&mut expected.1);
            }
            let query = &[f32::from_bits(count as u32 / 2)];
            seg_grad(op, query, &lists, dy, &mut outs);
            let lists = [lists[0], lists.get(1).copied().unwrap_or(&[])];
            let fold = FoldGradient { op, query, lists, dy };
            for isa in Isa::available() {
                let mut found = (vec![9.0f32; first], vec![9.0f32; second]);
                let outs = [&mut found.0[..], &mut found.1[..]];
                // SAFETY: the instruction set is available.
                unsafe { kernel(isa)(fold, outs, &mut FoldSpace::default()) };
                let pairs = [(&found.0, &expected.0), (&found.1, &expected.1)];
                let same = |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).all(|(&a, &b)| same_bits(a, b));
                assert!(pairs.into_iter().all(same), "{op:?} {isa:?} {count} {width}");
            }
        }
    }
}
