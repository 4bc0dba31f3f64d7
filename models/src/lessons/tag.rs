//! Tasks with one tag per word or character.

use super::answer::{Answer, PredictError, Unknown, answered};
use super::chunks::Units;
use super::parts::{Parts, Published};
use super::task::{Input, Task, Widths};
use crate::Model;
use crate::catalogue::{Opened, Sizes, generated, opened};
use crate::char_tagger::{Alphabet, CharTagger, Word};
use crate::crf_tagger::CrfTagger;
use crate::data::generate::{lattices, tagged};
use crate::data::peers::Tagged;
use crate::data::vocab::Vocab;
use crate::data::{DataError, lattice, wikiner};
use crate::lattice_tagger::{Counts, Lattice, LatticeTagger};
use crate::tagger::{Tagger, Widths as TaggerWidths};
use crate::transformer::Transformer;
use autobatch::prelude::ModuleBuilder;
use autobatch::{Row, Session};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::marker::PhantomData;
use std::path::Path;

/// The minimum frequency of words with their own vector.
const KNOWN: u64 = 2;
/// The minimum frequency of words that a spelling model does not spell.
const FREQUENT: u64 = 5;
/// The benchmark of a spelling model spells a word unless it occurs more often than this in a thousand other sentences of
/// the language.
const RARE: u64 = 5;
/// The width of the layer before the tags.
const HEAD: usize = 32;
/// The width of a letter's vector.
const LETTER: usize = 20;

fn read_sentences(folder: &Path) -> Result<Published<wikiner::Sentence>, DataError> {
    Published::read(folder, ".txt", 100, wikiner::read)
}

fn generate_sentences(seed: u64, count: usize) -> Vec<wikiner::Sentence> {
    tagged::sentences(seed, count, tagged::LENGTHS)
}

fn parse_sentences(input: Input<'_>) -> Result<Vec<wikiner::Sentence>, DataError> {
    input.file("sentences", wikiner::parse_words)
}

fn words_of(parts: &Parts<wikiner::Sentence>) -> impl Iterator<Item = &str> {
    parts.train.iter().flat_map(|sentence| &sentence.tokens).map(|token| token.word.as_str())
}

fn tags(sentence: &wikiner::Sentence) -> Vec<u32> {
    sentence.tokens.iter().map(|token| token.tag.index()).collect()
}

fn tagger_widths(widths: Widths) -> TaggerWidths {
    TaggerWidths { embedding: widths.embedding, hidden: widths.hidden, head: HEAD }
}

/// The sentence with the best tag of each word.
fn tagged_answer(sentence: &wikiner::Sentence, rows: &[&Row]) -> Answer {
    let mut answer = sentence.clone();
    for (token, row) in answer.tokens.iter_mut().zip(rows) {
        token.tag = wikiner::Tag::from_index(row.argmax() as u32).unwrap_or(token.tag);
    }
    let words: Vec<&str> = answer.tokens.iter().map(|token| token.word.as_str()).collect();
    let tags: Vec<String> = answer.tokens.iter().map(|token| token.tag.to_string()).collect();
    let json = json!({ "words": words, "tags": tags });
    Answer { text: answer.to_string(), json }
}

/// A model of numbered words that gives each of them a tag.
pub(crate) trait WordTagger: Model<Instance = (Vec<u32>, Vec<u32>)> + Clone + 'static {
    /// Declares the model for these numbers of words and tags.
    fn declare(m: &mut ModuleBuilder, words: usize, tags: usize, widths: Widths) -> Self;
}

impl WordTagger for Tagger {
    fn declare(m: &mut ModuleBuilder, words: usize, tags: usize, widths: Widths) -> Self {
        Tagger::new(m, words, tags, tagger_widths(widths))
    }
}

impl WordTagger for CrfTagger {
    fn declare(m: &mut ModuleBuilder, words: usize, tags: usize, widths: Widths) -> Self {
        CrfTagger::new(m, words, tags, tagger_widths(widths))
    }
}

impl WordTagger for Transformer {
    fn declare(m: &mut ModuleBuilder, words: usize, tags: usize, widths: Widths) -> Self {
        Transformer::new(m, words, tags, widths.hidden)
    }
}

/// Named entities, with a vector for each frequent word.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Words<M> {
    words: Vocab,
    #[serde(skip)]
    model: PhantomData<M>,
}

