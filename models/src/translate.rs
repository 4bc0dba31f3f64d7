//! A transformer that translates sentences: an encoder, and a decoder that attends to it.

use crate::Model;
use crate::scores::Scores;
use crate::transformer::{LAYERS, heads, options};
use autobatch::decode::{Decoded, Search};
use autobatch::prelude::*;
use autobatch_nn::{
    Embedding, Linear, Positions, TransformerDecoder, TransformerEncoder, TransformerState, losses,
};

/// The number of sentences per graph of a translation.
const TOGETHER: usize = 64;

/// The numbers of words of both languages.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The words of the sentences to translate.
    pub source: usize,
    /// The words of their translations.
    pub target: usize,
}

/// A state of the decoder, and the scores of the next word.
type Scored<'g> = (TransformerState<'g>, Value<'g>);

/// Word vectors with positions for both languages, an encoder and a decoder of two layers each, and a linear layer that
/// scores the next word.
///
/// One more row of each table is the end of a sentence. It ends source and target, so no sentence is empty, and begins the
/// target.
#[derive(Clone, Debug)]
pub struct Translator {
    source: Embedding,
    target: Embedding,
    positions: Positions,
    encoder: TransformerEncoder,
    decoder: TransformerDecoder,
    out: Linear,
    words: Words,
}

impl Translator {
    /// Declares the model. States and word vectors have one width, and feed-forward parts are four times as wide.
    pub fn new(m: &mut ModuleBuilder, words: Words, width: usize) -> Self {
        let table = |m: &mut ModuleBuilder, name: &str, words: usize| {
            Embedding::with_options(m, name, words.saturating_add(1), width, Init::Normal(1.0))
        };
        Translator {
            source: table(m, "source", words.source),
            target: table(m, "target", words.target),
            positions: Positions::sinusoidal(width),
            encoder: TransformerEncoder::with_options(m, "encoder", width, heads(width), LAYERS, &options()),
            decoder: TransformerDecoder::with_options(m, "decoder", width, heads(width), LAYERS, &options()),
            out: Linear::new(m, "out", width, words.target.saturating_add(1)),
            words,
        }
    }

    /// The number that ends a target sentence.
    const fn end(&self) -> u32 {
        self.words.target as u32
    }

    /// Emits the state of the decoder before the first word.
    fn begin<'g>(&self, g: &'g Graph, source: &[u32]) -> TransformerState<'g> {
        let words = source.iter().copied().chain([self.words.source as u32]);
        let words = words.map(|word| self.source.lookup(g, word));
        let encoded = self.encoder.run(g, self.positions.add(g, words));
        self.decoder.start(g, &self.decoder.memory(g, encoded))
    }

    /// Emits the scores of the word after `word`.
    fn next<'g>(&self, g: &'g Graph, state: &mut TransformerState<'g>, word: u32) -> Value<'g> {
        let placed = self.positions.add_at(g, self.target.lookup(g, word), state.len());
        self.out.on(state.push(placed))
    }

    /// Emits the scores of each word of a translation and of its end, given the words before.
    pub fn scores<'g>(&self, g: &'g Graph, source: &[u32], target: &[u32]) -> Vec<Value<'g>> {
        let mut state = self.begin(g, source);
        let read = [self.end()].into_iter().chain(target.iter().copied());
        read.map(|word| self.next(g, &mut state, word)).collect()
    }

    /// The words of a translation and its end.
    fn expected(&self, target: &[u32]) -> impl Iterator<Item = u32> {
        target.iter().copied().chain([self.end()])
    }

    /// Returns the translations of all sentences by greedy search. A translation has at most `10 + 2 n` words for `n` words
    /// of the sentence.
    ///
    /// # Errors
    /// As [`Session::tasks`].
    pub fn translate(&self, session: &mut Session, sources: &[Vec<u32>]) -> autobatch::Result<Vec<Vec<u32>>> {
        let mut all = Vec::with_capacity(sources.len());
        for sources in sources.chunks(TOGETHER) {
            let g = session.graph();
            let found = session.tasks(&g, sources.iter().map(|source| self.search(&g, source)))?;
            all.extend(found.into_iter().map(|best| best.into_iter().next().unwrap_or_default().symbols));
        }
        Ok(all)
    }

    /// Searches the translation of one sentence.
    async fn search<'g>(&self, g: &'g Graph, source: &[u32]) -> autobatch::Result<Vec<Decoded>> {
        let mut state = self.begin(g, source);
        let scores = self.next(g, &mut state, self.end());
        let search = Search::new(self.end(), 10 + 2 * source.len());
        let push = |state: &Scored<'g>, word| {
            let mut state = state.0.clone();
            let scores = self.next(g, &mut state, word);
            (state, scores)
        };
        search.run(g, (state, scores), |state| state.1, push).await
    }
}

impl Model for Translator {
    /// The words of a sentence, and those of its translation.
    type Instance = (Vec<u32>, Vec<u32>);

    fn emit<'g>(&self, g: &'g Graph, (source, target): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.extend(self.scores(g, source, target));
    }

    fn loss<'g>(&self, g: &'g Graph, (source, target): &Self::Instance) -> Value<'g> {
        losses::sequence_cross_entropy(g, self.scores(g, source, target), self.expected(target))
    }

    /// A sentence is exact if every word is the best one after the words before it. Greedy search then finds it.
    fn score(&self, (_, target): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        let mut is_exact = true;
        for (word, output) in self.expected(target).zip(outputs) {
            let hit = output.argmax() == word as usize;
            is_exact &= hit;
            scores.hit("word accuracy", hit);
        }
        scores.hit("exact sentences", is_exact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_translated_alike_alone_and_in_a_batch() {
        let mut m = ModuleBuilder::new("translate");
        let model = Translator::new(&mut m, Words { source: 9, target: 7 }, 8);
        let mut session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
        let sources = [vec![3, 1, 4, 1, 5], vec![], vec![8], vec![2; 30]];
        let together = model.translate(&mut session, &sources).unwrap();
        for (source, translation) in sources.iter().zip(&together) {
            assert!(translation.len() <= 10 + 2 * source.len() && !translation.contains(&7));
            let alone = model.translate(&mut session, std::slice::from_ref(source)).unwrap();
            assert_eq!(&alone[0], translation);
        }
    }

    #[test]
    fn a_translation_is_exact_just_if_greedy_search_finds_it() {
        let mut m = ModuleBuilder::new("translate");
        let model = Translator::new(&mut m, Words { source: 9, target: 7 }, 8);
        let mut session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
        let source = vec![3, 1, 4];
        let found = model.translate(&mut session, std::slice::from_ref(&source)).unwrap().remove(0);
        let exact = |session: &mut Session, target: Vec<u32>| {
            let (graph, mut outputs, mut scores) = (session.graph(), Vec::new(), Scores::default());
            let instance = (source.clone(), target);
            model.emit(&graph, &instance, &mut outputs);
            let run = session.run(&graph, &outputs).unwrap();
            model.score(
                &instance,
                &outputs.iter().map(|&output| &run[output]).collect::<Vec<_>>(),
                &mut scores,
            );
            scores.numbers()[1]
        };
        let ended = found.len() < 10 + 2 * source.len();
        assert_eq!(exact(&mut session, found.clone()), ("exact sentences", f64::from(u8::from(ended))));
        let other = found.iter().map(|word| (word + 1) % 7).chain([0]).collect();
        assert_eq!(exact(&mut session, other), ("exact sentences", 0.0));
    }
}
