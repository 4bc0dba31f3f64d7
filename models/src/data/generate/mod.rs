//! Synthetic data of the same kind as the corpora, from a seed.
//!
//! Every generator makes the structs of the corresponding reader, with sizes like the corpus. The data is
//! learnable: rules stated in each module derive the labels from the words. The *language* (its words and
//! their meaning) is fixed; the seed selects the instances. So two seeds give training and validation data of
//! one language. Instance `i` is a function of the seed and `i`: a larger count does not change the first
//! instances. Equal seeds give equal data on every platform (see [`Random`]).

pub mod digits;
pub mod expressions;
mod grammar;
pub mod inference;
pub mod lattices;
pub mod molecules;
pub mod sentiment;
pub mod similarity;
pub mod surnames;
pub mod tagged;
pub mod translations;
pub mod treebank;

use super::random::Random;

/// Makes instances `0..count`, each from its own random stream.
pub(super) fn instances<T>(seed: u64, count: usize, mut make: impl FnMut(usize, &mut Random) -> T) -> Vec<T> {
    (0..count).map(|index| make(index, &mut Random::stream(seed, index as u64))).collect()
}

/// Returns the invented word with a number. It has two or more syllables and differs from all others.
fn word(number: usize) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8; 5] = b"aeiou";
    let mut rest = number.saturating_add(80);
    let mut letters = Vec::new();
    while rest > 0 {
        let syllable = rest % 80;
        letters.push(VOWELS[syllable % 5]);
        letters.push(CONSONANTS[syllable / 5]);
        rest /= 80;
    }
    letters.iter().rev().map(|&letter| char::from(letter)).collect()
}

/// Returns the word with a capital first letter.
fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn different_numbers_give_different_words() {
        let words: BTreeSet<String> = (0..20_000).map(word).collect();
        assert_eq!(words.len(), 20_000);
        assert_eq!((word(0), word(6400)), ("beba".to_owned(), "bebeba".to_owned()));
        assert_eq!((capital("élan"), capital("")), ("Élan".to_owned(), String::new()));
        assert!(!word(usize::MAX).is_empty());
    }
}
