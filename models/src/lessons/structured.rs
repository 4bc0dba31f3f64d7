//! Tasks with several answers or several trees per instance: pairs, parses, labelled nodes.

use super::answer::{Answer, PredictError, Unknown, answered};
use super::chunks::Units;
use super::classify::{SENTIMENTS, generate_trees, joined, parse_trees, read_trees, words_of};
use super::parts::{Parts, Published};
use super::task::{Input, Task, Widths};
use crate::catalogue::{Opened, Sizes, generated, opened};
use crate::data::dependency::{Heads, Transition};
use crate::data::generate::{similarity as pairs, treebank};
use crate::data::peers::{self, Dependencies, Parses};
use crate::data::vocab::Vocab;
use crate::data::{DataError, conllu, sick, sst};
use crate::parser::greedy::{self, Parsing};
use crate::parser::{self, Parser};
use crate::sentiment::Sentiment;
use crate::similarity::{self as similarities, Similarity};
use autobatch::Session;
use autobatch::prelude::ModuleBuilder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// The minimum frequency of words with their own vector.
const KNOWN: u64 = 2;
/// The width of the comparison of two sentences.
const COMPARISON: usize = 50;
/// The width of the vector of an action.
const ACTION: usize = 20;

/// The similarity of two sentences.
#[derive(Serialize, Deserialize)]
pub(crate) struct Pairs {
    words: Vocab,
}

impl Pairs {
    /// Returns the sentence as a tree in which every word follows its head, as the model requires.
    fn rooted(&self, sentence: &sick::Sentence) -> Dependencies {
        let order = sentence.heads.top_down();
        let mut place = vec![-1; order.len() + 1];
        for (number, &word) in (0_i64..).zip(&order) {
            place[word as usize] = number;
        }
        let head = |&word: &u32| match sentence.heads.heads()[word as usize - 1] {
            0 => -1,
            head => place[head as usize],
        };
        let id = |&word: &u32| self.words.id(&sentence.tokens[word as usize - 1].to_lowercase());
        Dependencies { parent: order.iter().map(head).collect(), words: order.iter().map(id).collect() }
    }
}

impl Task for Pairs {
    type Item = sick::Pair;
    type Model = Similarity;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let pairs: peers::Pairs = sizes.read(peers::Pairs::generate)?;
        let widths =
            similarities::Widths { embedding: sizes.embedding, memory: sizes.hidden, hidden: COMPARISON };
        opened(Similarity::new(m, pairs.word_rows(), widths), pairs.pairs)
    }

    fn read(folder: &Path) -> Result<Published<sick::Pair>, DataError> {
        Published::read(folder, "", 100, sick::read)
    }

    fn generate(seed: u64, count: usize) -> Vec<sick::Pair> {
        pairs::pairs(seed, count, pairs::LENGTHS)
    }

    const UNITS: Units = Units::Whole;

    fn parse(input: Input<'_>) -> Result<Vec<sick::Pair>, DataError> {
        input.folder(&joined(&sick::FILES), sick::read_inputs)
    }

    fn learn(parts: &Parts<sick::Pair>) -> Self {
        let tokens = |pair: &'_ sick::Pair| -> Vec<String> { [&*pair.a.tokens, &*pair.b.tokens].concat() };
        let read: Vec<String> = parts.train.iter().flat_map(tokens).map(|word| word.to_lowercase()).collect();
        Pairs { words: Vocab::build(read.iter().map(String::as_str), KNOWN) }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Similarity {
        let Widths { hidden, embedding } = widths;
        let widths = similarities::Widths { embedding, memory: hidden, hidden: COMPARISON };
        Similarity::new(m, self.words.size(), widths)
    }

    fn number(&self, pair: &sick::Pair) -> Result<<Similarity as crate::Model>::Instance, String> {
        Ok((self.rooted(&pair.a), self.rooted(&pair.b), f64::from(pair.similarity)))
    }

    fn count_unknown(&self, pair: &sick::Pair, unknown: &mut Unknown) {
        for word in pair.a.tokens.iter().chain(&pair.b.tokens) {
            unknown.count("words", self.words.id(&word.to_lowercase()), word);
        }
    }

    fn size(pair: &sick::Pair) -> usize {
        pair.a.tokens.len() + pair.b.tokens.len()
    }

    fn predict(
        &self,
        model: Similarity,
        session: &mut Session,
        items: &[sick::Pair],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, |pair, rows| {
            let rating = rows.first().map_or(f64::NAN, |row| similarities::expected_rating(row));
            let (a, b) = (pair.a.tokens.join(" "), pair.b.tokens.join(" "));
            Answer {
                text: format!("{rating:.2}\t{a}\t{b}"),
                json: json!({ "a": a, "b": b, "answer": rating }),
            }
        })
    }
}

/// Dependency parses.
#[derive(Serialize, Deserialize)]
pub(crate) struct Treebank {
    words: Vocab,
}

impl Treebank {
    fn words(&self, sentence: &conllu::Sentence) -> Vec<u32> {
        sentence.words.iter().map(|word| self.words.id(&word.form.to_lowercase())).collect()
    }
}

