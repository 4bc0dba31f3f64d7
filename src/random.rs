//! The generator behind all synthetic data: SplitMix64.
//!
//! The state is a 64-bit counter that grows by the odd constant 0x9e3779b97f4a7c15. Each output is the
//! counter mixed by two multiply-and-shift rounds. Derived draws use integer arithmetic or single IEEE
//! operations (add, multiply, round), which every platform rounds alike, so equal seeds give equal data
//! everywhere. It is not for secrets.

use autobatch_ir::hash::split_mix;

/// A small seeded generator. `Clone` forks it into two equal ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates a generator whose sequence is a function of `seed` alone.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// Creates an independent generator for one part of the work. Drawing more in one part does not change
    /// the others.
    pub fn stream(seed: u64, part: u64) -> Self {
        let mut base = Random::new(part ^ 0x6a09_e667_f3bc_c908);
        Random::new(seed ^ base.bits())
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        split_mix(&mut self.state)
    }

    /// Draws a number below `bound` uniformly; 0 when `bound` is 0.
    ///
    /// The result is the high half of a 128-bit product. The few low halves that would favour some results are
    /// drawn again.
    pub fn below(&mut self, bound: u64) -> u64 {
        let reject_below = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= reject_below {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws an index below `len`; 0 when `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Draws a number in `low..=high`; `low` when the range is empty.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        // At most 2³² values, so the sum stays within `high`.
        low + self.below(u64::from(high.saturating_sub(low)) + 1) as u32
    }

    /// Draws true in `permille` of 1000 draws.
    pub fn chance(&mut self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }

    /// Draws a multiple of 2⁻⁵³ in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Draws an approximately normal number with mean 0 and deviation 1: the sum of twelve 32-bit uniforms
    /// less 6. The result is exact (a multiple of 2⁻³²) and within ±6.
    pub fn normal(&mut self) -> f64 {
        let sum: u64 = (0..12).map(|_| self.bits() >> 32).sum();
        (sum as i64 - (6_i64 << 32)) as f64 / (1_u64 << 32) as f64
    }

    /// Draws an index in proportion to its weight; 0 when all weights are 0.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
        let mut left = self.below(total);
        for (index, &weight) in weights.iter().enumerate() {
            match left.checked_sub(u64::from(weight)) {
                Some(rest) => left = rest,
                None => return index,
            }
        }
        0
    }

    /// Draws a rank below `count`, small ranks far more often, like the words of a language: a uniform power
    /// of two, then a uniform rank below it.
    pub fn zipf(&mut self, count: usize) -> usize {
        let powers = usize::BITS - count.leading_zeros();
        let top = 1_u64 << self.below(u64::from(powers) + 1).min(63);
        self.below(top.min(count as u64)) as usize
    }

    /// Shuffles the items; every permutation is equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

/// A distribution of sizes given by quantiles, as statistics of corpora are published. Between
/// neighbouring quantiles sizes are uniform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest size, the median, the 90th and 99th percentile and the largest size, ascending.
    pub quantiles: [u32; 5],
}

impl Sizes {
    /// Creates a distribution from its smallest size, median, 90th and 99th percentile and largest size.
    pub const fn new(quantiles: [u32; 5]) -> Self {
        Sizes { quantiles }
    }

    /// Draws a size.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let [min, median, p90, p99, max] = self.quantiles;
        match random.below(100) {
            0..50 => random.between(min, median),
            50..90 => random.between(median, p90),
            90..99 => random.between(p90, p99),
            _ => random.between(p99, max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64() {
        // The published first outputs for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn bounded_draws_stay_in_bounds_and_reach_every_value() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 7];
        for _ in 0..7000 {
            seen[random.index(7)] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "seed 1: {seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
        assert_eq!(random.between(5, 3), 5);
        assert!((0..100).any(|_| random.between(0, u32::MAX) > u32::MAX / 2));
        assert_eq!(random.weighted(&[0, 0]), 0);
        assert_eq!(random.weighted(&[0, 3, 0]), 1);
        assert_eq!(random.zipf(0), 0);
        assert!((0..100).all(|_| random.zipf(3) < 3));
    }

    #[test]
    fn normal_draws_have_mean_zero_and_deviation_one() {
        let mut random = Random::new(2);
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "seed 2: {mean} {variance}");
    }

    #[test]
    fn shuffling_keeps_the_items_and_depends_on_the_seed() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..50).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        let mut sorted = order(3);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
    }

    #[test]
    fn sizes_follow_their_quantiles() {
        let sizes = Sizes::new([2, 18, 32, 43, 52]);
        let mut random = Random::new(5);
        let mut drawn: Vec<u32> = (0..10_000).map(|_| sizes.draw(&mut random)).collect();
        drawn.sort_unstable();
        assert!(drawn[0] >= 2 && drawn[9999] <= 52);
        assert!((17..=19).contains(&drawn[5000]) && (31..=33).contains(&drawn[9000]));
    }
}
