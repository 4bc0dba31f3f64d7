//! Vocabularies: they map words to the `u32` ids of table lookups.
//!
//! Id 0 is the unknown word. All others are in order of decreasing frequency; words of equal
//! frequency are in code point order. So the same corpus gives the same ids everywhere, and
//! a prefix of a table holds the frequent words.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Counts words before they are numbered.
#[derive(Debug, Clone, Default)]
pub struct VocabCounter {
    counts: HashMap<String, u64>,
}

impl VocabCounter {
    /// Counts one occurrence of a word.
    pub fn add(&mut self, word: &str) {
        match self.counts.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(word.to_owned(), 1);
            }
        }
    }

    /// Counts every character of a word as a word.
    pub fn add_chars(&mut self, word: &str) {
        let mut buffer = [0; 4];
        for c in word.chars() {
            self.add(c.encode_utf8(&mut buffer));
        }
    }

    /// Returns the number of different words.
    pub fn types(&self) -> usize {
        self.counts.len()
    }

    /// Numbers the words that occurred at least `min_count` times; the others become unknown.
    pub fn finish(self, min_count: u64) -> Vocab {
        let mut counted: Vec<(String, u64)> = self
            .counts
            .into_iter()
            .filter(|(word, count)| *count >= min_count && word != Vocab::UNKNOWN)
            .collect();
        counted.sort_unstable_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
        Vocab::from_words(counted.into_iter().map(|(word, _)| word))
    }
}

/// Words and their ids. The serialized form is the list of words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Vocab {
    words: Vec<String>,
    ids: HashMap<String, u32>,
}

impl From<Vec<String>> for Vocab {
    fn from(words: Vec<String>) -> Self {
        Self::from_words(words)
    }
}

impl From<Vocab> for Vec<String> {
    fn from(vocab: Vocab) -> Self {
        vocab.words
    }
}

impl Vocab {
    /// The spelling of id 0.
    pub const UNKNOWN: &'static str = "<unk>";

    /// Counts and numbers words that occur at least `min_count` times.
    pub fn build<'a>(words: impl IntoIterator<Item = &'a str>, min_count: u64) -> Self {
        let mut counter = VocabCounter::default();
        words.into_iter().for_each(|word| counter.add(word));
        counter.finish(min_count)
    }

    /// Counts and numbers the characters of words.
    pub fn build_chars<'a>(words: impl IntoIterator<Item = &'a str>, min_count: u64) -> Self {
        let mut counter = VocabCounter::default();
        words.into_iter().for_each(|word| counter.add_chars(word));
        counter.finish(min_count)
    }

    /// Numbers words in the given order, from 1. Skips repetitions and the unknown word.
    /// `from_words(vocab.words())` is `vocab` again, so a list of words stores a vocabulary.
    pub fn from_words<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        let mut vocab = Vocab {
            words: vec![Self::UNKNOWN.to_owned()],
            ids: HashMap::from([(Self::UNKNOWN.to_owned(), 0)]),
        };
        for word in words {
            let word = word.into();
            let id = vocab.words.len() as u32;
            if let std::collections::hash_map::Entry::Vacant(entry) = vocab.ids.entry(word) {
                vocab.words.push(entry.key().clone());
                entry.insert(id);
            }
        }
        vocab
    }

    /// Returns the id of a word, or 0 if it is unknown.
    pub fn id(&self, word: &str) -> u32 {
        self.ids.get(word).copied().unwrap_or(0)
    }

    /// Returns the ids of a word's characters.
    pub fn char_ids(&self, word: &str) -> Vec<u32> {
        let mut buffer = [0; 4];
        word.chars().map(|c| self.id(c.encode_utf8(&mut buffer))).collect()
    }

    /// Returns the word with an id, if there is one.
    pub fn word(&self, id: u32) -> Option<&str> {
        self.words.get(id as usize).map(String::as_str)
    }

    /// Returns all words in order of their ids, the unknown word first.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the number of rows of a table for these words, including the unknown word.
    pub fn size(&self) -> usize {
        self.words.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_frequency_then_code_points() {
        let vocab = Vocab::build("b a c a b d b".split(' '), 1);
        assert_eq!(vocab.words(), ["<unk>", "b", "a", "c", "d"]);
        assert_eq!((vocab.id("b"), vocab.id("d"), vocab.id("x")), (1, 4, 0));
        assert_eq!((vocab.word(2), vocab.word(5)), (Some("a"), None));
    }

    #[test]
    fn rare_words_become_unknown() {
        let vocab = Vocab::build("b a c a b d b".split(' '), 2);
        assert_eq!(vocab.words(), ["<unk>", "b", "a"]);
        assert_eq!(vocab.id("c"), 0);
        assert_eq!(vocab.size(), 3);
    }

    #[test]
    fn the_unknown_word_in_a_text_has_id_zero() {
        let vocab = Vocab::build(["<unk>", "<unk>", "a"], 1);
        assert_eq!((vocab.id("<unk>"), vocab.id("a"), vocab.size()), (0, 1, 2));
    }

    #[test]
    fn a_word_list_restores_its_vocabulary() {
        let vocab = Vocab::build_chars(["anna", "änne"], 1);
        assert_eq!(vocab.words(), ["<unk>", "n", "a", "e", "ä"]);
        assert_eq!(vocab.char_ids("änx"), [4, 1, 0]);
        assert_eq!(Vocab::from_words(vocab.words()), vocab);
    }
}
