//! The generator of random graphs: SplitMix64.

use autobatch_ir::hash::split_mix;

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Returns the stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn word(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// Returns a number below `end`, which must not be 0.
    pub const fn below(&mut self, end: u32) -> u32 {
        (((self.word() >> 32) * end as u64) >> 32) as u32
    }

    /// Returns a number in `low..=high`.
    pub const fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// Returns true with a probability of `percent` in 100.
    pub const fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items.
    pub const fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u32) as usize]
    }

    /// Returns a multiple of 2^-10 in `-1..1`. It is exact in every format and short in print.
    pub fn small(&mut self) -> f32 {
        (self.below(2047) as f32 - 1023.0) / 1024.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_matches_the_published_values() {
        let mut rng = Rng::new(1_234_567);
        let words = [(); 3].map(|()| rng.word());
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_stay_in_their_interval() {
        let mut rng = Rng::new(3);
        for _ in 0..1000 {
            assert!((2..=5).contains(&rng.between(2, 5)));
            assert!(rng.small().abs() < 1.0);
        }
    }
}
