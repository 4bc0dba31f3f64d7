//! Tasks with one class per instance: digits, expressions, names, sentences, trees.

use super::answer::{Answer, PredictError, Unknown, answered, classified};
use super::chunks::Units;
use super::parts::{Parts, Published};
use super::task::{Input, Task, Widths};
use crate::acceptor::Acceptor;
use crate::catalogue::{Opened, Sizes, opened};
use crate::data::peers::{Images, Letters, Sequences, Trees};
use crate::data::vocab::Vocab;
use crate::data::{DataError, generate, idx, listops, names as languages, sst};
use crate::mnist::Mnist;
use crate::names::Names;
use crate::spinn::Spinn;
use crate::tree_rnn::TreeRnnClassifier;
use autobatch::Session;
use autobatch::prelude::ModuleBuilder;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The names of the sentiment classes.
pub(super) const SENTIMENTS: [&str; 5] =
    ["very negative", "negative", "neutral", "positive", "very positive"];
/// The minimum frequency of known words. Rarer words train the vector of the unknown word.
const KNOWN: u64 = 2;

/// Images of digits.
#[derive(Serialize, Deserialize)]
pub(crate) struct Digits;

/// Pixels, and the digit; 0 stands for an unknown digit.
type Digit = (Vec<f32>, u32);

fn digits_of(images: &idx::Images, labels: &[u8]) -> Vec<Digit> {
    let labels = labels.iter().copied().chain(std::iter::repeat(0)).map(u32::from);
    (0..).map_while(|image| images.floats(image)).zip(labels).collect()
}

impl Task for Digits {
    type Item = Digit;
    type Model = Mnist;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let images: Images = sizes.read(|seed, count| Images::generate(seed, count as u32))?;
        opened(Mnist::new(m, sizes.hidden), images.instances().collect())
    }

    fn read(folder: &Path) -> Result<Published<Digit>, DataError> {
        let idx::Labelled { images, labels } = idx::read(folder)?;
        Ok(Published::whole(digits_of(&images, &labels), 200))
    }

    fn generate(seed: u64, count: usize) -> Vec<Digit> {
        let idx::Labelled { images, labels } = generate::digits::digits(seed, count);
        digits_of(&images, &labels)
    }

    const UNITS: Units = Units::Whole;

    fn parse(input: Input<'_>) -> Result<Vec<Digit>, DataError> {
        let images = input.file("images in the IDX format", idx::parse_images)?;
        Ok(digits_of(&images, &[]))
    }

    fn learn(_: &Parts<Digit>) -> Self {
        Digits
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Mnist {
        Mnist::new(m, widths.hidden)
    }

    fn number(&self, (pixels, digit): &Digit) -> Result<Digit, String> {
        let expected = generate::digits::SIDE * generate::digits::SIDE;
        match pixels.len() == expected {
            true => Ok((pixels.clone(), *digit)),
            false => Err(format!("expected an image of {expected} pixels, found {}", pixels.len())),
        }
    }

    fn size(_: &Digit) -> usize {
        1
    }

    fn predict(
        &self,
        model: Mnist,
        session: &mut Session,
        items: &[Digit],
    ) -> Result<Vec<Answer>, PredictError> {
        let mut images = 0..;
        answered(self, model, session, items, |_, rows| {
            let number = images.next().unwrap_or(0).to_string();
            classified("image", &number, rows.first(), |digit| digit.to_string())
        })
    }
}

/// Expressions of list operations.
#[derive(Serialize, Deserialize)]
pub(crate) struct Expressions;

impl Task for Expressions {
    type Item = listops::Expression;
    type Model = Spinn;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let trees: Trees = sizes.read(|seed, count| Trees::generate(seed, count, 20.0, Trees::WORDS))?;
        let model = Spinn::new(m, trees.word_rows(), sizes.hidden, Trees::CLASSES as usize);
        opened(model, trees.instances().map(|(tree, class)| (tree.clone(), class)).collect())
    }

    fn read(folder: &Path) -> Result<Published<Self::Item>, DataError> {
        Ok(Published::whole(listops::read(folder.join("d8.tsv"))?, 100))
    }

    fn generate(seed: u64, count: usize) -> Vec<Self::Item> {
        generate::expressions::expressions(seed, count, generate::expressions::Limits::D8)
    }

    fn parse(input: Input<'_>) -> Result<Vec<Self::Item>, DataError> {
        input.file("expressions", listops::parse_inputs)
    }

    fn learn(_: &Parts<Self::Item>) -> Self {
        Expressions
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Spinn {
        Spinn::new(m, listops::Token::COUNT as usize, widths.hidden, 10)
    }

    fn number(&self, item: &Self::Item) -> Result<<Spinn as crate::Model>::Instance, String> {
        Ok((item.tree.map(|token| token.index()), u32::from(item.answer)))
    }

    fn size(item: &Self::Item) -> usize {
        item.tree.leaves().len()
    }

    fn predict(
        &self,
        model: Spinn,
        session: &mut Session,
        items: &[Self::Item],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, |item, rows| {
            let text = joined(item.tree.leaves());
            classified("expression", &text, rows.first(), |digit| digit.to_string())
        })
    }
}

