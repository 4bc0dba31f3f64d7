//! Workload e: the language of a name, from an LSTM over its letters.

use crate::Model;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Linear, Lstm, losses};

/// An LSTM over one-hot letters, with a classifier of the last hidden state.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    lstm: Lstm,
    out: Linear,
    letters: usize,
}

impl Names {
    /// Declares the model. The benchmark has 57 letters, width 128 and 18 classes.
    pub fn new(m: &mut ModuleBuilder, letters: usize, width: usize, classes: usize) -> Self {
        Names {
            lstm: Lstm::new(m, "lstm", letters, width),
            out: Linear::new(m, "out", width, classes),
            letters,
        }
    }

    /// Emits the log-probability of every language.
    pub fn languages<'g>(&self, g: &'g Graph, name: &[u32]) -> Value<'g> {
        let last = self.lstm.last(g, name.iter().map(|&letter| g.one_hot(letter, self.letters)));
        self.out.on(last).log_softmax()
    }
}

impl Model for Names {
    type Instance = (Vec<u32>, u32);

    fn emit<'g>(&self, g: &'g Graph, (name, _): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.push(self.languages(g, name));
    }

    fn loss<'g>(&self, g: &'g Graph, (name, language): &Self::Instance) -> Value<'g> {
        losses::nll(self.languages(g, name), *language)
    }

    fn score(&self, (_, language): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        for output in outputs {
            scores.hit("accuracy", output.argmax() == *language as usize);
            scores.hit("top 3", output.top_k(3).contains(&(*language as usize)));
        }
    }
}
