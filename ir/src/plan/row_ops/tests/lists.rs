//! Tests of folds over lists.

use super::*;
use crate::graph::Float;

#[test]
fn folds_with_scratch_have_the_bits_of_the_definitions() {
    let rows: Vec<Vec<f32>> =
        (0..5).map(|i| (0..3).map(|j| ((i * 7 + j * 3) as f32 * 0.37).sin()).collect()).collect();
    let keys: Vec<Vec<f32>> =
        (0..5).map(|i| (0..3).map(|j| ((i * 5 + j * 11) as f32 * 0.21).cos()).collect()).collect();
    let query = [0.3f32, -1.2, 0.7];
    let mut scratch = Scratch::default();
    for len in [5, 1, 0, 3] {
        let values: Vec<&[f32]> = rows[..len].iter().map(Vec::as_slice).collect();
        let keys: Vec<&[f32]> = keys[..len].iter().map(Vec::as_slice).collect();
        let narrow: Vec<&[f32]> = keys.iter().map(|key| &key[..1]).collect();
        let (mut own, mut defined) = ([0f32; 3], [0f32; 3]);
        let attend = Op::Attend { scale: Float::new(0.5) };
        seg_op(attend, &query, &[&keys, &values], &mut own, &mut scratch);
        list::attend(&query, &keys, &values, 0.5, &mut defined);
        assert_eq!(own.map(f32::to_bits), defined.map(f32::to_bits), "attend over {len}");
        for scores in [&keys, &narrow] {
            let wsum = Op::WeightedSum { softmax: true };
            seg_op(wsum, &[], &[scores, &values], &mut own, &mut scratch);
            list::softmax_weighted_sum(scores, &values, &mut defined);
            assert_eq!(own.map(f32::to_bits), defined.map(f32::to_bits), "softmax over {len}");
        }
    }
}
