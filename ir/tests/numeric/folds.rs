//! Row reductions and losses against a second implementation of their definition, with indices,
//! and in vector loops.

use autobatch_ir::numeric::{Real, loss, row, same_bits, scalar};

use crate::Random;

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// The 16-lane fold, implemented independently from its definition.
fn lanes_by_definition(
    row: &[f32],
    identity: f32,
    step: impl Fn(f32, usize) -> f32,
    op: impl Fn(f32, f32) -> f32,
) -> f32 {
    let lane = |l: usize| (l..row.len()).step_by(16).fold(identity, &step);
    let eight = |i: usize| op(lane(i), lane(i + 8));
    let four = |i: usize| op(eight(i), eight(i + 4));
    op(op(four(0), four(2)), op(four(1), four(3)))
}

pub(crate) fn assert_same(what: &str, got: f32, expected: f32) {
    assert!(
        same_bits(got, expected),
        "{what}: {got:e} ({:#x}), expected {expected:e} ({:#x})",
        got.to_bits(),
        expected.to_bits()
    );
}

#[test]
fn row_reductions_are_sixteen_lanes_and_a_tree() {
    let seed = 21;
    println!("seed {seed}");
    let mut random = Random(seed);
    for length in (0..70).chain([127, 128, 500, 1000]) {
        let x = random.row(length, 3.0);
        let y = random.row(length, 3.0);
        let sum = lanes_by_definition(&x, 0.0, |acc, i| acc + x[i], scalar::add);
        let count = length.max(1) as f32;
        assert_same("sum", row::sum(&x), sum);
        assert_same("mean", row::mean(&x), sum / count);
        assert_same(
            "max",
            row::max(&x),
            lanes_by_definition(&x, -INF, |acc, i| scalar::max(acc, x[i]), scalar::max),
        );
        assert_same(
            "min",
            row::min(&x),
            lanes_by_definition(&x, INF, |acc, i| scalar::min(acc, x[i]), scalar::min),
        );
        let squares = lanes_by_definition(&x, 0.0, |acc, i| x[i].mul_add(x[i], acc), scalar::add);
        assert_same("norm", row::norm(&x), squares.sqrt());
        assert_same(
            "dot",
            row::dot(&x, &y),
            lanes_by_definition(&x, 0.0, |acc, i| x[i].mul_add(y[i], acc), scalar::add),
        );
        let centre = sum / count;
        let spread =
            lanes_by_definition(&x, 0.0, |acc, i| (x[i] - centre).mul_add(x[i] - centre, acc), scalar::add);
        let factor = 1.0 / (spread / count + 1e-5).sqrt();
        let mut normed = vec![NAN; length];
        row::layer_norm(&x, 1e-5, &mut normed);
        for (i, &got) in normed.iter().enumerate() {
            assert_same("layer_norm", got, (x[i] - centre) * factor);
        }
    }
}

#[test]
fn softmax_and_its_logarithm_match_their_definition() {
    let seed = 22;
    println!("seed {seed}");
    let mut random = Random(seed);
    for length in [1, 2, 5, 16, 17, 100] {
        let x = random.row(length, 20.0);
        let top = x.iter().copied().fold(-INF, f32::max);
        let total = lanes_by_definition(&x, 0.0, |acc, i| acc + scalar::exp(x[i] - top), scalar::add);
        let (mut soft, mut log) = (vec![NAN; length], vec![NAN; length]);
        row::softmax(&x, &mut soft);
        row::log_softmax(&x, &mut log);
        for i in 0..length {
            assert_same("softmax", soft[i], scalar::exp(x[i] - top) * (1.0 / total));
            assert_same("log_softmax", log[i], (x[i] - top) - scalar::log(total));
            let picked = loss::pick_neg_log_softmax(&x, i as u32);
            assert_same("pick", picked, scalar::log(total) - (x[i] - top));
        }
        assert_same("logsumexp", row::logsumexp(&x), top + scalar::log(total));
        let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
        assert!((row::logsumexp(&wide) - f64::from(row::logsumexp(&x))).abs() < 1e-5);
    }
    assert_same("logsumexp of an empty row", row::logsumexp::<f32>(&[]), -INF);
    assert_same("logsumexp of zeros' logarithms", row::logsumexp(&[-INF, -INF]), -INF);
    assert_same("logsumexp with infinity", row::logsumexp(&[1.0, INF]), INF);
    let mut out = [0.0; 3];
    row::softmax(&[0.0, -INF, 0.0], &mut out);
    assert_eq!(out, [0.5, 0.0, 0.5]);
}

