//! Lessons with one class per instance: digits, expressions, names, sentences, trees.

use super::{Course, Parts, Taught};
use crate::acceptor::Acceptor;
use crate::catalogue::OpenError;
use crate::data::generate;
use crate::data::random::Sizes;
use crate::data::vocab::Vocab;
use crate::data::{idx, listops, names as languages, sst};
use crate::mnist::Mnist;
use crate::names::Names;
use crate::spinn::Spinn;
use crate::tree_rnn::TreeRnnClassifier;

/// The number of sentiment classes, from very negative to very positive.
const SENTIMENTS: usize = 5;
/// The minimum frequency of known words. Rarer words train the vector of the unknown word.
const KNOWN: u64 = 2;

type Opened = Result<Taught, OpenError>;

pub(super) fn digits(course: &mut Course<'_>) -> Opened {
    let pairs = |digits: idx::Labelled| -> Vec<(Vec<f32>, u32)> {
        let labels = digits.labels.iter().map(|&label| u32::from(label));
        (0..).map_while(|image| digits.images.floats(image)).zip(labels).collect()
    };
    let parts = course.parts(
        |folder| Ok(Parts::split(pairs(idx::read(folder)?), 200)),
        |seed, count| pairs(generate::digits::digits(seed, count)),
    )?;
    Ok(parts.taught(Mnist::new(course.m, course.hidden), Clone::clone, |_| 1))
}

pub(super) fn expressions(course: &mut Course<'_>) -> Opened {
    let parts = course.parts(
        |path| {
            let file = if path.is_dir() { path.join("d8.tsv") } else { path.to_owned() };
            Ok(Parts::split(listops::read(file)?, 100))
        },
        |seed, count| generate::expressions::expressions(seed, count, generate::expressions::Limits::D8),
    )?;
    let model = Spinn::new(course.m, listops::Token::COUNT as usize, course.hidden, 10);
    let number = |expression: &listops::Expression| {
        (expression.tree.map(|token| token.index()), u32::from(expression.answer))
    };
    Ok(parts.taught(model, number, |expression| expression.tree.leaves().len()))
}

pub(super) fn names(course: &mut Course<'_>) -> Opened {
    let texts = |names: languages::Names| -> Vec<(String, u32)> {
        names.names.into_iter().map(|name| (name.text, name.language)).collect()
    };
    // Names are short; the lengths follow the corpus.
    let lengths: Sizes = generate::surnames::LENGTHS;
    let parts = course.parts(
        |folder| Ok(Parts::split(texts(languages::read(folder)?), 200)),
        |seed, count| texts(generate::surnames::names(seed, count, lengths)),
    )?;
    let letters = Vocab::build_chars(parts.train.iter().map(|(text, _)| text.as_str()), 1);
    let all = parts.train.iter().chain(&parts.valid);
    let classes = all.map(|&(_, language)| language as usize + 1).max().unwrap_or(1);
    let model = Names::new(course.m, letters.size(), course.hidden, classes);
    let number = |(text, language): &(String, u32)| (letters.char_ids(text), *language);
    Ok(parts.taught(model, number, |(text, _)| text.chars().count()))
}

/// Returns trees with a sentiment at every node.
pub(super) fn sentiments(course: &Course<'_>) -> Result<Parts<sst::Tree>, OpenError> {
    course.parts(
        |folder| {
            let [train, valid] = ["train.txt", "valid.txt"].map(|file| sst::read(folder.join(file)));
            Ok(Parts { train: train?, valid: valid? })
        },
        |seed, count| generate::sentiment::trees(seed, count, generate::sentiment::LENGTHS),
    )
}

/// Counts the words of the training trees.
pub(super) fn words_of(parts: &Parts<sst::Tree>) -> Vocab {
    Vocab::build(parts.train.iter().flat_map(|tree| tree.tree.leaves()).map(String::as_str), KNOWN)
}

pub(super) fn sentences(course: &mut Course<'_>) -> Opened {
    let parts = sentiments(course)?;
    let words = words_of(&parts);
    let model = Acceptor::new(course.m, words.size(), course.embedding, course.hidden, SENTIMENTS);
    let number = |tree: &sst::Tree| {
        (tree.tree.leaves().iter().map(|word| words.id(word)).collect(), u32::from(tree.label()))
    };
    Ok(parts.taught(model, number, |tree| tree.tree.leaves().len()))
}

pub(super) fn trees(course: &mut Course<'_>) -> Opened {
    let parts = sentiments(course)?;
    let words = words_of(&parts);
    let model = TreeRnnClassifier::new(course.m, words.size(), course.hidden, SENTIMENTS);
    let number = |tree: &sst::Tree| (tree.tree.map(|word| words.id(word)), u32::from(tree.label()));
    Ok(parts.taught(model, number, |tree| tree.tree.leaves().len()))
}
