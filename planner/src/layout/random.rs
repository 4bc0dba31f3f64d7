//! Random input for the tests of this folder.

use autobatch_ir::hash::split_mix;
use autobatch_testing::trials::trials;

/// Seeded numbers.
pub(super) struct SplitMix64(pub(super) u64);

impl SplitMix64 {
    pub(super) fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// Less than the bound.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound)) as u32
    }

    /// `size` different numbers below `n`, shuffled.
    pub(super) fn set(&mut self, n: u32, size: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n).collect();
        for i in 0..size {
            let j = i + self.below(n - i);
            all.swap(i as usize, j as usize);
        }
        all.truncate(size as usize);
        all
    }
}

/// How often a random test runs: more when `AUTOBATCH_TEST=long` asks for it.
pub(super) fn rounds(short: u64) -> u64 {
    trials(short, short * 50)
}
