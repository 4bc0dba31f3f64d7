//! Tests of the gradients of weights that share their rows of dY.

use crate::kernels::{GradientRows, Isa, RowNumbers, Rows, RowsMut, RowsRun, Scratch, WeightGrad};

fn floats(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed) as f32 * 0.61).sin()).collect()
}

#[test]
fn sums_over_the_same_rows_pack_them_once_and_have_the_same_bits() {
    let (count, n) = (40, 70);
    let all = floats(2 * count * n, 1);
    for isa in Isa::available() {
        let (mut shared, mut own) = (Scratch::new(), Scratch::new());
        // The last two sums have other rows of dY, the last of all after the caller numbered anew.
        for (number, (k, first)) in [(9, 0), (33, 0), (1, 0), (20, count), (20, 0)].into_iter().enumerate() {
            if number == 4 {
                shared.forget_gradient_rows();
            }
            let x = floats(count * k, number);
            let runs = [(&x, k, 0), (&all, n, first)].map(|(data, width, first)| {
                [RowsRun { rows: Rows::new(data, width, RowNumbers::Stepped { first, step: 1 }), count }]
            });
            let [x, dy] = &runs;
            let sum = WeightGrad { isa, k, n, x, dy, accumulate: false };
            let rows = if number == 4 { 0..count } else { first..first + count };
            let name = GradientRows { rows, columns: 0..n };
            let [mut found, mut expected] = [vec![9.0; k * n], vec![9.0; k * n]];
            let was_packed = shared.gradient_rows.as_ref() == Some(&name);
            assert_eq!(was_packed, number == 1 || number == 2);
            sum.run_again(RowsMut::new(&mut found, n), &mut shared, Some(name)).unwrap();
            sum.run(RowsMut::new(&mut expected, n), &mut own).unwrap();
            assert_eq!(found, expected, "{isa:?}, sum {number}");
        }
    }
}
