//! The task of a translator.

use super::answer::{Answer, PredictError, Unknown};
use super::parts::{Parts, Published};
use super::task::{Input, Task, Widths};
use crate::catalogue::{Opened, Sizes, generated};
use crate::data::DataError;
use crate::data::generate::translations;
use crate::data::parallel::{self, Languages, Pair};
use crate::translate::{Translator, Words};
use autobatch::Session;
use autobatch::prelude::ModuleBuilder;
use serde_json::json;
use std::path::Path;

/// The minimum frequency of words with their own vector.
const KNOWN: u64 = 2;

impl Task for Languages {
    type Item = Pair;
    type Model = Translator;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let pairs = Self::generate(sizes.options.seed, sizes.count);
        generated(&Languages::learn(&pairs, 1), m, sizes)
    }

    fn read(folder: &Path) -> Result<Published<Pair>, DataError> {
        Published::read(folder, ".txt", 100, parallel::read)
    }

    fn generate(seed: u64, count: usize) -> Vec<Pair> {
        translations::pairs(seed, count)
    }

    fn parse(input: Input<'_>) -> Result<Vec<Pair>, DataError> {
        input.file("sentences to translate", parallel::parse_inputs)
    }

    fn learn(parts: &Parts<Pair>) -> Self {
        Languages::learn(&parts.train, KNOWN)
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Translator {
        Translator::new(m, Words { source: self.source.size(), target: self.target.size() }, widths.hidden)
    }

    fn number(&self, pair: &Pair) -> Result<<Translator as crate::Model>::Instance, String> {
        Ok(Languages::number(self, pair))
    }

    fn count_unknown(&self, pair: &Pair, unknown: &mut Unknown) {
        for word in parallel::words(&pair.source) {
            unknown.count("words", self.source.id(&word), &word);
        }
    }

    fn size(pair: &Pair) -> usize {
        parallel::words(&pair.source).len() + parallel::words(&pair.target).len()
    }

    fn predict(
        &self,
        model: Translator,
        session: &mut Session,
        items: &[Pair],
    ) -> Result<Vec<Answer>, PredictError> {
        let sources: Vec<Vec<u32>> = items.iter().map(|pair| Languages::number(self, pair).0).collect();
        let translations = model.translate(session, &sources)?;
        let answer = |(pair, translation): (&Pair, &Vec<u32>)| {
            let words = translation.iter().map(|&word| self.target.word(word).unwrap_or_default());
            let translated = words.collect::<Vec<_>>().join(" ");
            Answer {
                text: format!("{}\t{translated}", pair.source),
                json: json!({ "sentence": pair.source, "answer": translated }),
            }
        };
        Ok(items.iter().zip(&translations).map(answer).collect())
    }
}
