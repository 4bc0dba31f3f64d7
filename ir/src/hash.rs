//! Hashing: one mixer, with fixed keys where a hash is an identity, with the process' own where it is
//! a place in a table.
//!
//! [`hash_of`], [`StructureHash`] and [`hash_bytes`] give the same bits on every machine and in every
//! process. They are no defence against chosen input, so nothing is decided by one but the plan
//! cache, which uses 128 bits. Tables ([`BuildMix`]) draw keys when a process starts: a file cannot be
//! made whose entries all meet in one slot. No table is iterated, so nothing depends on those keys.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd1b5_4a32_d192_ed03;

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let wide = (a as u128).wrapping_mul(b as u128);
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// A bijection of 64 bits with full avalanche: the finaliser of SplitMix64 (Steele, Lea, Flood, 2014;
/// constants by Stafford).
#[inline(always)]
#[must_use]
pub const fn avalanche(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// SplitMix64: the next 64 bits of a stream, whose state is one word. Small enough to be read, so that a
/// seed means the same for ever.
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

/// The mixer with fixed keys.
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

    /// Discriminants of enums arrive here.
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

/// Builds the hashers of tables; the keys are secret and the process' own.
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
    /// Fixed keys, to show in tests what they let an enemy do.
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

/// The 64-bit hash of one value, by fixed keys.
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
    /// Appends one word. Order matters, and so does the number of words.
    #[inline]
    pub fn push(&mut self, word: u64) {
        self.push_pair(word, u64::MAX);
    }

    /// Appends two words for the price of one: two multiplications, each of both words. A factor of
    /// all zeros or ones makes a product say nothing, so what was there and what is new are added
    /// back: no word erases another, in neither half.
    #[inline]
    pub fn push_pair(&mut self, a: u64, b: u64) {
        let (low, high) = (self.low, self.high);
        let both = a.wrapping_add(b.rotate_left(32));
        self.low = fold(low ^ a, b ^ K0).wrapping_add(low.rotate_left(29) ^ both);
        self.high = fold(high.rotate_left(23) ^ b, a ^ K1).wrapping_add(high ^ both);
    }

    /// The hash of everything pushed so far.
    #[inline]
    #[must_use]
    pub fn value(&self) -> u128 {
        (u128::from(fold(self.high, K0)) << 64) | u128::from(fold(self.low, K1))
    }
}

/// A hash of bytes for integrity: it finds accidents, not intent. Four independent lanes, so that a
/// file is hashed about as fast as it is read.
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

/// A noise key derived from another: 32-bit arithmetic only, so that a shader can say the same.
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
mod tests {
    use super::*;

    fn structure(words: &[u64]) -> u128 {
        let mut hash = StructureHash::default();
        words.iter().for_each(|&word| hash.push(word));
        hash.value()
    }

    #[test]
    fn order_and_count_of_words_change_the_structure_hash() {
        assert_ne!(structure(&[1, 2]), structure(&[2, 1]));
        assert_ne!(structure(&[0]), structure(&[0, 0]));
        assert_ne!(structure(&[]), structure(&[0]));
    }

    #[test]
    fn every_flipped_bit_changes_the_hash_of_bytes() {
        let mut bytes: Vec<u8> = (0..77).collect();
        let whole = hash_bytes(&bytes);
        for bit in 0..77 * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash_bytes(&bytes), whole, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_ne!(hash_bytes(&bytes[..76]), whole);
    }

    #[test]
    fn close_words_give_distant_hashes() {
        let mut seen = std::collections::BTreeSet::new();
        for a in 0..300 {
            for b in 0..300 {
                assert!(seen.insert(structure(&[a, b])), "collision at {a} {b}");
            }
        }
    }

    fn pairs(words: &[u64]) -> impl Iterator<Item = (u64, u64, u128)> {
        words.iter().flat_map(|&a| {
            words.iter().map(move |&b| {
                let mut hash = StructureHash::default();
                hash.push_pair(a, b);
                hash.push_pair(b, a);
                (a, b, hash.value())
            })
        })
    }

    /// Both halves on their own, so that a half that forgets is not hidden by the other.
    #[test]
    fn close_pairs_give_distant_hashes_in_either_half() {
        let [mut lows, mut highs] = [(); 2].map(|()| std::collections::BTreeSet::new());
        let shifts = [0, 1, 17, 31, 32, 48];
        let words = shifts.iter().flat_map(|&shift| (1..40u64).map(move |n| n << shift));
        let words: std::collections::BTreeSet<u64> = words.chain([0, u64::MAX]).collect();
        for (a, b, hash) in pairs(&Vec::from_iter(words)) {
            assert!(lows.insert(hash as u64), "low collision at {a:#x} {b:#x}");
            assert!(highs.insert((hash >> 64) as u64), "high collision at {a:#x} {b:#x}");
        }
    }

    /// Words chosen to make factors zeros or ones may blind one half, never both.
    #[test]
    fn words_made_to_blind_a_half_are_told_apart() {
        let mut seen = std::collections::BTreeSet::new();
        let evil = [0, K0, K1, K1.rotate_left(23)].into_iter().flat_map(|word| [word, !word]);
        let words: std::collections::BTreeSet<u64> = evil.chain(0..100).collect();
        for (a, b, hash) in pairs(&Vec::from_iter(words)) {
            assert!(seen.insert(hash), "collision at {a:#x} {b:#x}");
        }
    }

    #[test]
    fn no_pair_erases_what_was_hashed_before() {
        let [mut one, mut other] = [1, 2].map(|word| {
            let mut hash = StructureHash::default();
            hash.push(word);
            hash
        });
        for (a, b) in [(one.low, K0), (K1, one.high.rotate_left(23)), (one.low, one.high.rotate_left(23))] {
            one.push_pair(a, b);
            other.push_pair(a, b);
            assert!(one.low != other.low && one.high != other.high);
        }
    }
}