impl<M: WordTagger> Task for Words<M> {
    type Item = wikiner::Sentence;
    type Model = M;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let data: Tagged = sizes.read(|seed, count| Tagged::generate(seed, count, sizes.options.same))?;
        let model = M::declare(m, data.word_rows(), data.tag_count(), sizes.widths());
        opened(model, data.words.into_iter().zip(data.tags).collect())
    }

    fn read(folder: &Path) -> Result<Published<wikiner::Sentence>, DataError> {
        read_sentences(folder)
    }

    fn generate(seed: u64, count: usize) -> Vec<wikiner::Sentence> {
        generate_sentences(seed, count)
    }

    fn parse(input: Input<'_>) -> Result<Vec<wikiner::Sentence>, DataError> {
        parse_sentences(input)
    }

    fn learn(parts: &Parts<wikiner::Sentence>) -> Self {
        Words { words: Vocab::build(words_of(parts), KNOWN), model: PhantomData }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> M {
        M::declare(m, self.words.size(), wikiner::Tag::COUNT as usize, widths)
    }

    fn number(&self, sentence: &wikiner::Sentence) -> Result<M::Instance, String> {
        Ok((sentence.tokens.iter().map(|token| self.words.id(&token.word)).collect(), tags(sentence)))
    }

    fn count_unknown(&self, sentence: &wikiner::Sentence, unknown: &mut Unknown) {
        let tokens = sentence.tokens.iter();
        tokens.for_each(|token| unknown.count("words", self.words.id(&token.word), &token.word));
    }

    fn size(sentence: &wikiner::Sentence) -> usize {
        sentence.tokens.len()
    }

    fn predict(
        &self,
        model: M,
        session: &mut Session,
        items: &[wikiner::Sentence],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, tagged_answer)
    }
}

/// Named entities, with a vector for each frequent word and the letters of the others.
#[derive(Serialize, Deserialize)]
pub(crate) struct Spelled {
    words: Vocab,
    letters: Vocab,
}

impl Task for Spelled {
    type Item = wikiner::Sentence;
    type Model = CharTagger;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let others = tagged::sentences(sizes.options.seed.wrapping_add(1), 1000, tagged::LENGTHS);
        let tokens = others.iter().flat_map(|sentence| &sentence.tokens);
        let words: Vec<&str> = tokens.map(|token| token.word.as_str()).collect();
        let task = Spelled {
            words: Vocab::build(words.iter().copied(), RARE + 1),
            letters: Vocab::build_chars(words.iter().copied(), 1),
        };
        generated(&task, m, sizes)
    }

    fn read(folder: &Path) -> Result<Published<wikiner::Sentence>, DataError> {
        read_sentences(folder)
    }

    fn generate(seed: u64, count: usize) -> Vec<wikiner::Sentence> {
        generate_sentences(seed, count)
    }

    fn parse(input: Input<'_>) -> Result<Vec<wikiner::Sentence>, DataError> {
        parse_sentences(input)
    }

    fn learn(parts: &Parts<wikiner::Sentence>) -> Self {
        let words = Vocab::build(words_of(parts), FREQUENT);
        Spelled { words, letters: Vocab::build_chars(words_of(parts), 1) }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> CharTagger {
        let alphabet = Alphabet { words: self.words.size(), letters: self.letters.size(), width: LETTER };
        CharTagger::new(m, alphabet, wikiner::Tag::COUNT as usize, tagger_widths(widths))
    }

    fn number(&self, sentence: &wikiner::Sentence) -> Result<<CharTagger as Model>::Instance, String> {
        let word = |token: &wikiner::Token| match self.words.id(&token.word) {
            0 => Word::Spelled(self.letters.char_ids(&token.word)),
            known => Word::Known(known),
        };
        Ok((sentence.tokens.iter().map(word).collect(), tags(sentence)))
    }

    fn count_unknown(&self, sentence: &wikiner::Sentence, unknown: &mut Unknown) {
        // An unknown word is spelled, so only its letters may be unknown.
        for letter in sentence.tokens.iter().flat_map(|token| token.word.chars()) {
            let letter = letter.to_string();
            let id = self.letters.char_ids(&letter).first().copied().unwrap_or(0);
            unknown.count("letters", id, &letter);
        }
    }

    fn size(sentence: &wikiner::Sentence) -> usize {
        sentence.tokens.len()
    }

    fn predict(
        &self,
        model: CharTagger,
        session: &mut Session,
        items: &[wikiner::Sentence],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, tagged_answer)
    }
}