/// The items, separated by spaces.
pub(super) fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Names of several languages, as letters.
#[derive(Serialize, Deserialize)]
pub(crate) struct Surnames {
    letters: Vocab,
    languages: Vec<String>,
}

/// A name, and its language if it is known.
pub(crate) struct Surname {
    text: String,
    language: Option<String>,
}

fn surnames(names: languages::Names) -> Vec<Surname> {
    let languages::Names { languages, names } = names;
    let known = |name: languages::Name| Surname {
        language: languages.get(name.language as usize).cloned(),
        text: name.text,
    };
    names.into_iter().map(known).collect()
}

impl Task for Surnames {
    type Item = Surname;
    type Model = Names;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let data: Letters = sizes.read(Letters::generate)?;
        let model = Names::new(m, Letters::CHARACTERS as usize, sizes.hidden, Letters::CLASSES as usize);
        opened(model, data.chars.into_iter().zip(data.labels).collect())
    }

    fn read(folder: &Path) -> Result<Published<Surname>, DataError> {
        Ok(Published::whole(surnames(languages::read(folder)?), 200))
    }

    fn generate(seed: u64, count: usize) -> Vec<Surname> {
        surnames(generate::surnames::names(seed, count, generate::surnames::LENGTHS))
    }

    fn parse(input: Input<'_>) -> Result<Vec<Surname>, DataError> {
        let texts = input.file("one name per line", languages::parse_inputs)?;
        Ok(texts.into_iter().map(|text| Surname { text, language: None }).collect())
    }

    fn learn(parts: &Parts<Surname>) -> Self {
        let letters = Vocab::build_chars(parts.train.iter().map(|name| name.text.as_str()), 1);
        let mut languages: Vec<String> = parts.all().filter_map(|name| name.language.clone()).collect();
        languages.sort_unstable();
        languages.dedup();
        Surnames { letters, languages }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Names {
        Names::new(m, self.letters.size(), widths.hidden, self.languages.len().max(1))
    }

    fn number(&self, item: &Surname) -> Result<<Names as crate::Model>::Instance, String> {
        let language = match &item.language {
            None => 0,
            Some(language) => self.languages.iter().position(|known| known == language).ok_or_else(|| {
                format!("the model has no language {language}; it knows {}", self.languages.join(", "))
            })?,
        };
        Ok((self.letters.char_ids(&item.text), language as u32))
    }

    fn count_unknown(&self, item: &Surname, unknown: &mut Unknown) {
        for (letter, id) in item.text.chars().zip(self.letters.char_ids(&item.text)) {
            unknown.count("letters", id, &letter.to_string());
        }
    }

    fn size(item: &Surname) -> usize {
        item.text.chars().count()
    }

    fn predict(
        &self,
        model: Names,
        session: &mut Session,
        items: &[Surname],
    ) -> Result<Vec<Answer>, PredictError> {
        let language = |class: usize| self.languages.get(class).cloned().unwrap_or_default();
        answered(self, model, session, items, |item, rows| {
            classified("name", &item.text, rows.first(), language)
        })
    }
}

/// Reads trees with a sentiment at every node.
pub(super) fn read_trees(folder: &Path) -> Result<Published<sst::Tree>, DataError> {
    Published::read(folder, ".txt", 100, sst::read)
}

/// Generates trees with a sentiment at every node.
pub(super) fn generate_trees(seed: u64, count: usize) -> Vec<sst::Tree> {
    generate::sentiment::trees(seed, count, generate::sentiment::LENGTHS)
}

