//! Workloads with sequences: tagged sentences, names, acceptor sequences, stack actions.

use serde::{Deserialize, Serialize};

use super::{Mismatch, Workload, instances, length, sentence_length, table_size, words};
use crate::data::random::Random;

/// Checks that no sequence is empty.
fn check_filled(sequences: &[Vec<u32>], what: &str) -> Result<(), Mismatch> {
    let expected = format!("one or more {what}");
    sequences
        .iter()
        .enumerate()
        .try_for_each(|(index, sequence)| Mismatch::unless(!sequence.is_empty(), index, &expected, "none"))
}

/// Checks that no sequence is empty and that all numbers are below `bound`.
pub(super) fn check_all(sequences: &[Vec<u32>], bound: u32, what: &str) -> Result<(), Mismatch> {
    check_filled(sequences, what)?;
    let expected = format!("{what} below {bound}");
    sequences.iter().enumerate().try_for_each(|(index, sequence)| {
        let largest = sequence.iter().copied().max().unwrap_or(0);
        Mismatch::unless(largest < bound, index, &expected, &largest.to_string())
    })
}

fn check_labels(sequences: &[Vec<u32>], labels: &[u32], classes: u32) -> Result<(), Mismatch> {
    Mismatch::unless_paired(sequences.len(), labels.len(), "labels")?;
    let expected = format!("classes below {classes}");
    labels.iter().enumerate().try_for_each(|(index, &label)| {
        Mismatch::unless(label < classes, index, &expected, &format!("class {label}"))
    })
}

/// Workload of language models: sentences of words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    /// The word numbers of each sentence.
    pub words: Vec<Vec<u32>>,
}

impl Texts {
    /// The default number of words.
    pub const WORDS: u32 = 50_000;

    /// Draws sentences of 20 words on average. The frequency of a word is about the inverse of its number.
    pub fn generate(seed: u64, count: usize) -> Self {
        let word = |random: &mut Random| {
            let drawn = (random.unit() * f64::from(Self::WORDS).ln_1p()).exp_m1();
            (drawn as u32).min(Self::WORDS - 1)
        };
        let words = instances(seed, count, |_, random| {
            let length = sentence_length(random, 3);
            (0..length).map(|_| word(random)).collect()
        });
        Texts { words }
    }

    /// Returns the number of rows of a table of words.
    pub fn word_rows(&self) -> usize {
        table_size(self.words.iter().flatten(), Self::WORDS)
    }
}

impl Workload for Texts {
    fn check(&self) -> Result<(), Mismatch> {
        check_filled(&self.words, "words")
    }
}

/// Workload d: sentences with a tag per word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tagged {
    /// The word numbers of each sentence.
    pub words: Vec<Vec<u32>>,
    /// The tags, one per word.
    pub tags: Vec<Vec<u32>>,
}

impl Tagged {
    /// The default number of words.
    pub const WORDS: u32 = 10_000;
    /// The default number of tags.
    pub const TAGS: u32 = 17;

    /// Draws sentences of 20 words on average (deviation 8, within 3..=60), or all of length `same`.
    pub fn generate(seed: u64, count: usize, same: Option<u32>) -> Self {
        let drawn = instances(seed, count, |_, random| {
            let length = same.unwrap_or_else(|| sentence_length(random, 3));
            (words(random, length, Self::WORDS), words(random, length, Self::TAGS))
        });
        let (words, tags) = drawn.into_iter().unzip();
        Tagged { words, tags }
    }

    /// Returns the number of rows of a table of words.
    pub fn word_rows(&self) -> usize {
        table_size(self.words.iter().flatten(), Self::WORDS)
    }

    /// Returns the number of scores per word, one per tag.
    pub fn tag_count(&self) -> usize {
        table_size(self.tags.iter().flatten(), Self::TAGS)
    }

    /// Returns the sentences with their tags.
    pub fn instances(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        self.words.iter().map(Vec::as_slice).zip(self.tags.iter().map(Vec::as_slice))
    }
}

impl Workload for Tagged {
    fn check(&self) -> Result<(), Mismatch> {
        Mismatch::unless_paired(self.words.len(), self.tags.len(), "lists of tags")?;
        check_filled(&self.words, "words")?;
        self.instances().enumerate().try_for_each(|(index, (words, tags))| {
            Mismatch::unless(
                words.len() == tags.len(),
                index,
                "one tag per word",
                &format!("{} tags", tags.len()),
            )
        })
    }
}

fn classified(
    seed: u64,
    count: usize,
    classes: u32,
    mut sequence: impl FnMut(&mut Random) -> Vec<u32>,
) -> (Vec<Vec<u32>>, Vec<u32>) {
    let draw = |_, random: &mut Random| (sequence(random), random.below(u64::from(classes)) as u32);
    instances(seed, count, draw).into_iter().unzip()
}

/// Workload e: names as characters, with one language each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letters {
    /// The character numbers of each name, below [`Letters::CHARACTERS`].
    pub chars: Vec<Vec<u32>>,
    /// The class of each name, below [`Letters::CLASSES`].
    pub labels: Vec<u32>,
}

