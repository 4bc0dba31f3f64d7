//! Sums over whole stores: the norms of gradients.
//!
//! # The fold
//! A store is split into blocks of [`BLOCK`] elements; the last may be shorter. The squares of a block
//! are summed by the fold of a row: 16 virtual lanes with fused multiply-adds. The block sums are
//! summed by the same fold, without squares. So the bits depend on the elements alone, any thread can
//! compute any block, and rounding errors of long sums stay as small as those of short ones.
//!
//! Rows of zeros do not change the result, since `fma(0, 0, lane)` is the lane. A gradient with
//! sparse rows may skip the other rows, if every element keeps its lane and block.

use super::{Real, row};

/// The number of elements of a block: 16 KiB.
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

/// The moment, or 0 if its magnitude is below the smallest normal number. Optimiser state decays, and denormal numbers make
/// every later update several times slower. Update cells express this as `select(|x| < 2^-126, 0, x)`.
#[must_use]
pub fn flushed(moment: f32) -> f32 {
    if moment.abs() < f32::MIN_POSITIVE { 0.0 } else { moment }
}
