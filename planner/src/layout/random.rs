//! Random input for the tests of this folder.

/// Seeded numbers.
pub(super) struct SplitMix64(pub(super) u64);

impl SplitMix64 {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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
    if std::env::var("AUTOBATCH_TEST").as_deref() == Ok("long") { short * 50 } else { short }
}