#[test]
fn nan_in_a_row_propagates_through_every_reduction() {
    for length in [1, 7, 16, 40] {
        for place in 0..length {
            let mut x = vec![1.0f32; length];
            x[place] = NAN;
            for fold in [row::sum, row::mean, row::max, row::min, row::norm, row::logsumexp] {
                assert!(fold(&x).is_nan(), "length {length}, place {place}");
            }
            assert_eq!(row::argmax(&x), place as u32);
        }
    }
}

#[test]
fn neutral_padding_preserves_the_bits() {
    let seed = 23;
    println!("seed {seed}");
    let mut random = Random(seed);
    for length in 1..40usize {
        let mut x = random.row(length, 1.0);
        x[length / 2] = -0.0;
        let padded = |filler: f32| [x.clone(), vec![filler; length.next_multiple_of(16) - length]].concat();
        assert_same("sum", row::sum(&padded(0.0)), row::sum(&x));
        assert_same("squares", row::sum_of_squares(&padded(0.0)), row::sum_of_squares(&x));
        assert_same("max", row::max(&padded(-INF)), row::max(&x));
        assert_same("min", row::min(&padded(INF)), row::min(&x));
    }
    assert_same("sum of a negative zero", row::sum(&[-0.0]), 0.0);
}

#[test]
fn a_padded_dot_preserves_the_negative_zero_of_an_underflow() {
    let (tiny, negative) = ([1e-30f32; 16], [-1e-30f32; 16]);
    let pad = |row: &[f32], filler: f32| [row, &[filler; 16]].concat();
    assert_same("underflow", row::dot(&tiny, &negative), -0.0);
    let padded = row::dot(&pad(&tiny, -0.0), &pad(&negative, 0.0));
    assert_same("neutral padding", padded, -0.0);
    let zeros = row::dot(&pad(&tiny, 0.0), &pad(&negative, 0.0));
    assert_same("padding with zeros is not neutral", zeros, 0.0);
}

#[test]
fn argmax_returns_the_first_of_ties_and_the_first_nan() {
    let table: [(&[f32], u32); 8] = [
        (&[], 0),
        (&[1.0, 3.0, 3.0], 1),
        (&[-0.0, 0.0], 0),
        (&[-INF, -INF], 0),
        (&[1.0, NAN, INF, NAN], 1),
        (&[NAN, NAN], 0),
        (&[-3.0, -1.0, -2.0], 1),
        (&[1.0, INF], 1),
    ];
    for (x, expected) in table {
        assert_eq!(row::argmax(x), expected, "{x:?}");
    }
}

#[test]
fn top_k_is_a_stable_descending_sort() {
    let seed = 24;
    println!("seed {seed}");
    let mut random = Random(seed);
    for _ in 0..500 {
        let length = (random.bits() % 20) as usize;
        let x: Vec<f32> = (0..length)
            .map(|_| match random.bits() % 8 {
                0 => NAN,
                1 => -0.0,
                n => (n - 2) as f32,
            })
            .collect();
        let key = |i: u32| {
            let v = x[i as usize];
            if v.is_nan() { INF } else { v + 0.0 }
        };
        let mut expected: Vec<u32> = (0..length as u32).collect();
        expected.sort_by(|&a, &b| key(b).partial_cmp(&key(a)).expect("the keys contain no nan"));
        let k = (random.bits() % 24) as usize;
        let mut got = vec![u32::MAX; k];
        let filled = row::top_k(&x, &mut got);
        assert_eq!(filled, k.min(length));
        assert_eq!(got[..filled], expected[..filled], "top {k} of {x:?}");
    }
}

