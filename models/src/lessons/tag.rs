//! Lessons with one tag per word or character.

use super::{Course, Parts, Taught};
use crate::catalogue::OpenError;
use crate::char_tagger::{Alphabet, CharTagger, Word};
use crate::data::generate::{lattices, tagged};
use crate::data::vocab::Vocab;
use crate::data::{lattice as lattices_of, wikiner};
use crate::lattice_tagger::{Counts, Lattice, LatticeTagger};
use crate::tagger::{Tagger, Widths};

/// The minimum frequency of words with their own vector.
const KNOWN: u64 = 2;
/// The minimum frequency of words that a spelling model does not spell.
const FREQUENT: u64 = 5;
/// The width of the layer before the tags.
const HEAD: usize = 32;
/// The width of a letter's vector.
const LETTER: usize = 20;

type Opened = Result<Taught, OpenError>;

fn sentences(course: &Course<'_>) -> Result<Parts<wikiner::Sentence>, OpenError> {
    course.parts(
        |folder| {
            let [train, valid] = ["train.txt", "valid.txt"].map(|file| wikiner::read(folder.join(file)));
            Ok(Parts { train: train?, valid: valid? })
        },
        |seed, count| tagged::sentences(seed, count, tagged::LENGTHS),
    )
}

fn words_of(parts: &Parts<wikiner::Sentence>) -> Vec<&str> {
    parts.train.iter().flat_map(|s| &s.tokens).map(|token| token.word.as_str()).collect()
}

fn tags(sentence: &wikiner::Sentence) -> Vec<u32> {
    sentence.tokens.iter().map(|token| token.tag.index()).collect()
}

fn widths(course: &Course<'_>) -> Widths {
    Widths { embedding: course.embedding, hidden: course.hidden, head: HEAD }
}

pub(super) fn words(course: &mut Course<'_>) -> Opened {
    let parts = sentences(course)?;
    let words = Vocab::build(words_of(&parts), KNOWN);
    let widths = widths(course);
    let model = Tagger::new(course.m, words.size(), wikiner::Tag::COUNT as usize, widths);
    let number = |sentence: &wikiner::Sentence| {
        (sentence.tokens.iter().map(|token| words.id(&token.word)).collect(), tags(sentence))
    };
    Ok(parts.taught(model, number, |sentence| sentence.tokens.len()))
}

pub(super) fn spelled(course: &mut Course<'_>) -> Opened {
    let parts = sentences(course)?;
    let read = words_of(&parts);
    let words = Vocab::build(read.iter().copied(), FREQUENT);
    let letters = Vocab::build_chars(read.iter().copied(), 1);
    let widths = widths(course);
    let alphabet = Alphabet { words: words.size(), letters: letters.size(), width: LETTER };
    let model = CharTagger::new(course.m, alphabet, wikiner::Tag::COUNT as usize, widths);
    let word = |token: &wikiner::Token| match words.id(&token.word) {
        0 => Word::Spelled(letters.char_ids(&token.word)),
        known => Word::Known(known),
    };
    let number = |sentence: &wikiner::Sentence| (sentence.tokens.iter().map(word).collect(), tags(sentence));
    Ok(parts.taught(model, number, |sentence| sentence.tokens.len()))
}

pub(super) fn lattice(course: &mut Course<'_>) -> Opened {
    let parts = course.parts(
        |folder| Ok(Parts::split(lattices_of::read(folder.join("train.txt"))?, 200)),
        |seed, count| lattices::sentences(seed, count, lattices::LENGTHS),
    )?;
    let spell = |sentence: &lattices_of::Sentence| -> String { sentence.chars.iter().collect() };
    let texts: Vec<String> = parts.train.iter().map(spell).collect();
    let chars = Vocab::build_chars(texts.iter().map(String::as_str), KNOWN);
    let spans =
        |s: &lattices_of::Sentence| -> Vec<String> { s.spans.iter().map(|&span| s.text(span)).collect() };
    let found: Vec<String> = parts.train.iter().flat_map(spans).collect();
    let words = Vocab::build(found.iter().map(String::as_str), KNOWN);
    let labels: Vec<String> = parts.train.iter().flat_map(|s| &s.labels).map(ToString::to_string).collect();
    let tags = Vocab::build(labels.iter().map(String::as_str), 1);
    let counts = Counts { chars: chars.size(), words: words.size(), tags: tags.size() };
    let model = LatticeTagger::new(course.m, counts, course.embedding, course.hidden);
    let number = |sentence: &lattices_of::Sentence| {
        // Words of one character add no information to the character.
        let longer = sentence.spans.iter().filter(|span| span.end - span.start > 1);
        let word = |span: &lattices_of::Span| {
            (span.start as usize, span.end as usize - 1, words.id(&sentence.text(*span)))
        };
        let labels = sentence.labels.iter().map(|label| tags.id(&label.to_string()));
        Lattice {
            chars: chars.char_ids(&spell(sentence)),
            words: longer.map(word).collect(),
            tags: labels.collect(),
        }
    };
    Ok(parts.taught(model, number, |sentence| sentence.chars.len()))
}
