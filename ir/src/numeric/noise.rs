//! Noise: a counter-based generator, so that a noise value is a function of its key and not of
//! batch, order or thread.
//!
//! The generator is Philox2x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random
//! numbers: as easy as 1, 2, 3", 2011), of which each element takes one block: counter = (element,
//! stream word), key = the other stream word. A round is one 32 x 32 to 64 bit product, so the hot
//! part needs u32 arithmetic only and can be written in WGSL (the high half of a product from four
//! 16-bit products). The stream words come from mixing (seed, step, key) once per row, in u64
//! arithmetic on the host.

use super::Real;
use crate::hash::avalanche;

/// The multiplier of a Philox2x32 round.
pub const PHILOX_MULTIPLIER: u32 = 0xd256_d193;
/// What the Philox key grows by each round: the golden ratio as a fraction of 2^32.
pub const PHILOX_WEYL: u32 = 0x9e37_79b9;
/// Rounds of the published generator; 7 pass the statistical batteries, 10 leave a margin.
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

/// Whether dropout draws noise, and which: what evaluating a graph and executing a plan are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Dropout is the identity.
    Off,
    /// Noise of one training step of one run.
    On {
        /// The seed of the run.
        seed: u64,
        /// The training step.
        step: u64,
    },
}

/// The generator's state for one row: what [`Stream::uniform`] needs besides the element's index.
/// Plain words, to be put into a table for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The high word of the block counter.
    pub counter: u32,
    /// The Philox key.
    pub key: u32,
}

impl Stream {
    /// The stream of `key` (which names site, instance and ordinal) in training step `step` of the
    /// run seeded with `seed`.
    ///
    /// Each argument is absorbed by an addition of an odd multiple and two multiply-xorshift steps,
    /// each a bijection of 64 bits: for two arguments fixed, different values of the third give
    /// different streams.
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

    /// A multiple of 2^-24 in `[0, 1)` for `element`: the upper 24 bits.
    #[inline(always)]
    pub fn uniform(self, element: u32) -> f32 {
        // Through i32, whose conversion is one vector instruction on every target.
        ((self.bits(element) >> 8) as i32) as f32 * (1.0 / 16_777_216.0)
    }
}

/// The uniform number in `[0, 1)` of one element; [`Stream`] is the form that computes the row's
/// part once.
#[inline]
pub fn uniform(seed: u64, step: u64, key: u64, element: u32) -> f32 {
    Stream::new(seed, step, key).uniform(element)
}

/// What kept elements are multiplied by: `1 / (1 - rate)`, two roundings.
#[inline(always)]
pub fn dropout_scale<T: Real>(rate: f32) -> T {
    T::from_f32(1.0 - rate).recip()
}

/// One element of dropout: `x * scale` where `uniform >= rate`, else `+0` (whatever `x` is). The
/// decision is made in f32 for every `T`. A rate of 0 keeps all, a rate of 1 or more drops all, a
/// NaN rate drops all.
#[inline(always)]
pub fn dropout_element<T: Real>(x: T, uniform: f32, rate: f32, scale: T) -> T {
    let kept = x.mul(scale);
    if uniform >= rate { kept } else { T::ZERO }
}

/// Dropout of a row: element `i` uses `stream.uniform(i)`. Its derivative is the same function
/// applied to the gradient.
#[inline(always)]
pub fn dropout<T: Real>(row: &[T], rate: f32, stream: Stream, out: &mut [T]) {
    let scale = dropout_scale::<T>(rate);
    for (element, (result, &x)) in (0u32..).zip(out.iter_mut().zip(row)) {
        *result = dropout_element(x, stream.uniform(element), rate, scale);
    }
}
