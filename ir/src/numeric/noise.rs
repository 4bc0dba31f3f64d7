//! Noise: a counter-based generator. A noise value is a function of its key, independent of batch, order and thread.
//!
//! The generator is Philox2x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
//! 2011). Each element uses one block: counter = (element, stream word), key = the other stream word. A round is one 32 x 32
//! to 64 bit product, so the inner loop needs only u32 arithmetic and translates to WGSL (the high half of a product from
//! four 16-bit products). The host derives the stream words from (seed, step, key) once per row, in u64 arithmetic.

use super::Real;
use crate::hash::avalanche;

/// The multiplier of a Philox2x32 round.
pub const PHILOX_MULTIPLIER: u32 = 0xd256_d193;
/// The increment of the Philox key per round: the golden ratio as a fraction of 2^32.
pub const PHILOX_WEYL: u32 = 0x9e37_79b9;
/// The number of rounds. 7 pass the statistical test batteries; 10 leave a margin.
pub const PHILOX_ROUNDS: usize = 10;

/// The Philox2x32-10 block function.
#[inline(always)]
pub fn philox2x32(counter: [u32; 2], key: u32) -> [u32; 2] {
    let [mut left, mut right] = counter;
    let mut round_key = key;
    for _ in 0..PHILOX_ROUNDS {
        let product = u64::from(left) * u64::from(PHILOX_MULTIPLIER);
        let (high, low) = ((product >> 32) as u32, product as u32);
        left = high ^ round_key ^ right;
        right = low;
        round_key = round_key.wrapping_add(PHILOX_WEYL);
    }
    [left, right]
}

/// Whether dropout draws noise, and from which stream. Graph evaluation and plan execution take it.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Dropout is the identity.
    Off,
    /// Noise of one training step of one run, which has a seed.
    On { seed: u64, step: u64 },
}

/// The generator state of one row, from which [`Stream::uniform`] computes each element. It consists
/// of plain words, so a table can carry it to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The high word of the block counter.
    pub counter: u32,
    /// The Philox key.
    pub key: u32,
}

impl Stream {
    /// The stream of `key` (which identifies site, instance and ordinal) in training step `step` of
    /// the run with seed `seed`.
    ///
    /// Each argument enters by an addition of an odd multiple and two multiply-xorshift steps, all bijections of 64 bits. So
    /// if two arguments are fixed, different values of the third give different streams.
    #[inline]
    pub fn new(seed: u64, step: u64, key: u64) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for word in [seed, step, key] {
            state = avalanche(state ^ avalanche(word.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        }
        Stream { counter: state as u32, key: (state >> 32) as u32 }
    }

    /// 32 random bits for `element`.
    #[inline(always)]
    pub fn bits(self, element: u32) -> u32 {
        philox2x32([element, self.counter], self.key)[0]
    }

    /// A multiple of 2^-24 in `[0, 1)` for `element`, from the upper 24 bits.
    #[inline(always)]
    pub fn uniform(self, element: u32) -> f32 {
        // The conversion from i32 is one vector instruction on every target.
        ((self.bits(element) >> 8) as i32) as f32 * (1.0 / 16_777_216.0)
    }
}

/// The uniform number in `[0, 1)` of one element. [`Stream`] computes the part that is common to a row only once.
#[inline]
pub fn uniform(seed: u64, step: u64, key: u64, element: u32) -> f32 {
    Stream::new(seed, step, key).uniform(element)
}

/// The factor of the elements that dropout does not drop: `1 / (1 - rate)`, two roundings.
#[inline(always)]
pub fn dropout_scale<T: Real>(rate: f32) -> T {
    T::from_f32(1.0 - rate).recip()
}

/// One element of dropout: `x * scale` where `uniform >= rate`, else `+0` (for any `x`). The comparison uses f32 for every
/// `T`. A rate of 0 drops nothing; a rate of 1 or more, or NaN, drops everything.
#[inline(always)]
pub fn dropout_element<T: Real>(x: T, uniform: f32, rate: f32, scale: T) -> T {
    let scaled = x.mul(scale);
    if uniform >= rate { scaled } else { T::ZERO }
}

/// Dropout of a row: element `i` uses `stream.uniform(i)`. The derivative is the same function of the gradient.
#[inline(always)]
pub fn dropout<T: Real>(row: &[T], rate: f32, stream: Stream, out: &mut [T]) {
    let scale = dropout_scale::<T>(rate);
    for (element, (result, &x)) in (0u32..).zip(out.iter_mut().zip(row)) {
        *result = dropout_element(x, stream.uniform(element), rate, scale);
    }
}
