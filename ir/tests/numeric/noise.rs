//! The noise generator: published answers, pinned bits, and statistics that detect poor
//! mixing.

use autobatch_ir::numeric::noise::{Stream, dropout, philox2x32, uniform};

#[test]
fn philox_returns_the_published_answers() {
    assert_eq!(philox2x32([0, 0], 0), [0xff1d_ae59, 0x6cd1_0df2]);
    assert_eq!(philox2x32([u32::MAX, u32::MAX], u32::MAX), [0x2c3f_628b, 0xab4f_d7ad]);
    assert_eq!(philox2x32([0x243f_6a88, 0x85a3_08d3], 0x1319_8a2e), [0xdd7c_e038, 0xf62a_4c12]);
}

#[test]
fn uniform_numbers_are_pinned() {
    let bits = |seed, step, key, element| uniform(seed, step, key, element).to_bits();
    let seen = [
        bits(0, 0, 0, 0),
        bits(1, 0, 0, 0),
        bits(0, 1, 0, 0),
        bits(0, 0, 1, 0),
        bits(0, 0, 0, 1),
        bits(7, 8, 9, 10),
    ];
    assert_eq!(seen, PINNED, "{seen:#010x?}");
}

/// A change of these bits changes every stored training run.
const PINNED: [u32; 6] = [0x3f6d_df5f, 0x3eb6_f0cc, 0x3f32_c999, 0x3f00_ca20, 0x3f01_5fee, 0x3f5c_8192];

/// Checks mean, variance, and chi-square over 64 cells; for uniform numbers all three
/// stay within five deviations.
fn check_uniformity(what: &str, numbers: impl Iterator<Item = f32>) {
    let (mut count, mut sum, mut squares, mut cells) = (0.0f64, 0.0f64, 0.0f64, [0.0f64; 64]);
    for x in numbers {
        assert!((0.0..1.0).contains(&x), "{what}: {x} is not in [0, 1)");
        let d = f64::from(x) - 0.5;
        count += 1.0;
        sum += d;
        squares += d * d;
        cells[(x * 64.0) as usize] += 1.0;
    }
    let mean = sum / count / (1.0f64 / 12.0 / count).sqrt();
    let variance = (squares / count - 1.0 / 12.0) / (1.0f64 / 180.0 / count).sqrt();
    let expected = count / 64.0;
    let chi = cells.iter().map(|n| (n - expected).powi(2) / expected).sum::<f64>();
    let chi = (chi - 63.0) / 126f64.sqrt();
    assert!(
        mean.abs() < 5.0 && variance.abs() < 5.0 && chi.abs() < 5.0,
        "{what}: mean {mean} variance {variance} chi {chi}"
    );
}

#[test]
fn numbers_are_uniform_along_every_argument() {
    const COUNT: u64 = 100_000;
    check_uniformity("elements", (0..COUNT).map(|i| uniform(1, 2, 3, i as u32)));
    check_uniformity("seeds", (0..COUNT).map(|i| uniform(i, 2, 3, 4)));
    check_uniformity("steps", (0..COUNT).map(|i| uniform(1, i, 3, 4)));
    check_uniformity("keys", (0..COUNT).map(|i| uniform(1, 2, i, 4)));
    check_uniformity("high keys", (0..COUNT).map(|i| uniform(1, 2, i << 40, 4)));
}

#[test]
fn neighbours_along_every_argument_are_uncorrelated() {
    type Sequence = fn(u64) -> f32;
    let neighbours: [(&str, Sequence); 4] = [
        ("elements", |i| uniform(1, 2, 3, i as u32)),
        ("seeds", |i| uniform(i, 2, 3, 4)),
        ("steps", |i| uniform(1, i, 3, 4)),
        ("keys", |i| uniform(1, 2, i, 4)),
    ];
    for (what, number) in neighbours {
        for lag in [1, 2, 16, 256] {
            let count = 50_000u64;
            let products =
                (0..count).map(|i| (f64::from(number(i)) - 0.5) * (f64::from(number(i + lag)) - 0.5));
            let correlation = products.sum::<f64>() * 12.0 / (count as f64).sqrt();
            assert!(correlation.abs() < 5.0, "{what} with lag {lag}: {correlation} deviations");
        }
    }
}

#[test]
fn flipping_any_bit_of_any_argument_flips_half_of_the_output() {
    let flips = |change: &dyn Fn(u64) -> u32| {
        let total: u32 = (0..64).map(change).sum();
        f64::from(total) / 64.0
    };
    let base = |i: u64| Stream::new(11, 22, 33).bits(i as u32);
    for bit in 0..64 {
        let mask = 1u64 << bit;
        for (what, stream) in [
            ("seed", Stream::new(11 ^ mask, 22, 33)),
            ("step", Stream::new(11, 22 ^ mask, 33)),
            ("key", Stream::new(11, 22, 33 ^ mask)),
        ] {
            let mean = flips(&|i| (base(i) ^ stream.bits(i as u32)).count_ones());
            assert!((13.0..19.0).contains(&mean), "bit {bit} of the {what}: {mean} of 32 bits flip");
        }
        if bit < 32 {
            let mean = flips(&|i| (base(i) ^ base(i ^ mask)).count_ones());
            assert!((13.0..19.0).contains(&mean), "bit {bit} of the element: {mean} of 32 bits flip");
        }
    }
}

#[test]
fn dropout_drops_at_its_rate_and_scales_the_rest() {
    let row = vec![3.0f32; 100_000];
    let mut out = vec![f32::NAN; row.len()];
    for rate in [0.1f32, 0.5, 0.75] {
        dropout(&row, rate, Stream::new(1, 2, 3), &mut out);
        let scale = 1.0 / (1.0 - rate);
        assert!(out.iter().all(|&y| y.to_bits() == 0 || y == 3.0 * scale));
        let dropped = out.iter().filter(|&&y| y == 0.0).count() as f64;
        let deviation =
            (dropped - 1e5 * f64::from(rate)) / (1e5 * f64::from(rate) * f64::from(1.0 - rate)).sqrt();
        assert!(deviation.abs() < 5.0, "rate {rate}: {deviation} deviations");
    }
    dropout(&row, 0.0, Stream::new(1, 2, 3), &mut out);
    assert_eq!(out, row);
    dropout(&[f32::INFINITY, f32::NAN], 1.0, Stream::new(1, 2, 3), &mut out[..2]);
    assert_eq!(out[..2], [0.0, 0.0]);
}

#[test]
fn dropout_in_f64_uses_the_same_mask() {
    let (mut narrow, mut wide) = (vec![0.0f32; 1000], vec![0.0f64; 1000]);
    dropout(&vec![1.0f32; 1000], 0.3, Stream::new(4, 5, 6), &mut narrow);
    dropout(&vec![1.0f64; 1000], 0.3, Stream::new(4, 5, 6), &mut wide);
    assert!(narrow.iter().zip(&wide).all(|(&a, &b)| (a == 0.0) == (b == 0.0)));
}
