//! Tests of `numeric`, the definition of every op's bits: accuracy against f64, special values,
//! equality of vector and scalar code, folds against their written definition, noise, and half
//! precision.
//!
//! With `AUTOBATCH_TEST=long` the accuracy tests visit all 2^32 inputs.

mod accuracy;
mod folds;
mod half;
mod lists;
mod noise;
mod real;
mod special;
mod vector;

/// A SplitMix64 generator for test inputs.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[-scale, scale)`.
    pub(crate) fn number(&mut self, scale: f32) -> f32 {
        ((self.bits() >> 40) as f32 / 8_388_608.0 - 1.0) * scale
    }

    pub(crate) fn row(&mut self, length: usize, scale: f32) -> Vec<f32> {
        (0..length).map(|_| self.number(scale)).collect()
    }
}
