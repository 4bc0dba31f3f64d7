//! Sums over whole stores, and the flush of denormal moments.

use autobatch_ir::numeric::row;
use autobatch_ir::numeric::store::{BLOCK, flushed, sum_of_squares};

#[test]
fn the_sum_is_the_fold_of_the_sums_of_blocks() {
    let elements: Vec<f32> = (0..3 * BLOCK + 77).map(|i| ((i * 37) % 101) as f32 * 0.013 - 0.6).collect();
    let blocks: Vec<f32> = elements.chunks(BLOCK).map(row::sum_of_squares).collect();
    assert_eq!(blocks.len(), 4);
    assert_eq!(sum_of_squares(&elements).to_bits(), row::sum(&blocks).to_bits());
    let exact: f64 = elements.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    assert!((f64::from(sum_of_squares(&elements)) / exact - 1.0).abs() < 1e-6);
}

#[test]
fn rows_of_zeros_do_not_change_the_sum() {
    let mut elements = vec![0.0f32; 2 * BLOCK];
    elements[5] = 3.0;
    elements[BLOCK + 1] = 4.0;
    assert_eq!(sum_of_squares(&elements), 25.0);
}

#[test]
fn numbers_below_the_smallest_normal_one_are_flushed() {
    for (moment, expected) in [
        (1e-39, 0.0),
        (-1e-39, 0.0),
        (f32::MIN_POSITIVE, f32::MIN_POSITIVE),
        (-f32::MIN_POSITIVE, -f32::MIN_POSITIVE),
        (0.5, 0.5),
    ] {
        assert_eq!(flushed(moment).to_bits(), f32::to_bits(expected), "{moment}");
    }
    assert!(flushed(f32::NAN).is_nan());
}
