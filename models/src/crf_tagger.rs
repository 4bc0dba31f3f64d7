//! A bidirectional LSTM with a conditional random field over the tags of a sentence.

use crate::Model;
use crate::scores::Scores;
use crate::tagger::{Tagger, Widths};
use autobatch::prelude::*;
use autobatch_nn::Crf;

/// The [`Tagger`], whose scores a conditional random field reads. It is trained on the probability of the tags of a whole sentence,
/// and predicts the most probable ones.
#[derive(Clone, Copy, Debug)]
pub struct CrfTagger {
    tagger: Tagger,
    crf: Crf,
}

impl CrfTagger {
    /// Declares the model.
    pub fn new(m: &mut ModuleBuilder, words: usize, tags: usize, widths: Widths) -> Self {
        CrfTagger { tagger: Tagger::new(m, words, tags, widths), crf: Crf::new(m, "crf", tags) }
    }
}

impl Model for CrfTagger {
    /// Words, and one tag per word.
    type Instance = (Vec<u32>, Vec<u32>);

    /// For each word 1 at its tag and 0 elsewhere.
    fn emit<'g>(&self, g: &'g Graph, (words, _): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        let tags = self.crf.decode(g, self.tagger.scores(g, words));
        outputs.extend(tags.into_iter().map(|tag| g.one_hot(tag, self.crf.tags())));
    }

    fn loss<'g>(&self, g: &'g Graph, (words, tags): &Self::Instance) -> Value<'g> {
        self.crf.loss(g, self.tagger.scores(g, words), tags)
    }

    fn score(&self, (_, tags): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        scores.tags(tags, outputs);
    }
}
