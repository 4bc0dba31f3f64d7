//! The numbers behind random graphs: SplitMix64, or a script.

use autobatch_ir::hash::{avalanche, split_mix};

/// A stream of numbers: those of a script first, then pseudo-random ones.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    script: std::vec::IntoIter<u16>,
}

impl Rng {
    /// Returns the stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed, script: Vec::new().into_iter() }
    }

    /// Returns the stream of a script, which continues with that of a seed. Every two bytes of the script decide one
    /// number, so a small change of the bytes changes few numbers.
    #[must_use]
    pub fn scripted(script: &[u8], seed: u64) -> Self {
        let (pairs, _) = script.as_chunks::<2>();
        let script: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        Self { state: seed, script: script.into_iter() }
    }

    /// Returns the next 64 bits.
    pub fn word(&mut self) -> u64 {
        match self.script.next() {
            // The high bits carry the order of the scripted numbers, because `below` reads the high bits.
            Some(number) => u64::from(number) << 48 | avalanche(u64::from(number)) >> 16,
            None => split_mix(&mut self.state),
        }
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.word() >> 32) * end as u64) >> 32) as u32
    }

    /// Returns a number in `low..=high`.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// Returns true with a probability of `percent` in 100.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
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
    fn a_script_decides_its_numbers_and_no_others() {
        let mut rng = Rng::scripted(&[0, 0, 0xff, 0xff, 7], 5);
        assert_eq!((rng.below(10), rng.below(10)), (0, 9));
        assert_eq!(rng.word(), Rng::new(5).word());
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
