//! A language model: an LSTM that predicts every word of a sentence from the words before.

use crate::Model;
use crate::scores::Scores;
use autobatch::decode::{Decoded, Search};
use autobatch::prelude::*;
use autobatch_nn::{Embedding, Lstm};

/// The number of sentences per graph of a continuation.
const TOGETHER: usize = 64;
/// The most words of a continuation.
const LONGEST: usize = 50;

/// Word vectors, an LSTM over them, and the same vectors as the rows of the next word's scores.
///
/// One more row of the table is the end of a sentence, which also begins it. The loss keeps no score, so the rows of a step do
/// not depend on the number of words.
#[derive(Clone, Copy, Debug)]
pub struct LanguageModel {
    words: Embedding,
    context: Lstm,
}

impl LanguageModel {
    /// Declares the model. States and word vectors have one width.
    pub fn new(m: &mut ModuleBuilder, words: usize, width: usize) -> Self {
        LanguageModel {
            words: Embedding::with_options(m, "words", words.saturating_add(1), width, Init::Uniform(0.5)),
            context: Lstm::new(m, "context", width, width),
        }
    }

    /// The number that begins and ends a sentence.
    fn end(&self) -> u32 {
        self.words.rows() as u32 - 1
    }

    /// Emits the loss of each word of a sentence and of its end.
    pub fn losses<'g>(&self, g: &'g Graph, sentence: &[u32]) -> Vec<Value<'g>> {
        let read = [self.end()].into_iter().chain(sentence.iter().copied());
        let read: Vec<Value<'g>> = read.map(|word| self.words.lookup(g, word)).collect();
        let next = sentence.iter().copied().chain([self.end()]);
        let states = self.context.run(g, read);
        states.into_iter().zip(next).map(|(state, word)| self.words.label_loss(state, word)).collect()
    }

    /// Returns the likeliest continuations of all sentences, word by word.
    ///
    /// # Errors
    /// As [`Session::tasks`].
    pub fn continuations(
        &self,
        session: &mut Session,
        sentences: &[Vec<u32>],
    ) -> autobatch::Result<Vec<Vec<u32>>> {
        let mut all = Vec::with_capacity(sentences.len());
        for sentences in sentences.chunks(TOGETHER) {
            let g = session.graph();
            let found = session.tasks(&g, sentences.iter().map(|sentence| self.search(&g, sentence)))?;
            all.extend(found.into_iter().map(|best| best.into_iter().next().unwrap_or_default().symbols));
        }
        Ok(all)
    }

    /// Searches the continuation of one sentence.
    async fn search(&self, g: &Graph, sentence: &[u32]) -> autobatch::Result<Vec<Decoded>> {
        let read = [self.end()].into_iter().chain(sentence.iter().copied());
        let start = self.context.start(g);
        let state = read.fold(start, |state, word| state.push(self.words.lookup(g, word)));
        let search = Search::new(self.end(), LONGEST);
        let run = search.run(
            g,
            state,
            |state| self.words.scores(state.h()),
            |state, word| state.push(self.words.lookup(g, word)),
        );
        run.await
    }
}

impl Model for LanguageModel {
    /// The words of a sentence.
    type Instance = Vec<u32>;

    fn emit<'g>(&self, g: &'g Graph, sentence: &Vec<u32>, outputs: &mut Vec<Value<'g>>) {
        outputs.extend(self.losses(g, sentence));
    }

    fn loss<'g>(&self, g: &'g Graph, sentence: &Vec<u32>) -> Value<'g> {
        g.list(self.losses(g, sentence)).sum()
    }

    fn score(&self, _: &Vec<u32>, outputs: &[&Row], scores: &mut Scores) {
        outputs.iter().for_each(|output| scores.word(f64::from(output[0])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_those_of_the_scores_of_all_words() {
        let mut m = ModuleBuilder::new("lm");
        let model = LanguageModel::new(&mut m, 700, 8);
        let mut session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
        let g = session.graph();
        let sentence = [3, 699, 0];
        let losses = model.losses(&g, &sentence);
        let read = [700, 3, 699, 0].map(|word| model.words.lookup(&g, word));
        let states = model.context.run(&g, read);
        let next = [3, 699, 0, 700];
        let scored: Vec<Value<'_>> = states
            .into_iter()
            .zip(next)
            .map(|(state, word)| model.words.scores(state).cross_entropy(word))
            .collect();
        let wanted: Vec<Value<'_>> = losses.iter().chain(&scored).copied().collect();
        let run = session.run(&g, &wanted).unwrap();
        for (loss, scored) in losses.into_iter().zip(scored) {
            assert!((run[loss][0] - run[scored][0]).abs() < 1e-5, "{} {}", run[loss][0], run[scored][0]);
        }
    }

    #[test]
    fn sentences_are_continued_alike_alone_and_in_a_batch() {
        let mut m = ModuleBuilder::new("lm");
        let model = LanguageModel::new(&mut m, 9, 8);
        let mut session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
        let sentences = [vec![3, 1, 4, 1, 5], vec![], vec![8], vec![2; 30]];
        let together = model.continuations(&mut session, &sentences).unwrap();
        for (sentence, continued) in sentences.iter().zip(&together) {
            assert!(continued.len() <= LONGEST && !continued.contains(&9));
            assert_eq!(
                &model.continuations(&mut session, std::slice::from_ref(sentence)).unwrap()[0],
                continued
            );
        }
    }
}