impl Letters {
    /// The number of characters.
    pub const CHARACTERS: u32 = 57;
    /// The number of classes.
    pub const CLASSES: u32 = 18;

    /// Draws names of 7 characters on average (deviation 2.5, within 2..=20).
    pub fn generate(seed: u64, count: usize) -> Self {
        let (chars, labels) = classified(seed, count, Self::CLASSES, |random| {
            let length = length(random, 7.0, 2.5, 2, 20);
            words(random, length, Self::CHARACTERS)
        });
        Letters { chars, labels }
    }

    /// Returns the names with their classes.
    pub fn instances(&self) -> impl Iterator<Item = (&[u32], u32)> {
        self.chars.iter().map(Vec::as_slice).zip(self.labels.iter().copied())
    }
}

impl Workload for Letters {
    fn check(&self) -> Result<(), Mismatch> {
        check_all(&self.chars, Self::CHARACTERS, "characters")?;
        check_labels(&self.chars, &self.labels, Self::CLASSES)
    }
}

/// Workload f: sequences for an acceptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequences {
    /// The word numbers of each sequence.
    pub words: Vec<Vec<u32>>,
    /// The class of each sequence, below [`Sequences::CLASSES`].
    pub labels: Vec<u32>,
}

impl Sequences {
    /// The default number of words.
    pub const WORDS: u32 = 1000;
    /// The number of classes.
    pub const CLASSES: u32 = 3;

    /// Draws sequences of 20 words on average (deviation 8, within 3..=60).
    pub fn generate(seed: u64, count: usize) -> Self {
        let (words, labels) = classified(seed, count, Self::CLASSES, |random| {
            let length = sentence_length(random, 3);
            words(random, length, Self::WORDS)
        });
        Sequences { words, labels }
    }

    /// Returns the number of rows of a table of words.
    pub fn word_rows(&self) -> usize {
        table_size(self.words.iter().flatten(), Self::WORDS)
    }

    /// Returns the sequences with their classes.
    pub fn instances(&self) -> impl Iterator<Item = (&[u32], u32)> {
        self.words.iter().map(Vec::as_slice).zip(self.labels.iter().copied())
    }
}

impl Workload for Sequences {
    fn check(&self) -> Result<(), Mismatch> {
        check_filled(&self.words, "words")?;
        check_labels(&self.words, &self.labels, Self::CLASSES)
    }
}

/// Workload g: sentences with the actions of a stack machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parses {
    /// The word numbers of each sentence, below [`Parses::WORDS`].
    pub words: Vec<Vec<u32>>,
    /// The actions of each sentence: 2n - 1 for n words. Action 0 shifts the next word. Actions 1 and 2 join the
    /// two topmost entries, with the lower or the upper one as head.
    pub actions: Vec<Vec<u32>>,
}

/// Draws actions for a sentence. While both kinds are possible, half of the actions are shifts.
fn random_actions(words: u32, random: &mut Random) -> Vec<u32> {
    let (mut stack, mut left) = (0, words);
    let mut actions = Vec::new();
    while left > 0 || stack > 1 {
        let shift = stack < 2 || (left > 0 && random.chance(500));
        if shift {
            stack += 1;
            left -= 1;
            actions.push(0);
        } else {
            stack -= 1;
            actions.push(random.between(1, 2));
        }
    }
    actions
}

/// Returns whether actions shift all words and join them into one.
fn executes(words: usize, actions: &[u32]) -> bool {
    let (mut stack, mut left) = (0_usize, words);
    for &action in actions {
        let possible = if action == 0 { left > 0 } else { action < 3 && stack > 1 };
        if !possible {
            return false;
        }
        if action == 0 {
            left -= 1;
            stack += 1;
        } else {
            stack -= 1;
        }
    }
    left == 0 && stack == 1
}

impl Parses {
    /// The number of words.
    pub const WORDS: u32 = 10_000;

    /// Draws sentences of 20 words on average (deviation 8, within 3..=60) with random actions.
    pub fn generate(seed: u64, count: usize) -> Self {
        let drawn = instances(seed, count, |_, random| {
            let length = sentence_length(random, 3);
            (words(random, length, Self::WORDS), random_actions(length, random))
        });
        let (words, actions) = drawn.into_iter().unzip();
        Parses { words, actions }
    }

    /// Returns the sentences with their actions.
    pub fn instances(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        self.words.iter().map(Vec::as_slice).zip(self.actions.iter().map(Vec::as_slice))
    }
}

impl Workload for Parses {
    fn check(&self) -> Result<(), Mismatch> {
        Mismatch::unless_paired(self.words.len(), self.actions.len(), "lists of actions")?;
        check_all(&self.words, Self::WORDS, "words")?;
        self.instances().enumerate().try_for_each(|(index, (words, actions))| {
            let expected = "actions 0, 1 or 2 that shift every word and join all into one";
            Mismatch::unless(executes(words.len(), actions), index, expected, "others")
        })
    }
}
