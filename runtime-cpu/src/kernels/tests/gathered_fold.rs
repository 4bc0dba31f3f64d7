//! Tests of folds over gathered rows: every instruction set gives the bits of the definitions and writes nothing else.

use super::sizes;
use crate::kernels::{GatheredFold, Isa, gathered_fold};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::{Scratch, seg_op};

/// A field of rows with numbers of all kinds.
fn field(rows: usize, width: usize) -> Vec<f32> {
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 0.0, 1e-40, 3e38, -3e38];
    let number = |at: usize| match at * 7919 % 61 {
        n if n < special.len() => special[n],
        n => (n as f32 * 0.37).sin() * 4.0,
    };
    (0..rows * width).map(number).collect()
}

#[test]
fn gathered_folds_match_the_definitions_bit_for_bit() {
    const ROWS: usize = 23;
    // Empty lists, at the ends too, lists of one row, repeated rows and long lists.
    let lengths = [0, 1, 3, 0, 40, 1, 2, 8, 5, 0];
    let mut offsets = vec![0u32];
    offsets.extend(lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    let items: Vec<u32> = (0..offsets[lengths.len()]).map(|at| at * at % ROWS as u32).collect();
    for width in sizes([65, 17].into_iter().chain(1..=40).chain([63, 64, 100, 128, 129, 200, 256, 500]), 6) {
        let data = field(ROWS, width);
        let row = |&number: &u32| &data[number as usize * width..][..width];
        for fold in [ListFold::Sum, ListFold::Mean, ListFold::Max] {
            for isa in Isa::available() {
                let stride = width + 3;
                let mut out = vec![7.0f32; lengths.len() * stride];
                let lists = GatheredFold {
                    base: data.as_ptr(),
                    width,
                    items: &items,
                    offsets: &offsets,
                    out: out.as_mut_ptr(),
                    stride,
                };
                // SAFETY: the instruction set is available, items are rows of the field, and `out` has a row per list.
                unsafe { gathered_fold(isa, fold).expect("one pass")(&lists) };
                for (found, ends) in out.chunks_exact(stride).zip(offsets.windows(2)) {
                    let list: Vec<&[f32]> =
                        items[ends[0] as usize..ends[1] as usize].iter().map(row).collect();
                    let mut expected = vec![9.0f32; width];
                    seg_op(Op::ListFold(fold), &[], &[&list], &mut expected, &mut Scratch::default());
                    let same = found.iter().zip(&expected).all(|(&a, &b)| same_bits(a, b));
                    assert!(same, "{fold:?} {isa} {width}: {found:?}, expected {expected:?}");
                    assert_eq!(found[width..], [7.0; 3], "{fold:?} {isa} {width}");
                }
            }
        }
    }
}
