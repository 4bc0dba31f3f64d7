//! The task of a language model.

use super::answer::{Answer, PredictError, Unknown};
use super::parts::{Parts, Published};
use super::task::{Input, Task, Widths};
use crate::catalogue::{Opened, Sizes, opened};
use crate::data::DataError;
use crate::data::generate::translations;
use crate::data::parallel::{self, words};
use crate::data::peers::Texts;
use crate::data::vocab::Vocab;
use crate::language::LanguageModel;
use autobatch::Session;
use autobatch::prelude::ModuleBuilder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// The minimum frequency of words with their own vector.
const KNOWN: u64 = 2;

/// Sentences of one language.
#[derive(Serialize, Deserialize)]
pub(crate) struct Language {
    words: Vocab,
}

impl Language {
    fn numbers(&self, sentence: &str) -> Vec<u32> {
        words(sentence).iter().map(|word| self.words.id(word)).collect()
    }
}

impl Task for Language {
    type Item = String;
    type Model = LanguageModel;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let data = sizes.read(Texts::generate)?;
        opened(LanguageModel::new(m, data.word_rows(), sizes.hidden), data.words)
    }

    fn read(folder: &Path) -> Result<Published<String>, DataError> {
        Published::read(folder, ".txt", 100, parallel::read_sentences)
    }

    fn generate(seed: u64, count: usize) -> Vec<String> {
        translations::pairs(seed, count).into_iter().map(|pair| pair.source).collect()
    }

    fn parse(input: Input<'_>) -> Result<Vec<String>, DataError> {
        input.file("beginnings of sentences", parallel::parse_sentences)
    }

    fn learn(parts: &Parts<String>) -> Self {
        let read: Vec<String> = parts.train.iter().flat_map(|sentence| words(sentence)).collect();
        Language { words: Vocab::build(read.iter().map(String::as_str), KNOWN) }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> LanguageModel {
        LanguageModel::new(m, self.words.size(), widths.hidden)
    }

    fn number(&self, sentence: &String) -> Result<Vec<u32>, String> {
        Ok(self.numbers(sentence))
    }

    fn count_unknown(&self, sentence: &String, unknown: &mut Unknown) {
        words(sentence).iter().for_each(|word| unknown.count("words", self.words.id(word), word));
    }

    fn size(sentence: &String) -> usize {
        words(sentence).len()
    }

    fn predict(
        &self,
        model: LanguageModel,
        session: &mut Session,
        items: &[String],
    ) -> Result<Vec<Answer>, PredictError> {
        let sentences: Vec<Vec<u32>> = items.iter().map(|sentence| self.numbers(sentence)).collect();
        let continued = model.continuations(session, &sentences)?;
        let answer = |(sentence, continued): (&String, &Vec<u32>)| {
            let words = continued.iter().map(|&word| self.words.word(word).unwrap_or_default());
            let continuation = words.collect::<Vec<_>>().join(" ");
            Answer {
                text: format!("{sentence}\t{continuation}"),
                json: json!({ "sentence": sentence, "answer": continuation }),
            }
        };
        Ok(items.iter().zip(&continued).map(answer).collect())
    }
}
