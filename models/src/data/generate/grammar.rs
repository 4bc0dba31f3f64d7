//! A small projective grammar: sentences as dependency trees that grow by dependents.
//!
//! A sentence starts as a verb and grows to the requested length. Each step adds a dependent to a random word
//! that can take one. Every kind of dependent has a side and a position on that side, so trees are projective.
//! Prepositions with even numbers attach to nouns, those with odd numbers to verbs. The number thus decides
//! attachments that the order of word classes leaves open.

use crate::data::random::Random;

/// Word classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Noun,
    Verb,
    Adjective,
    Adverb,
    Determiner,
    Preposition,
    Subordinator,
    Punctuation,
}

impl Class {
    /// Returns the universal part of speech.
    pub(super) fn upos(self) -> &'static str {
        match self {
            Class::Noun => "NOUN",
            Class::Verb => "VERB",
            Class::Adjective => "ADJ",
            Class::Adverb => "ADV",
            Class::Determiner => "DET",
            Class::Preposition => "ADP",
            Class::Subordinator => "SCONJ",
            Class::Punctuation => "PUNCT",
        }
    }

    /// Returns the range of word numbers of the class.
    pub(super) fn words(self) -> (usize, usize) {
        match self {
            Class::Noun => (0, 4000),
            Class::Verb => (4000, 1200),
            Class::Adjective => (5200, 1000),
            Class::Adverb => (6200, 300),
            Class::Determiner => (6500, 8),
            Class::Preposition => (6508, 40),
            Class::Subordinator => (6548, 12),
            Class::Punctuation => (6560, 1),
        }
    }

    /// Returns whether words of this class are content words.
    pub(super) fn is_content(self) -> bool {
        matches!(self, Class::Noun | Class::Verb | Class::Adjective | Class::Adverb)
    }
}

/// A word of a generated sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) class: Class,
    /// The word's number within its class.
    pub(super) number: usize,
    pub(super) relation: &'static str,
    /// The head, from 1; 0 for the root.
    pub(super) head: u32,
}

impl Item {
    /// The word's spelling.
    pub(super) fn form(&self) -> String {
        match self.class {
            Class::Punctuation => ".".to_owned(),
            class => super::word(class.words().0 + self.number),
        }
    }
}

struct Draft {
    class: Class,
    number: usize,
    relation: &'static str,
    /// Dependents from left to right.
    left: Vec<usize>,
    right: Vec<usize>,
}

struct Sentence<'r> {
    words: Vec<Draft>,
    random: &'r mut Random,
    /// The number of words of the class in use.
    share: usize,
}

impl Sentence<'_> {
    fn add(&mut self, class: Class, relation: &'static str) -> usize {
        let (_, words) = class.words();
        let number = self.random.zipf((words / self.share).max(1));
        self.words.push(Draft { class, number, relation, left: Vec::new(), right: Vec::new() });
        self.words.len() - 1
    }

    fn has(&self, word: usize, relation: &str) -> bool {
        let Draft { left, right, .. } = &self.words[word];
        left.iter().chain(right).any(|&dependent| self.words[dependent].relation == relation)
    }

    /// Adds a noun with its preposition to a noun (even prepositions) or a verb (odd ones).
    fn prepositional(&mut self, word: usize, relation: &'static str, parity: usize) {
        let noun = self.add(Class::Noun, relation);
        let case = self.add(Class::Preposition, "case");
        self.words[case].number = self.words[case].number / 2 * 2 + parity;
        self.words[noun].left.push(case);
        self.words[word].right.push(noun);
    }

    /// Adds a dependent of at most `room` words to `word` if the word can take the drawn kind.
    fn grow(&mut self, word: usize, room: usize) {
        let kind = self.random.below(10);
        match (self.words[word].class, kind) {
            (Class::Verb, 0..3) if !self.has(word, "nsubj") => {
                let noun = self.add(Class::Noun, "nsubj");
                self.words[word].left.push(noun);
            }
            (Class::Verb, 3..6) if !self.has(word, "obj") => {
                let noun = self.add(Class::Noun, "obj");
                self.words[word].right.insert(0, noun);
            }
            (Class::Verb, 6) if !self.has(word, "advmod") => {
                let adverb = self.add(Class::Adverb, "advmod");
                self.words[word].left.push(adverb);
            }
            (Class::Verb, 7..9) if room >= 2 => self.prepositional(word, "obl", 1),
            (Class::Verb, 9) if room >= 2 && !self.has(word, "advcl") => {
                let clause = self.add(Class::Verb, "advcl");
                let mark = self.add(Class::Subordinator, "mark");
                self.words[clause].left.insert(0, mark);
                self.words[word].right.push(clause);
            }
            (Class::Noun, 0..4) if !self.has(word, "det") => {
                let determiner = self.add(Class::Determiner, "det");
                let after_case = usize::from(self.has(word, "case"));
                self.words[word].left.insert(after_case, determiner);
            }
            (Class::Noun, 4..8) if self.words[word].left.len() < 4 => {
                let adjective = self.add(Class::Adjective, "amod");
                self.words[word].left.push(adjective);
            }
            (Class::Noun, 8..10) if room >= 2 && !self.has(word, "nmod") => {
                self.prepositional(word, "nmod", 0);
            }
            _ => {}
        }
    }

    /// Returns the words in sentence order, as positions in `words`.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.words.len());
        // The loop visits each word twice: first to expand it, then to append it to the order.
        let mut todo = vec![(0, false)];
        while let Some((word, expanded)) = todo.pop() {
            if expanded {
                order.push(word);
                continue;
            }
            let Draft { left, right, .. } = &self.words[word];
            todo.extend(right.iter().rev().map(|&dependent| (dependent, false)));
            todo.push((word, true));
            todo.extend(left.iter().rev().map(|&dependent| (dependent, false)));
        }
        order
    }

    fn finish(self) -> Vec<Item> {
        let order = self.order();
        let mut place = vec![0_u32; order.len()];
        for (number, &word) in (1..).zip(&order) {
            place[word] = number;
        }
        let mut heads = vec![0_u32; order.len()];
        for (head, draft) in self.words.iter().enumerate() {
            for &dependent in draft.left.iter().chain(&draft.right) {
                heads[dependent] = place[head];
            }
        }
        let item = |&word: &usize| {
            let Draft { class, number, relation, .. } = self.words[word];
            Item { class, number, relation, head: heads[word] }
        };
        order.iter().map(item).collect()
    }
}

/// Draws a sentence of `length` words (at least one). It uses only the first `1 / share` of each class's
/// words. With `stop` the last word is a full stop.
pub(super) fn sentence(length: usize, share: usize, stop: bool, random: &mut Random) -> Vec<Item> {
    let mut sentence = Sentence { words: Vec::new(), random, share: share.max(1) };
    sentence.add(Class::Verb, "root");
    let last = usize::from(stop && length > 1);
    let mut misses = 0;
    while sentence.words.len() + last < length {
        let before = sentence.words.len();
        let word = sentence.random.index(before);
        sentence.grow(word, length - last - before);
        misses = if sentence.words.len() == before { misses + 1 } else { 0 };
        if misses > 20 {
            // If no dependent fits the remaining length, an adverb at the root does.
            let adverb = sentence.add(Class::Adverb, "advmod");
            sentence.words[0].left.push(adverb);
        }
    }
    if last == 1 {
        let stop = sentence.add(Class::Punctuation, "punct");
        sentence.words[0].right.push(stop);
    }
    sentence.finish()
}