/// Words and parts of speech of sentences without spaces.
#[derive(Serialize, Deserialize)]
pub(crate) struct Lattices {
    chars: Vocab,
    words: Vocab,
    tags: Vocab,
}

impl Lattices {
    /// Numbers characters and words that occur this often, and all tags.
    fn of(sentences: &[lattice::Sentence], least: u64) -> Self {
        let texts: Vec<String> = sentences.iter().map(|sentence| sentence.chars.iter().collect()).collect();
        let spans = |sentence: &lattice::Sentence| -> Vec<String> {
            sentence.spans.iter().map(|&span| sentence.text(span)).collect()
        };
        let found: Vec<String> = sentences.iter().flat_map(spans).collect();
        let labels = sentences.iter().flat_map(|sentence| &sentence.labels);
        let labels: Vec<String> = labels.map(ToString::to_string).collect();
        Lattices {
            chars: Vocab::build_chars(texts.iter().map(String::as_str), least),
            words: Vocab::build(found.iter().map(String::as_str), least),
            tags: Vocab::build(labels.iter().map(String::as_str), 1),
        }
    }
}

impl Task for Lattices {
    type Item = lattice::Sentence;
    type Model = LatticeTagger;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let sentences = Self::generate(sizes.options.seed, sizes.count);
        generated(&Lattices::of(&sentences, 1), m, sizes)
    }

    fn read(folder: &Path) -> Result<Published<lattice::Sentence>, DataError> {
        Published::read(folder, ".txt", 200, lattice::read)
    }

    fn generate(seed: u64, count: usize) -> Vec<lattice::Sentence> {
        lattices::sentences(seed, count, lattices::LENGTHS)
    }

    const UNITS: Units = Units::Lattices;

    fn parse(input: Input<'_>) -> Result<Vec<lattice::Sentence>, DataError> {
        input.file("sentences with dictionary words", lattice::parse_inputs)
    }

    fn learn(parts: &Parts<lattice::Sentence>) -> Self {
        Lattices::of(&parts.train, KNOWN)
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> LatticeTagger {
        let counts = Counts { chars: self.chars.size(), words: self.words.size(), tags: self.tags.size() };
        LatticeTagger::new(m, counts, widths.embedding, widths.hidden)
    }

    fn number(&self, sentence: &lattice::Sentence) -> Result<Lattice, String> {
        // Words of one character add no information to the character.
        let longer = sentence.spans.iter().filter(|span| span.end - span.start > 1);
        let word = |span: &lattice::Span| {
            (span.start as usize, span.end as usize - 1, self.words.id(&sentence.text(*span)))
        };
        let text: String = sentence.chars.iter().collect();
        let labels = sentence.labels.iter().map(|label| self.tags.id(&label.to_string()));
        Ok(Lattice {
            chars: self.chars.char_ids(&text),
            words: longer.map(word).collect(),
            tags: labels.collect(),
        })
    }

    fn count_unknown(&self, sentence: &lattice::Sentence, unknown: &mut Unknown) {
        let text: String = sentence.chars.iter().collect();
        for (letter, id) in sentence.chars.iter().zip(self.chars.char_ids(&text)) {
            unknown.count("characters", id, &letter.to_string());
        }
    }

    fn size(sentence: &lattice::Sentence) -> usize {
        sentence.chars.len()
    }

    fn predict(
        &self,
        model: LatticeTagger,
        session: &mut Session,
        items: &[lattice::Sentence],
    ) -> Result<Vec<Answer>, PredictError> {
        answered(self, model, session, items, |sentence, rows| {
            let tags: Vec<&str> =
                rows.iter().map(|row| self.tags.word(row.argmax() as u32).unwrap_or_default()).collect();
            let pairs: Vec<String> =
                sentence.chars.iter().zip(&tags).map(|(letter, tag)| format!("{letter}|{tag}")).collect();
            let json = json!({ "characters": sentence.chars, "tags": tags });
            Answer { text: pairs.join(" "), json }
        })
    }
}
