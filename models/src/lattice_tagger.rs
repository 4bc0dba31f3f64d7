//! A lattice LSTM that tags every character of a sentence without spaces (Zhang & Yang 2018).

use crate::Model;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Embedding, LatticeLstm, LatticeWord, Linear, losses};

/// A sentence as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// The characters.
    pub chars: Vec<u32>,
    /// Dictionary words of two or more characters: first character, last character, word.
    pub words: Vec<(usize, usize, u32)>,
    /// The tag of each character.
    pub tags: Vec<u32>,
}

/// The numbers of characters, words and tags.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Rows of the table of characters.
    pub chars: usize,
    /// Rows of the table of words.
    pub words: usize,
    /// Scores per character.
    pub tags: usize,
}

/// Vectors of characters and words, a lattice LSTM over both, and a classifier of the characters' states.
#[derive(Clone, Copy, Debug)]
pub struct LatticeTagger {
    chars: Embedding,
    words: Embedding,
    lattice: LatticeLstm,
    out: Linear,
}

impl LatticeTagger {
    /// Declares the model. Vectors have width `embedding`, states have width `hidden`.
    pub fn new(m: &mut ModuleBuilder, counts: Counts, embedding: usize, hidden: usize) -> Self {
        LatticeTagger {
            chars: Embedding::new(m, "chars", counts.chars, embedding),
            words: Embedding::new(m, "words", counts.words, embedding),
            lattice: LatticeLstm::new(m, "lattice", embedding, embedding, hidden),
            out: Linear::new(m, "out", hidden, counts.tags),
        }
    }

    /// Emits the score of every tag for each character.
    pub fn scores<'g>(&self, g: &'g Graph, sentence: &Lattice) -> Vec<Value<'g>> {
        let chars: Vec<_> = sentence.chars.iter().map(|&char| self.chars.lookup(g, char)).collect();
        let word = |&(first, last, word): &_| {
            let x: Value<'g> = self.words.lookup(g, word);
            LatticeWord { first, last, x }
        };
        let words: Vec<_> = sentence.words.iter().map(word).collect();
        self.lattice.run(g, &chars, &words).into_iter().map(|[h, _]| self.out.on(h)).collect()
    }
}

impl Model for LatticeTagger {
    type Instance = Lattice;

    fn emit<'g>(&self, g: &'g Graph, sentence: &Lattice, outputs: &mut Vec<Value<'g>>) {
        outputs.extend(self.scores(g, sentence));
    }

    fn loss<'g>(&self, g: &'g Graph, sentence: &Lattice) -> Value<'g> {
        losses::sequence_cross_entropy(g, self.scores(g, sentence), sentence.tags.iter().copied())
    }

    fn score(&self, sentence: &Lattice, outputs: &[&Row], scores: &mut Scores) {
        for (output, &tag) in outputs.iter().zip(&sentence.tags) {
            scores.hit("accuracy", output.argmax() == tag as usize);
        }
    }
}