#[test]
fn losses_compute_the_expected_values() {
    let logits = [1.0f32, -2.0, 0.5, 3.0];
    let wide: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
    let total = wide.iter().map(|x| x.exp()).sum::<f64>().ln();
    let target = [0.1f32, 0.0, 0.3, 0.6];
    let close = |what: &str, got: f32, expected: f64| {
        assert!((f64::from(got) - expected).abs() < 1e-6, "{what}: {got}, expected {expected}")
    };

    let cross: f64 = target.iter().zip(&wide).map(|(&t, x)| f64::from(t) * (total - x)).sum();
    close("cross_entropy", loss::cross_entropy(&logits, &target), cross);
    let mut log_p = [0.0; 4];
    row::log_softmax(&logits, &mut log_p);
    let entropy: f64 = target.iter().filter(|&&t| t > 0.0).map(|&t| f64::from(t) * f64::from(t).ln()).sum();
    close("kl_div", loss::kl_div(&log_p, &target), entropy + cross);
    close(
        "mse",
        loss::mse(&logits, &target),
        logits.iter().zip(&target).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / 4.0,
    );
    let bce =
        wide.iter().zip(&target).map(|(x, &t)| (1.0 + x.exp()).ln() - x * f64::from(t)).sum::<f64>() / 4.0;
    close("bce", loss::bce(&logits, &target), bce);
    // relu(1 - 0.5 + x) for the others: 1.5, 0, 3.5
    close("hinge", loss::hinge(&logits, 2, 1.0), 5.0);

    assert_eq!(
        loss::cross_entropy(&[0.0, -INF], &[1.0, 0.0]),
        0.0,
        "a masked logit with target 0 adds nothing"
    );
    assert_eq!(loss::kl_div(&[0.0, -INF], &[1.0, 0.0]), 0.0);
    assert!(same_bits(loss::pick_neg_log_softmax(&logits, 99), loss::pick_neg_log_softmax(&logits, 3)));
    assert_eq!((loss::pick_neg_log_softmax::<f32>(&[], 0), loss::hinge::<f32>(&[], 0, 1.0)), (0.0, 0.0));
    assert!(
        (loss::bce_element(1000.0f32, 0.0) - 1000.0).abs() < 1e-3
            && loss::bce_element(-1000.0f32, 0.0) == 0.0
    );
}

/// All row reductions of one row.
#[inline(always)]
pub(crate) fn all_folds(x: &[f32], out: &mut [f32]) -> [f32; 9] {
    row::softmax(x, out);
    let soft = row::sum(out);
    row::log_softmax(x, out);
    let log = row::sum(out);
    row::layer_norm(x, 1e-5, out);
    [
        soft,
        log,
        row::sum(x),
        row::max(x),
        row::min(x),
        row::norm(x),
        row::dot(x, out),
        row::logsumexp(x),
        loss::bce(x, out),
    ]
}

#[test]
#[cfg(target_arch = "x86_64")]
fn reductions_give_the_same_bits_in_vector_code() {
    #[target_feature(enable = "avx512f,avx512dq,fma")]
    fn avx512(x: &[f32], out: &mut [f32]) -> [f32; 9] {
        all_folds(x, out)
    }
    #[target_feature(enable = "avx2,fma")]
    fn avx2(x: &[f32], out: &mut [f32]) -> [f32; 9] {
        all_folds(x, out)
    }
    let seed = 26;
    println!("seed {seed}");
    let mut random = Random(seed);
    for length in 1..150 {
        let x = random.row(length, 10.0);
        let mut out = vec![0.0; length];
        let plain = all_folds(&x, &mut out).map(f32::to_bits);
        if crate::vector::avx2::detected() {
            // SAFETY: the features were detected.
            let folds = unsafe { avx2(&x, &mut out) };
            assert_eq!(folds.map(f32::to_bits), plain, "avx2, length {length}");
        }
        if crate::vector::avx512::detected() {
            // SAFETY: the features were detected.
            let folds = unsafe { avx512(&x, &mut out) };
            assert_eq!(folds.map(f32::to_bits), plain, "avx512, length {length}");
        }
    }
}

#[test]
fn reductions_in_f64_are_close_to_f32() {
    let seed = 27;
    println!("seed {seed}");
    let x = Random(seed).row(300, 4.0);
    let wide: Vec<f64> = x.iter().map(|&v| v.to_f64()).collect();
    for (narrow, wide) in [
        (row::sum(&x), row::sum(&wide)),
        (row::norm(&x), row::norm(&wide)),
        (row::logsumexp(&x), row::logsumexp(&wide)),
        (row::max(&x), row::max(&wide)),
    ] {
        assert!((f64::from(narrow) - wide).abs() < 1e-4, "{narrow} {wide}");
    }
}
