//! Reductions within a value.

use super::{Gradient, OpCase, TRUE, entry, good};

/// Two rows without ties.
const X: [f32; 6] = [1.0, -2.0, 0.5, 3.0, 0.25, 4.0];
/// The length of a row that is longer than any vector register.
const LONG: usize = 37;

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}

fn rows() -> [Vec<f64>; 2] {
    [wide(&X[..3]), wide(&X[3..])]
}

/// Distinct numbers in -1..1. The largest is element 5, the smallest element 0.
fn long() -> Vec<f32> {
    (0..LONG).map(|at| ((at * 22) % LONG) as f32 / 16.0 - 1.0).collect()
}

fn fold_rows(f: fn(&[f64]) -> f64) -> Vec<f64> {
    rows().iter().map(|row| f(row)).collect()
}

fn sum(row: &[f64]) -> f64 {
    row.iter().sum()
}

fn mean(row: &[f64]) -> f64 {
    sum(row) / row.len() as f64
}

fn max(row: &[f64]) -> f64 {
    row.iter().copied().fold(f64::MIN, f64::max)
}

fn min(row: &[f64]) -> f64 {
    row.iter().copied().fold(f64::MAX, f64::min)
}

macro_rules! reduce {
    ($($last:ident $all:ident = $by_row:ident, $whole:ident, $f:expr;)*) => {$(
        pub(super) fn $last() -> OpCase {
            entry(
                vec![
                    good(&["f32[2]"], vec![fold_rows($f)], |g, _| vec![g.input_shaped([2, 3], &X).$by_row()]),
                    good(&["f32"], vec![vec![$f(&wide(&long()))]], |g, _| vec![g.input(&long()).$by_row()]),
                ],
                TRUE,
                "expected rows, found a scalar",
                |g, _| vec![g.input_shaped([], &[1.0]).$by_row()],
            )
        }

        pub(super) fn $all() -> OpCase {
            entry(
                vec![
                    good(&["f32"], vec![vec![$f(&wide(&X))]], |g, _| vec![g.input_shaped([2, 3], &X).$whole()]),
                    good(&["f32"], vec![vec![$f(&wide(&long()))]], |g, _| vec![g.input(&long()).$whole()]),
                    // One number is its own fold.
                    good(&["f32"], vec![vec![3.0]], |g, _| vec![g.input(&[3.0]).$whole().$whole()]),
                ],
                TRUE,
                "expected f32 elements, found u32",
                |g, _| vec![g.index(1).$whole()],
            )
        }
    )*};
}

reduce! {
    sum_last sum_all = sum_rows, sum, sum;
    mean_last mean_all = mean_rows, mean, mean;
    max_last max_all = max_rows, max, max;
    min_last min_all = min_rows, min, min;
}

pub(super) const NO_PLACE: Gradient = Gradient::None("an index has no derivative");

pub(super) fn argmax() -> OpCase {
    entry(
        vec![
            good(&["u32[2]"], vec![vec![0.0, 2.0]], |g, _| vec![g.input_shaped([2, 3], &X).argmax()]),
            // The first of equal elements wins. Zeros of both signs are equal.
            good(&["u32", "u32"], vec![vec![1.0], vec![0.0]], |g, _| {
                vec![g.input(&[1.0, 2.0, 2.0]).argmax(), g.input(&[-0.0, 0.0]).argmax()]
            }),
            good(&["u32"], vec![vec![5.0]], |g, _| vec![g.input(&long()).argmax()]),
        ],
        NO_PLACE,
        "expected f32 elements, found u32[2]",
        |g, _| vec![g.indices(&[1, 2]).argmax()],
    )
}

