//! Workload d: a bidirectional LSTM that tags every word.

use crate::Model;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{BiLstm, Embedding, Linear, losses};

/// Widths of a tagger.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// The width of a word's vector.
    pub embedding: usize,
    /// The width of each direction of the LSTM.
    pub hidden: usize,
    /// The width of the layer before the tags.
    pub head: usize,
}

/// Scores tags from the states of both directions: a `tanh` layer and a linear layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    cell: Cell<2, 1>,
}

impl Head {
    pub(crate) fn new(m: &mut ModuleBuilder, widths: Widths, tags: usize) -> Self {
        let hidden = Linear::new(m, "hidden", widths.hidden.saturating_mul(2), widths.head);
        let out = Linear::new(m, "out", widths.head, tags);
        let cell = m.cell("head", [f32([widths.hidden]); 2], |g, [forward, backward]| {
            [out.on(hidden.on_parts(g, [forward, backward]).tanh())]
        });
        Head { cell }
    }

    pub(crate) fn scores<'g>(&self, g: &'g Graph, pairs: Vec<[Value<'g>; 2]>) -> Vec<Value<'g>> {
        let score = |pair| {
            let [scores] = g.call(self.cell, pair);
            scores
        };
        pairs.into_iter().map(score).collect()
    }
}

/// Word vectors, a BiLSTM over them, and a head for the tags.
#[derive(Clone, Copy, Debug)]
pub struct Tagger {
    words: Embedding,
    context: BiLstm,
    head: Head,
}

impl Tagger {
    /// Declares the model. The widths of the comparative benchmark are 128, 50 and 32, or 256 twice and 32.
    pub fn new(m: &mut ModuleBuilder, words: usize, tags: usize, widths: Widths) -> Self {
        Tagger {
            words: Embedding::new(m, "words", words, widths.embedding),
            context: BiLstm::new(m, "context", widths.embedding, widths.hidden),
            head: Head::new(m, widths, tags),
        }
    }

    /// Emits the score of every tag for each word.
    pub fn scores<'g>(&self, g: &'g Graph, sentence: &[u32]) -> Vec<Value<'g>> {
        let words: Vec<_> = sentence.iter().map(|&word| self.words.lookup(g, word)).collect();
        self.head.scores(g, self.context.run_pairs(g, words))
    }
}

impl Model for Tagger {
    /// Words, and one tag per word.
    type Instance = (Vec<u32>, Vec<u32>);

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
