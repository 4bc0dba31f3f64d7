//! Workload f, sequences: an LSTM reads words and a linear layer classifies its last state.

use crate::Model;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Embedding, Linear, Lstm};

/// Word vectors, an LSTM, and a classifier without a bias.
#[derive(Clone, Copy, Debug)]
pub struct Acceptor {
    words: Embedding,
    lstm: Lstm,
    out: Linear,
}

impl Acceptor {
    /// Declares the model. Word vectors have width `embedding`, states have width `hidden`.
    pub fn new(m: &mut ModuleBuilder, words: usize, embedding: usize, hidden: usize, classes: usize) -> Self {
        Acceptor {
            words: Embedding::new(m, "words", words, embedding),
            lstm: Lstm::new(m, "lstm", embedding, hidden),
            out: Linear::no_bias(m, "out", hidden, classes),
        }
    }

    /// Emits the score of every class.
    pub fn logits<'g>(&self, g: &'g Graph, sequence: &[u32]) -> Value<'g> {
        let last = self.lstm.last(g, sequence.iter().map(|&word| self.words.lookup(g, word)));
        self.out.on(last)
    }
}

impl Model for Acceptor {
    type Instance = (Vec<u32>, u32);

    fn emit<'g>(&self, g: &'g Graph, (sequence, _): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.push(self.logits(g, sequence));
    }

    fn loss<'g>(&self, g: &'g Graph, (sequence, class): &Self::Instance) -> Value<'g> {
        self.logits(g, sequence).cross_entropy(*class)
    }

    fn score(&self, (_, class): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        outputs.iter().for_each(|output| scores.hit("accuracy", output.argmax() == *class as usize));
    }
}