pub(super) fn top_k() -> OpCase {
    entry(
        vec![
            good(
                &["f32[2,2]", "u32[2,2]"],
                vec![vec![1.0, 0.5, 4.0, 3.0], vec![0.0, 2.0, 2.0, 0.0]],
                |g, _| g.input_shaped([2, 3], &X).top_k(2).to_vec(),
            ),
            good(&["u32[3]"], vec![vec![1.0, 2.0, 0.0]], |g, _| vec![g.input(&[1.0, 2.0, 2.0]).top_k(3)[1]]),
        ],
        TRUE,
        "k must be 1 to 3, found 4",
        |g, _| g.input_shaped([2, 3], &X).top_k(4).to_vec(),
    )
}

fn shares(row: &[f64]) -> Vec<f64> {
    let total: f64 = row.iter().map(|x| x.exp()).sum();
    row.iter().map(|x| x.exp() / total).collect()
}

fn log_total(row: &[f64]) -> f64 {
    row.iter().map(|x| x.exp()).sum::<f64>().ln()
}

fn each_row(f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    rows().iter().flat_map(|row| f(row)).collect()
}

pub(super) fn softmax() -> OpCase {
    entry(
        vec![
            good(&["f32[2,3]"], vec![each_row(shares)], |g, _| vec![g.input_shaped([2, 3], &X).softmax()]),
            good(&["f32[37]"], vec![shares(&wide(&long()))], |g, _| vec![g.input(&long()).softmax()]),
            // Large scores must not overflow.
            good(&["f32[2]"], vec![vec![0.5, 0.5]], |g, _| vec![g.input(&[1000.0, 1000.0]).softmax()]),
        ],
        TRUE,
        "expected rows, found a scalar",
        |g, _| vec![g.input_shaped([], &[1.0]).softmax()],
    )
}

pub(super) fn log_softmax() -> OpCase {
    let logs = |row: &[f64]| row.iter().map(|x| x - log_total(row)).collect::<Vec<f64>>();
    entry(
        vec![
            good(&["f32[2,3]"], vec![each_row(logs)], |g, _| vec![g.input_shaped([2, 3], &X).log_softmax()]),
            good(&["f32[37]"], vec![logs(&wide(&long()))], |g, _| vec![g.input(&long()).log_softmax()]),
        ],
        TRUE,
        "expected rows, found a scalar",
        |g, _| vec![g.input_shaped([], &[1.0]).log_softmax()],
    )
}

pub(super) fn logsumexp() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"], vec![fold_rows(log_total)], |g, _| {
                vec![g.input_shaped([2, 3], &X).logsumexp()]
            }),
            good(&["f32"], vec![vec![log_total(&wide(&long()))]], |g, _| vec![g.input(&long()).logsumexp()]),
        ],
        TRUE,
        "expected rows, found a scalar",
        |g, _| vec![g.input_shaped([], &[1.0]).logsumexp()],
    )
}

pub(super) fn norm() -> OpCase {
    let length = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>().sqrt();
    entry(
        vec![
            good(&["f32[2]"], vec![fold_rows(length)], |g, _| vec![g.input_shaped([2, 3], &X).norm()]),
            good(&["f32"], vec![vec![5.0]], |g, _| vec![g.input(&[3.0, -4.0]).norm()]),
        ],
        TRUE,
        "expected rows, found a scalar",
        |g, _| vec![g.input_shaped([], &[1.0]).norm()],
    )
}

pub(super) fn layer_norm() -> OpCase {
    let normal = |row: &[f64]| {
        let centre = mean(row);
        let variance = row.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / row.len() as f64;
        row.iter().map(|x| (x - centre) / (variance + 0.25).sqrt()).collect::<Vec<f64>>()
    };
    entry(
        vec![
            good(&["f32[2,3]"], vec![each_row(normal)], |g, _| {
                vec![g.input_shaped([2, 3], &X).layer_norm(0.25)]
            }),
            good(&["f32[37]"], vec![normal(&wide(&long()))], |g, _| vec![g.input(&long()).layer_norm(0.25)]),
        ],
        TRUE,
        "the attribute must be a finite number, found NaN",
        |g, _| vec![g.input(&X).layer_norm(f32::NAN)],
    )
}
