//! Lessons with several answers or several trees per instance: pairs, parses, labelled nodes.

use super::classify::{sentiments, words_of};
use super::{Course, Parts, Taught};
use crate::catalogue::OpenError;
use crate::data::dependency::{Heads, Transition};
use crate::data::generate::{similarity as pairs, treebank};
use crate::data::peers::Dependencies;
use crate::data::vocab::Vocab;
use crate::data::{conllu, sick, sst};
use crate::parser::greedy::Parsing;
use crate::parser::{self, Parser};
use crate::sentiment::Sentiment;
use crate::similarity::{self as similarities, Similarity};

/// The minimum frequency of words with their own vector.
const KNOWN: u64 = 2;
/// The width of the comparison of two sentences.
const COMPARISON: usize = 50;
/// The width of the vector of an action.
const ACTION: usize = 20;

type Opened = Result<Taught, OpenError>;

pub(super) fn similarity(course: &mut Course<'_>) -> Opened {
    let parts = course.parts(
        |folder| {
            let [train, valid] = ["train", "valid"].map(|part| sick::read(folder.join(part)));
            Ok(Parts { train: train?, valid: valid? })
        },
        |seed, count| pairs::pairs(seed, count, pairs::LENGTHS),
    )?;
    let tokens = |pair: &'_ sick::Pair| -> Vec<String> { [&*pair.a.tokens, &*pair.b.tokens].concat() };
    let read: Vec<String> = parts.train.iter().flat_map(tokens).map(|word| word.to_lowercase()).collect();
    let words = Vocab::build(read.iter().map(String::as_str), KNOWN);
    let widths =
        similarities::Widths { embedding: course.embedding, memory: course.hidden, hidden: COMPARISON };
    let model = Similarity::new(course.m, words.size(), widths);
    let number = |pair: &sick::Pair| {
        let [a, b] = [&pair.a, &pair.b].map(|sentence| from_root(sentence, &words));
        (a, b, f64::from(pair.similarity))
    };
    Ok(parts.taught(model, number, |pair| pair.a.tokens.len() + pair.b.tokens.len()))
}

/// Returns the sentence as a tree in which every word follows its head, as the model requires.
fn from_root(sentence: &sick::Sentence, words: &Vocab) -> Dependencies {
    let order = sentence.heads.top_down();
    let mut place = vec![-1; order.len() + 1];
    for (number, &word) in (0_i64..).zip(&order) {
        place[word as usize] = number;
    }
    let head = |&word: &u32| match sentence.heads.heads()[word as usize - 1] {
        0 => -1,
        head => place[head as usize],
    };
    let id = |&word: &u32| words.id(&sentence.tokens[word as usize - 1].to_lowercase());
    Dependencies { parent: order.iter().map(head).collect(), words: order.iter().map(id).collect() }
}

pub(super) fn parser(course: &mut Course<'_>) -> Opened {
    let mut parts = course.parts(
        |folder| {
            let [train, valid] = ["train.conllu", "valid.conllu"].map(|file| conllu::read(folder.join(file)));
            Ok(Parts { train: train?, valid: valid? })
        },
        |seed, count| treebank::sentences(seed, count, treebank::LENGTHS),
    )?;
    // The arc-standard system derives projective trees only.
    parts.train.retain(|sentence| sentence.heads.is_projective());
    parts.valid.retain(|sentence| sentence.heads.is_projective());
    let read: Vec<String> = parts
        .train
        .iter()
        .flat_map(|sentence| &sentence.words)
        .map(|word| word.form.to_lowercase())
        .collect();
    let words = Vocab::build(read.iter().map(String::as_str), KNOWN);
    let widths = parser::Widths { embedding: course.embedding, action: ACTION, hidden: course.hidden };
    let model = Parser::new(course.m, words.size(), widths);
    let number = |sentence: &conllu::Sentence| {
        let forms = sentence.words.iter().map(|word| words.id(&word.form.to_lowercase()));
        (forms.collect(), actions(&sentence.heads))
    };
    let to_parse = |sentence: &conllu::Sentence| (number(sentence).0, sentence.heads.heads().to_vec());
    let sentences = parts.valid.iter().map(to_parse).collect();
    let taught = parts.taught(model, number, |sentence| sentence.words.len());
    Ok(Taught { parsing: Some(Parsing { parser: model, sentences }), ..taught })
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

pub(super) fn sentiment(course: &mut Course<'_>) -> Opened {
    let parts = sentiments(course)?;
    let words = words_of(&parts);
    let model = Sentiment::new(course.m, words.size(), course.hidden);
    let number = |tree: &sst::Tree| {
        let labels = tree.labels.iter().map(|&label| u32::from(label)).collect();
        (tree.tree.map(|word| words.id(word)), labels)
    };
    Ok(parts.taught(model, number, |tree| tree.tree.leaves().len()))
}
