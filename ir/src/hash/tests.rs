//! Tests of hash functions.

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

/// Tests each half separately, because a full comparison hides a weak half.
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

/// Words that make a factor zero or one can disable one half, but never both.
#[test]
fn words_that_disable_one_half_give_distinct_hashes() {
    let mut seen = std::collections::BTreeSet::new();
    let evil = [0, K0, K1, K1.rotate_left(23)].into_iter().flat_map(|word| [word, !word]);
    let words: std::collections::BTreeSet<u64> = evil.chain(0..100).collect();
    for (a, b, hash) in pairs(&Vec::from_iter(words)) {
        assert!(seen.insert(hash), "collision at {a:#x} {b:#x}");
    }
}

#[test]
fn no_pair_erases_earlier_words() {
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
