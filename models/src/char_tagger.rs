//! Workload d with characters: a tagger that spells rare words.

use crate::Model;
use crate::scores::Scores;
use crate::tagger::{Head, Widths};
use autobatch::prelude::*;
use autobatch_nn::{BiLstm, Embedding, losses};

/// A word as input of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// A frequent word, which has its own vector.
    Known(u32),
    /// A rare word, as its letters.
    Spelled(Vec<u32>),
}

/// The numbers of words and letters, and the width of a letter's vector.
#[derive(Clone, Copy, Debug)]
pub struct Alphabet {
    /// Rows of the table of words.
    pub words: usize,
    /// Rows of the table of letters.
    pub letters: usize,
    /// The width of a letter's vector.
    pub width: usize,
}

/// As [`Tagger`](crate::tagger::Tagger), but a BiLSTM over the letters of a rare word computes its vector
/// from its two last states.
#[derive(Clone, Copy, Debug)]
pub struct CharTagger {
    words: Embedding,
    letters: Embedding,
    spelling: BiLstm,
    context: BiLstm,
    head: Head,
}

impl CharTagger {
    /// Declares the model. Each direction of the spelling is half as wide as a word vector.
    pub fn new(m: &mut ModuleBuilder, alphabet: Alphabet, tags: usize, widths: Widths) -> Self {
        let spelled = widths.embedding / 2;
        CharTagger {
            words: Embedding::new(m, "words", alphabet.words, 2 * spelled),
            letters: Embedding::new(m, "letters", alphabet.letters, alphabet.width),
            spelling: BiLstm::new(m, "spelling", alphabet.width, spelled),
            context: BiLstm::new(m, "context", 2 * spelled, widths.hidden),
            head: Head::new(m, widths, tags),
        }
    }

    /// Emits the vector of a word.
    pub fn word<'g>(&self, g: &'g Graph, word: &Word) -> Value<'g> {
        match word {
            Word::Known(word) => self.words.lookup(g, *word),
            Word::Spelled(letters) => {
                self.spelling.last(g, letters.iter().map(|&letter| self.letters.lookup(g, letter)))
            }
        }
    }

    /// Emits the score of every tag for each word.
    pub fn scores<'g>(&self, g: &'g Graph, sentence: &[Word]) -> Vec<Value<'g>> {
        let words: Vec<_> = sentence.iter().map(|word| self.word(g, word)).collect();
        self.head.scores(g, self.context.run_pairs(g, words))
    }
}

impl Model for CharTagger {
    /// Words, and one tag per word.
    type Instance = (Vec<Word>, Vec<u32>);

    fn emit<'g>(&self, g: &'g Graph, (words, _): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.extend(self.scores(g, words));
    }

    fn loss<'g>(&self, g: &'g Graph, (words, tags): &Self::Instance) -> Value<'g> {
        losses::sequence_cross_entropy(g, self.scores(g, words), tags.iter().copied())
    }

    fn score(&self, (_, tags): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        scores.tags(tags, outputs);
    }
}