impl Task for Treebank {
    type Item = conllu::Sentence;
    type Model = Parser;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let data: Parses = sizes.read(Parses::generate)?;
        let widths = parser::Widths { embedding: sizes.embedding, action: ACTION, hidden: sizes.hidden };
        let model = Parser::new(m, Parses::WORDS as usize, widths);
        opened(model, data.words.into_iter().zip(data.actions).collect())
    }

    fn read(folder: &Path) -> Result<Published<conllu::Sentence>, DataError> {
        let mut published = Published::read(folder, ".conllu", 100, conllu::read)?;
        // The arc-standard system derives projective trees only.
        published.retain(|sentence| sentence.heads.is_projective());
        Ok(published)
    }

    fn generate(seed: u64, count: usize) -> Vec<conllu::Sentence> {
        treebank::sentences(seed, count, treebank::LENGTHS)
    }

    const UNITS: Units = Units::Blocks;

    fn parse(input: Input<'_>) -> Result<Vec<conllu::Sentence>, DataError> {
        input.file("sentences in CoNLL-U", conllu::parse_inputs)
    }

    fn learn(parts: &Parts<conllu::Sentence>) -> Self {
        let words = parts.train.iter().flat_map(|sentence| &sentence.words);
        let read: Vec<String> = words.map(|word| word.form.to_lowercase()).collect();
        Treebank { words: Vocab::build(read.iter().map(String::as_str), KNOWN) }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Parser {
        let Widths { hidden, embedding } = widths;
        Parser::new(m, self.words.size(), parser::Widths { embedding, action: ACTION, hidden })
    }

    fn number(&self, sentence: &conllu::Sentence) -> Result<<Parser as crate::Model>::Instance, String> {
        Ok((self.words(sentence), actions(&sentence.heads)))
    }

    fn count_unknown(&self, sentence: &conllu::Sentence, unknown: &mut Unknown) {
        for (word, id) in sentence.words.iter().zip(self.words(sentence)) {
            unknown.count("words", id, &word.form);
        }
    }

    fn size(sentence: &conllu::Sentence) -> usize {
        sentence.words.len()
    }

    fn parsing(&self, model: Parser, items: &[conllu::Sentence]) -> Option<Parsing> {
        let to_parse = |sentence: &conllu::Sentence| (self.words(sentence), sentence.heads.heads().to_vec());
        Some(Parsing { parser: model, sentences: items.iter().map(to_parse).collect() })
    }

    fn predict(
        &self,
        model: Parser,
        session: &mut Session,
        items: &[conllu::Sentence],
    ) -> Result<Vec<Answer>, PredictError> {
        let words: Vec<Vec<u32>> = items.iter().map(|sentence| self.words(sentence)).collect();
        let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
        let found = greedy::heads(session, &model, &words)?;
        Ok(items.iter().zip(found).map(|(sentence, heads)| parsed(sentence, heads)).collect())
    }
}

/// The sentence in CoNLL-U with these heads and without relations.
fn parsed(sentence: &conllu::Sentence, heads: Option<Heads>) -> Answer {
    let mut answer = sentence.clone();
    answer.words.iter_mut().for_each(|word| word.relation = "_".to_owned());
    if let Some(heads) = heads {
        answer.heads = heads;
    }
    let forms: Vec<&str> = answer.words.iter().map(|word| word.form.as_str()).collect();
    let json = json!({ "words": forms, "heads": answer.heads.heads() });
    Answer { text: answer.to_string(), json }
}

/// Returns the parser's actions that build a projective tree. A reduction names the side of the head.
fn actions(heads: &Heads) -> Vec<u32> {
    let action = |transition: &Transition| match transition {
        Transition::Shift => 0,
        Transition::RightArc => 1,
        Transition::LeftArc => 2,
    };
    heads.transitions().unwrap_or_default().iter().map(action).collect()
}

/// The sentiment of every phrase.
#[derive(Serialize, Deserialize)]
pub(crate) struct Phrases {
    words: Vocab,
}

impl Task for Phrases {
    type Item = sst::Tree;
    type Model = Sentiment;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let trees = Self::generate(sizes.options.seed, sizes.count);
        let leaves = trees.iter().flat_map(|tree| tree.tree.leaves()).map(String::as_str);
        generated(&Phrases { words: Vocab::build(leaves, 1) }, m, sizes)
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
        Phrases { words: words_of(parts) }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Sentiment {
        Sentiment::new(m, self.words.size(), widths.hidden)
    }

    fn number(&self, tree: &sst::Tree) -> Result<<Sentiment as crate::Model>::Instance, String> {
        let labels = tree.labels.iter().map(|&label| u32::from(label)).collect();
        Ok((tree.tree.map(|word| self.words.id(word)), labels))
    }

    fn count_unknown(&self, tree: &sst::Tree, unknown: &mut Unknown) {
        tree.tree.leaves().iter().for_each(|word| unknown.count("words", self.words.id(word), word));
    }

    fn size(tree: &sst::Tree) -> usize {
        tree.tree.leaves().len()
    }

    fn predict(
        &self,
        model: Sentiment,
        session: &mut Session,
        items: &[sst::Tree],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, |tree, rows| {
            let labels = rows.iter().map(|row| row.argmax() as u8).collect();
            let answer = sst::Tree { tree: tree.tree.clone(), labels };
            let root = SENTIMENTS.get(usize::from(answer.label())).copied();
            let json = json!({
                "sentence": joined(answer.tree.leaves()), "answer": root, "labels": answer.labels,
            });
            Answer { text: answer.to_string(), json }
        })
    }
}
