//! A transformer encoder that tags every word.

use crate::Model;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Embedding, Linear, Positions, TransformerEncoder, TransformerOptions, losses};

/// The number of layers of an encoder or a decoder.
pub(crate) const LAYERS: usize = 2;

/// The number of heads: 4, or fewer if the width is no multiple of 4.
pub(crate) fn heads(width: usize) -> usize {
    (1..=4).rev().find(|heads| width.is_multiple_of(*heads)).unwrap_or(1)
}

/// The options of encoders and decoders. Norms come before the parts, so training needs no warmup.
pub(crate) fn options() -> TransformerOptions {
    TransformerOptions { norm_first: true, dropout: 0.1, ..TransformerOptions::default() }
}

/// Word vectors with positions, an encoder of two layers over them, and a linear layer for the tags.
#[derive(Clone, Debug)]
pub struct Transformer {
    words: Embedding,
    positions: Positions,
    encoder: TransformerEncoder,
    out: Linear,
}

impl Transformer {
    /// Declares the model. States and word vectors have one width, and the feed-forward part is four times as wide.
    pub fn new(m: &mut ModuleBuilder, words: usize, tags: usize, width: usize) -> Self {
        Transformer {
            words: Embedding::with_options(m, "words", words, width, Init::Normal(1.0)),
            positions: Positions::sinusoidal(width),
            encoder: TransformerEncoder::with_options(m, "encoder", width, heads(width), LAYERS, &options()),
            out: Linear::new(m, "out", width, tags),
        }
    }

    /// Emits the score of every tag for each word.
    pub fn scores<'g>(&self, g: &'g Graph, sentence: &[u32]) -> Vec<Value<'g>> {
        let words = sentence.iter().map(|&word| self.words.lookup(g, word));
        let encoded = self.encoder.run(g, self.positions.add(g, words));
        encoded.into_iter().map(|x| self.out.on(x)).collect()
    }
}

impl Model for Transformer {
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
