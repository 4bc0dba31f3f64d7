//! Sentences of characters with overlapping words from a dictionary.
//!
//! A word has one to four characters and one part of speech. The dictionary holds all words of two or more
//! characters. It also holds many pairs that straddle two words, so the spans overlap and nest as with real
//! dictionaries. A character occurs in many words, alone and joined, so a labeller gains from the lattice.

use std::collections::BTreeSet;

use super::instances;
use crate::data::lattice::{Label, Position, Sentence, Span};
use crate::data::random::{Random, Sizes};

/// Characters per sentence in the corpus.
pub const LENGTHS: Sizes = Sizes::new([8, 36, 63, 113, 135]);

const CLASSES: [&str; 8] = ["NOUN", "VERB", "PROPN", "ADJ", "ADV", "NUM", "ADP", "PART"];
const CHARS: usize = 2500;
const LONGEST: usize = 4;
const STOP: char = '。';
/// The seed of the language; instances never use it.
const LANGUAGE_SEED: u64 = 0x1e81_c042;

/// The words of the language, and the character sequences of its dictionary.
struct Language {
    words: Vec<(Vec<char>, usize)>,
    dictionary: BTreeSet<Vec<char>>,
}

fn character(random: &mut Random) -> char {
    // From this character on the block of unified ideographs has more than `CHARS` characters.
    char::from_u32(0x4e00 + random.index(CHARS) as u32).unwrap_or('一')
}

impl Language {
    fn new() -> Self {
        let mut random = Random::new(LANGUAGE_SEED);
        let mut seen = BTreeSet::new();
        let mut words = Vec::new();
        while words.len() < 4000 {
            let length = 1 + random.weighted(&[50, 40, 6, 4]);
            let chars: Vec<char> = (0..length).map(|_| character(&mut random)).collect();
            let class = random.weighted(&[30, 25, 12, 10, 8, 5, 5, 5]);
            if seen.insert(chars.clone()) {
                words.push((chars, class));
            }
        }
        let mut dictionary: BTreeSet<Vec<char>> = seen.into_iter().filter(|chars| chars.len() > 1).collect();
        for _ in 0..1500 {
            let mut frequent = || &words[random.zipf(words.len())].0;
            let straddling = frequent().last().into_iter().chain(frequent().first());
            dictionary.insert(straddling.copied().collect());
        }
        Language { words, dictionary }
    }

    fn spans(&self, chars: &[char]) -> Vec<Span> {
        let mut spans = Vec::new();
        for start in 0..chars.len() {
            for end in start + 2..=(start + LONGEST).min(chars.len()) {
                if self.dictionary.contains(&chars[start..end]) {
                    spans.push(Span { start: start as u32, end: end as u32 });
                }
            }
        }
        spans
    }

    fn sentence(&self, length: usize, random: &mut Random) -> Sentence {
        let (mut chars, mut labels) = (Vec::new(), Vec::new());
        while chars.len() + 1 < length {
            let (word, class) = &self.words[random.zipf(self.words.len())];
            for at in 0..word.len() {
                let position = match (at, word.len() - 1 - at) {
                    (0, 0) => Position::Single,
                    (0, _) => Position::Begin,
                    (_, 0) => Position::End,
                    _ => Position::Middle,
                };
                labels.push(Label { position, pos: CLASSES[*class].to_owned() });
            }
            chars.extend(word);
        }
        chars.push(STOP);
        labels.push(Label { position: Position::Single, pos: "PUNCT".to_owned() });
        let spans = self.spans(&chars);
        Sentence { chars, labels, spans }
    }
}

/// Draws sentences with lengths from `lengths`, usually [`LENGTHS`]. The last word may exceed the length
/// by three characters.
pub fn sentences(seed: u64, count: usize, lengths: Sizes) -> Vec<Sentence> {
    let language = Language::new();
    instances(seed, count, |_, random| {
        let length = lengths.draw(random) as usize;
        language.sentence(length, random)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, lattice};

    #[test]
    fn sizes_are_like_the_corpus() {
        let sentences = sentences(1, 500, LENGTHS);
        let chars = Summary::of(sentences.iter().map(|s| s.chars.len()));
        let spans = Summary::of(sentences.iter().map(|s| s.spans.len()));
        assert!((36.0..44.0).contains(&chars.mean()), "{chars}");
        assert!((13.0..20.0).contains(&spans.mean()), "{spans}");
    }

    #[test]
    fn every_gold_word_is_in_the_lattice_and_some_spans_are_not_words() {
        let mut others = 0;
        for sentence in sentences(2, 100, LENGTHS) {
            let mut gold = BTreeSet::new();
            let mut start = 0;
            for (at, label) in sentence.labels.iter().enumerate() {
                match label.position {
                    Position::Begin => start = at as u32,
                    Position::End => drop(gold.insert(Span { start, end: at as u32 + 1 })),
                    Position::Middle | Position::Single => {}
                }
            }
            let spans: BTreeSet<Span> = sentence.spans.iter().copied().collect();
            assert!(gold.is_subset(&spans), "seed 2: {sentence}");
            others += spans.len() - gold.len();
        }
        assert!(others > 100, "{others}");
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let sentences = sentences(3, 100, LENGTHS);
        assert_eq!(lattice::parse(lattice::write(&sentences), "generated").unwrap(), sentences);
    }
}
