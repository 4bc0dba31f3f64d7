//! Sums over whole stores: the norms of gradients.
//!
//! # The fold
//! A store is cut into blocks of [`BLOCK`] elements, the last one shorter. The squares of a block are
//! summed by the fold of a row, over 16 virtual lanes with fused multiply-adds; the sums of the
//! blocks are summed by the same fold of a row, without squares. So the bits are a function of the
//! elements alone, threads share blocks as they like, and a long sum rounds like a short one.
//!
//! Rows of zeros change nothing: `fma(0, 0, lane)` is the lane. A gradient that keeps sparse rows
//! only may leave the others out, as long as every element keeps its lane and block.

use super::{Real, row};

/// Elements of a block: 16 KiB.
pub const BLOCK: usize = 4096;

/// The sum of the squares of one block.
#[inline(always)]
pub fn block_sum_of_squares<T: Real>(block: &[T]) -> T {
    row::sum_of_squares(block)
}

/// The sum of the squares of all elements.
#[must_use]
pub fn sum_of_squares<T: Real>(elements: &[T]) -> T {
    let mut lanes = [T::ZERO; row::LANES];
    for (number, block) in elements.chunks(BLOCK).enumerate() {
        let lane = &mut lanes[number % row::LANES];
        *lane = lane.add(block_sum_of_squares(block));
    }
    row::combine(lanes, T::add)
}

/// The sum over several stores: left to right, from 0.
#[must_use]
pub fn sum_over_stores<T: Real>(sums: impl Iterator<Item = T>) -> T {
    sums.fold(T::ZERO, T::add)
}

/// A moment, or 0 where its magnitude is below the smallest normal number: what optimisers keep
/// decays, and numbers without their leading bit make every later update several times slower.
/// Update cells write this as `select(|x| < 2^-126, 0, x)`.
#[must_use]
pub fn flushed(moment: f32) -> f32 {
    if moment.abs() < f32::MIN_POSITIVE { 0.0 } else { moment }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (moment, wanted) in [
            (1e-39, 0.0),
            (-1e-39, 0.0),
            (f32::MIN_POSITIVE, f32::MIN_POSITIVE),
            (-f32::MIN_POSITIVE, -f32::MIN_POSITIVE),
            (0.5, 0.5),
        ] {
            assert_eq!(flushed(moment).to_bits(), f32::to_bits(wanted), "{moment}");
        }
        assert!(flushed(f32::NAN).is_nan());
    }
}