/// Reads the trees of a file. Their nodes may lack labels.
pub(super) fn parse_trees(input: Input<'_>) -> Result<Vec<sst::Tree>, DataError> {
    input.file("trees", sst::parse_inputs)
}

/// Counts the words of the training trees.
pub(super) fn words_of(parts: &Parts<sst::Tree>) -> Vocab {
    Vocab::build(parts.train.iter().flat_map(|tree| tree.tree.leaves()).map(String::as_str), KNOWN)
}

fn sentiment(tree: &sst::Tree, rows: &[&autobatch::Row]) -> Answer {
    let name = |class: usize| SENTIMENTS.get(class).copied().unwrap_or_default().to_owned();
    classified("sentence", &joined(tree.tree.leaves()), rows.first(), name)
}

/// The sentiment of a sentence, read word by word.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sentences {
    words: Vocab,
}

impl Task for Sentences {
    type Item = sst::Tree;
    type Model = Acceptor;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let data: Sequences = sizes.read(Sequences::generate)?;
        let classes = Sequences::CLASSES as usize;
        let model = Acceptor::new(m, data.word_rows(), sizes.embedding, sizes.hidden, classes);
        opened(model, data.words.into_iter().zip(data.labels).collect())
    }

    fn read(folder: &Path) -> Result<Published<sst::Tree>, DataError> {
        read_trees(folder)
    }

    fn generate(seed: u64, count: usize) -> Vec<sst::Tree> {
        generate_trees(seed, count)
    }

    fn parse(input: Input<'_>) -> Result<Vec<sst::Tree>, DataError> {
        input.file("sentences", sst::parse_sentences)
    }

    fn learn(parts: &Parts<sst::Tree>) -> Self {
        Sentences { words: words_of(parts) }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Acceptor {
        Acceptor::new(m, self.words.size(), widths.embedding, widths.hidden, SENTIMENTS.len())
    }

    fn number(&self, tree: &sst::Tree) -> Result<<Acceptor as crate::Model>::Instance, String> {
        let words = tree.tree.leaves().iter().map(|word| self.words.id(word)).collect();
        Ok((words, u32::from(tree.label())))
    }

    fn count_unknown(&self, tree: &sst::Tree, unknown: &mut Unknown) {
        tree.tree.leaves().iter().for_each(|word| unknown.count("words", self.words.id(word), word));
    }

    fn size(tree: &sst::Tree) -> usize {
        tree.tree.leaves().len()
    }

    fn predict(
        &self,
        model: Acceptor,
        session: &mut Session,
        items: &[sst::Tree],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, sentiment)
    }
}

/// The sentiment of a sentence, read along its parse.
#[derive(Serialize, Deserialize)]
pub(crate) struct Parses {
    words: Vocab,
}

impl Task for Parses {
    type Item = sst::Tree;
    type Model = TreeRnnClassifier;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let trees: Trees = sizes.read(|seed, count| Trees::generate(seed, count, 20.0, Trees::WORDS))?;
        let model = TreeRnnClassifier::new(m, trees.word_rows(), sizes.hidden, Trees::CLASSES as usize);
        opened(model, trees.instances().map(|(tree, class)| (tree.clone(), class)).collect())
    }

    fn read(folder: &Path) -> Result<Published<sst::Tree>, DataError> {
        read_trees(folder)
    }

    fn generate(seed: u64, count: usize) -> Vec<sst::Tree> {
        generate_trees(seed, count)
    }

    fn parse(input: Input<'_>) -> Result<Vec<sst::Tree>, DataError> {
        parse_trees(input)
    }

    fn learn(parts: &Parts<sst::Tree>) -> Self {
        Parses { words: words_of(parts) }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> TreeRnnClassifier {
        TreeRnnClassifier::new(m, self.words.size(), widths.hidden, SENTIMENTS.len())
    }

    fn number(&self, tree: &sst::Tree) -> Result<<TreeRnnClassifier as crate::Model>::Instance, String> {
        Ok((tree.tree.map(|word| self.words.id(word)), u32::from(tree.label())))
    }

    fn count_unknown(&self, tree: &sst::Tree, unknown: &mut Unknown) {
        tree.tree.leaves().iter().for_each(|word| unknown.count("words", self.words.id(word), word));
    }

    fn size(tree: &sst::Tree) -> usize {
        tree.tree.leaves().len()
    }

    fn predict(
        &self,
        model: TreeRnnClassifier,
        session: &mut Session,
        items: &[sst::Tree],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, sentiment)
    }
}
