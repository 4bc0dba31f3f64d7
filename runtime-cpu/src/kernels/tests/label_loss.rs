//! Tests of losses of labels: every instruction set gives the bits of the definition.

use super::sizes;
use crate::kernels::{
    Isa, LabelGradient, LabelLosses, LabelResults, LabelSpace, Matrix, RowNumbers, Rows, RowsMut, RowsRun,
    Scratch,
};
use autobatch_ir::numeric::label_loss::{FACTORS, gradient, label_loss, label_of, logit};
use autobatch_ir::numeric::{same_bits, scalar};

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919 + seed * 104_729) as f32 * 0.37).sin() * 1.5).collect()
}

fn assert_same(found: &[f32], expected: &[f32], what: &str) {
    let same =
        |(at, (&a, &b)): (usize, (&f32, &f32))| assert!(same_bits(a, b), "{what}, element {at}: {a} {b}");
    found.iter().zip(expected).enumerate().for_each(same);
}

/// Labels around the ends of stripes, widths around the ends of vectors and blocks, lanes around the ends of tiles.
const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [2, 3, 5],
    [255, 16, 13],
    [256, 17, 14],
    [257, 33, 15],
    [300, 8, 113],
    [513, 40, 230],
    [700, 257, 3],
    [128, 300, 260],
];

#[test]
fn losses_match_the_definition_bit_for_bit() {
    for [count, width, lanes] in sizes(SIZES, 4) {
        let (rows, x) = (numbers(count * width, 1), numbers(lanes * width, 2));
        let labels: Vec<u32> = (0..lanes).map(|lane| (lane * 7 % count) as u32).collect();
        for isa in Isa::available() {
            let what = format!("{isa} {count} {width} {lanes}");
            let (mut losses, mut log_sums) = (vec![7.0f32; lanes], vec![7.0f32; lanes]);
            let mut slopes = vec![f32::NAN; lanes * (width + 1)];
            let of = LabelLosses {
                isa,
                rows: &rows,
                width,
                x: Matrix::new(&x, width, lanes, width),
                labels: &labels,
            };
            let (mut space, mut scratch) = (LabelSpace::default(), Scratch::new());
            let mut run = |with: bool, losses: &mut [f32]| {
                let out = LabelResults {
                    losses: RowsMut::new(losses, 1),
                    log_sums: with.then(|| RowsMut::new(&mut log_sums, 1)),
                    slopes: with.then(|| RowsMut::new(&mut slopes, width + 1)),
                };
                // SAFETY: the instruction set is available, and all rows have the sizes above.
                unsafe { of.run(&out, &mut space, &mut scratch) };
            };
            run(true, &mut losses);
            let mut alone = vec![7.0f32; lanes];
            run(false, &mut alone);
            assert_same(&alone, &losses, &what);
            for (lane, (own, slope)) in x.chunks_exact(width).zip(slopes.chunks_exact(width + 1)).enumerate()
            {
                let made = label_loss(&rows, own, labels[lane]);
                assert_same(&[losses[lane], log_sums[lane]], &[made.loss, made.log_sum], &what);
                assert_same(&slope[..width], &made.slope, &what);
                assert!(slope[width].is_nan(), "{what}");
            }
        }
    }
}

#[test]
fn gradients_match_the_definition_bit_for_bit() {
    for [count, width, lanes] in sizes(SIZES, 4) {
        let (rows, x) = (numbers(count * width, 3), numbers(lanes * width, 4));
        let factor = |lane: usize| {
            [(lane as f32 * 0.7).cos(), 2.0 + lane as f32 * 0.01, (lane * 5 % (count + 1)) as f32]
        };
        let factors: Vec<f32> = (0..lanes).flat_map(factor).collect();
        let mut expected = numbers(count * width, 5);
        let before = expected.clone();
        for (x, own) in x.chunks_exact(width).zip(factors.chunks_exact(FACTORS)) {
            let own = [own[0], own[1], own[2]];
            for (row, (sums, labels)) in
                expected.chunks_exact_mut(width).zip(rows.chunks_exact(width)).enumerate()
            {
                let slope = gradient(logit(x, labels), own, row == label_of(own, count));
                sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum = scalar::fma(slope, x, *sum));
            }
        }
        // The rows of the lanes in two runs, the second through a table.
        let split = lanes / 3;
        let table: Vec<u32> = (split as u32..lanes as u32).collect();
        for isa in Isa::available() {
            let mut found = before.clone();
            let (x, factors) = (runs(&x, width, split, &table), runs(&factors, FACTORS, split, &table));
            // Two parts of the labels, as two threads take them.
            let cut = count / 2;
            let (low, high) = found.split_at_mut(cut * width);
            for (first, out) in [(0, low), (cut, high)] {
                let rows = &rows[first * width..][..out.len()];
                let (x, factors) = (&x[..], &factors[..]);
                let sum = LabelGradient { isa, rows, width, first, all: count, x, factors, accumulate: true };
                sum.run(out, &mut Scratch::new()).expect("the sizes fit");
            }
            assert_same(&found, &expected, &format!("{isa} {count} {width} {lanes}"));
        }
    }
}

/// The rows of all lanes: those before `split` as a range, the others by a table.
fn runs<'a>(data: &'a [f32], stride: usize, split: usize, table: &'a [u32]) -> [RowsRun<'a>; 2] {
    let rows = Rows::new(data, stride, RowNumbers::Table(table));
    [RowsRun { rows: Rows::range(data, stride, 0), count: split }, RowsRun { rows, count: table.len() }]
}
