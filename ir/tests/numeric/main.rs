//! Tests of `numeric`, the definition of every op's bits: accuracy against f64, special values,
//! equality of vector and scalar code and of all machines, reductions against their definition, noise, and half
//! precision.
//!
//! With `AUTOBATCH_TEST=long` the accuracy tests visit all 2^32 inputs.

mod accuracy;
mod everywhere;
mod folds;
mod half;
mod lists;
mod noise;
mod real;
mod special;
mod store;
mod vector;

use autobatch_ir::hash::split_mix;

/// A SplitMix64 generator for test inputs.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A number in `[-scale, scale)`.
    pub(crate) fn number(&mut self, scale: f32) -> f32 {
        ((self.bits() >> 40) as f32 / 8_388_608.0 - 1.0) * scale
    }

    pub(crate) fn row(&mut self, length: usize, scale: f32) -> Vec<f32> {
        (0..length).map(|_| self.number(scale)).collect()
    }
}
