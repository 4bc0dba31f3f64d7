//! Hash functions: fixed keys for identities, per-process random keys for hash tables.
//!
//! [`hash_of`], [`StructureHash`] and [`hash_bytes`] give the same bits on every machine and in every process. They do not
//! resist chosen input. Only the plan cache relies on one of them, and it uses 128 bits. Tables use [`BuildMix`], which
//! draws its keys when a process starts, so an attacker cannot build a file whose entries all collide. No code iterates over
//! a table, so results do not depend on those keys.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd1b5_4a32_d192_ed03;

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let wide = (a as u128).wrapping_mul(b as u128);
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// A bijection of 64-bit words with full avalanche: the finaliser of SplitMix64 (Steele, Lea, Flood,
/// 2014; constants by Stafford).
#[inline(always)]
#[must_use]
pub const fn avalanche(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// SplitMix64: returns the next 64 bits of a stream with one word of state. The algorithm never
/// changes, so a seed keeps its meaning.
#[inline]
pub const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(K0);
    avalanche(*state)
}

/// A running 64-bit hash.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    state: u64,
    key: u64,
}

/// Uses fixed keys.
impl Default for Mix {
    #[inline]
    fn default() -> Self {
        Self { state: K0, key: K0 }
    }
}

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, K1)
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.state = fold(self.state ^ word, self.key).wrapping_add(word.rotate_left(32));
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    /// Hashes the discriminant of an enum.
    #[inline]
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
}

/// Builds hashers for tables, with random keys that the process draws once.
#[derive(Clone, Copy, Debug)]
pub struct BuildMix(Mix);

impl Default for BuildMix {
    fn default() -> Self {
        static KEYS: OnceLock<Mix> = OnceLock::new();
        Self(*KEYS.get_or_init(|| {
            let random = RandomState::new();
            let [state, key] = [K0, K1].map(|word| random.hash_one(word));
            Mix { state, key: key | 1 }
        }))
    }
}

impl BuildMix {
    /// Fixed keys, for tests of the attack that secret keys prevent.
    #[cfg(test)]
    pub(crate) fn fixed() -> Self {
        Self(Mix::default())
    }
}

impl BuildHasher for BuildMix {
    type Hasher = Mix;

    #[inline]
    fn build_hasher(&self) -> Mix {
        self.0
    }
}

/// The 64-bit hash of one value, with fixed keys.
#[inline]
pub fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut mix = Mix::default();
    value.hash(&mut mix);
    mix.finish()
}

/// A running 128-bit hash of a sequence of words: the identity of a graph's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructureHash {
    low: u64,
    high: u64,
}

impl Default for StructureHash {
    fn default() -> Self {
        Self { low: K0, high: K1 }
    }
}

impl StructureHash {
    /// Appends one word. The hash depends on the order and number of words.
    #[inline]
    pub fn push(&mut self, word: u64) {
        self.push_pair(word, u64::MAX);
    }

    /// Appends two words at the cost of one: two multiplications, each of both words.
    ///
    /// A factor of all zeros or ones makes a product independent of the other factor. So the update
    /// adds the old state and the new words back, and no word erases another in either half.
    #[inline]
    pub fn push_pair(&mut self, a: u64, b: u64) {
        let (low, high) = (self.low, self.high);
        let both = a.wrapping_add(b.rotate_left(32));
        self.low = fold(low ^ a, b ^ K0).wrapping_add(low.rotate_left(29) ^ both);
        self.high = fold(high.rotate_left(23) ^ b, a ^ K1).wrapping_add(high ^ both);
    }

    /// The hash of all words so far.
    #[inline]
    #[must_use]
    pub fn value(&self) -> u128 {
        (u128::from(fold(self.high, K0)) << 64) | u128::from(fold(self.low, K1))
    }
}

/// A hash of bytes that detects damage, not forgery. Four independent lanes hash a file about as fast as it is read.
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    let mut lanes = [K0, K1, !K0, !K1];
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        for (lane, chunk) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            let word = u64::from_le_bytes(*chunk);
            *lane = fold(*lane ^ word, K0).wrapping_add(word.rotate_left(32));
        }
    }
    let mut mix = Mix::default();
    lanes.into_iter().for_each(|lane| mix.write_u64(lane));
    blocks.remainder().chunks(8).for_each(|chunk| mix.write_u64(word(chunk)));
    mix.write_u64(bytes.len() as u64);
    mix.finish()
}

/// Derives a noise key from another, in 32-bit arithmetic that a shader can repeat.
#[must_use]
pub const fn noise_key(key: [u32; 2], ordinal: u32) -> [u32; 2] {
    let mut low = key[0] ^ ordinal.wrapping_mul(0x9e37_79b1);
    let mut high = key[1] ^ ordinal.wrapping_add(0x85eb_ca77);
    let mut round = 0;
    while round < 4 {
        low = (low ^ (high >> 15)).wrapping_mul(0x85eb_ca6b).wrapping_add(high.rotate_left(7));
        high = (high ^ (low >> 13)).wrapping_mul(0xc2b2_ae35).wrapping_add(low.rotate_left(11));
        round += 1;
    }
    [low, high]
}

#[cfg(test)]
mod tests;
