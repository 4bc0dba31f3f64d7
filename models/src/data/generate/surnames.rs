//! Names of 18 invented languages, each a Markov chain over letters.
//!
//! Each language draws five possible successors of decreasing probability for every letter, and has its own
//! accented letter. The frequencies of the languages are as uneven as in the corpus: a few are rare, and one
//! has half of all names.

use super::{capital, word};
use crate::data::names::Names;
use crate::data::random::{Random, Sizes};

/// Characters per name in the corpus.
pub const LENGTHS: Sizes = Sizes::new([3, 7, 10, 13, 19]);

/// The frequency of each language.
pub const FREQUENCIES: [u32; 18] =
    [87, 193, 402, 227, 2927, 222, 558, 151, 186, 556, 771, 79, 106, 59, 7444, 80, 240, 54];

const ACCENTED: [char; 18] =
    ['à', 'á', 'ä', 'ç', 'è', 'é', 'ê', 'ì', 'í', 'ñ', 'ò', 'ó', 'ö', 'ś', 'ú', 'ü', 'ż', 'ã'];

/// The seed of the languages; instances never use it.
const LANGUAGES_SEED: u64 = 0x1a9_6a6e;

/// A language. The letters are 0..26 for a to z and 26 for the accented letter.
struct Language {
    accented: char,
    first: [usize; 5],
    next: Vec<[usize; 5]>,
}

impl Language {
    fn new(number: usize) -> Self {
        let mut random = Random::stream(LANGUAGES_SEED, number as u64);
        let mut five = || std::array::from_fn(|_| random.index(27));
        Language { accented: ACCENTED[number], first: five(), next: (0..27).map(|_| five()).collect() }
    }

    fn name(&self, length: u32, random: &mut Random) -> String {
        let mut name = String::new();
        let mut choices = &self.first;
        for _ in 0..length.max(1) {
            let letter = choices[random.weighted(&[8, 4, 2, 1, 1])];
            name.push(match letter {
                26 => self.accented,
                letter => char::from(b'a' + letter as u8),
            });
            choices = &self.next[letter];
        }
        capital(&name)
    }
}

/// Draws names with lengths from `lengths`, usually [`LENGTHS`]. Each name draws its language in
/// proportion to [`FREQUENCIES`].
pub fn names(seed: u64, count: usize, lengths: Sizes) -> Names {
    let languages: Vec<Language> = (0..FREQUENCIES.len()).map(Language::new).collect();
    let drawn = super::instances(seed, count, |_, random| {
        let language = random.weighted(&FREQUENCIES);
        let length = lengths.draw(random);
        (language, languages[language].name(length, random))
    });
    let mut by_language = vec![Vec::new(); languages.len()];
    for (language, name) in drawn {
        by_language[language].push(name);
    }
    let mut names = Names::default();
    for (language, texts) in by_language.into_iter().enumerate() {
        names.add_language(format!("{:02}{}", language, capital(&word(language))), texts);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, names as format};
    use std::collections::BTreeMap;

    #[test]
    fn sizes_and_frequencies_are_like_the_corpus() {
        let names = names(1, 14_342, LENGTHS);
        let chars = Summary::of(names.names.iter().map(|n| n.text.chars().count()));
        assert!((6.6..7.8).contains(&chars.mean()), "{chars}");
        for (language, (count, expected)) in names.counts().into_iter().zip(FREQUENCIES).enumerate() {
            let expected = expected as usize;
            assert!((expected / 2..expected * 2).contains(&count), "language {language}: {count}");
        }
    }

    #[test]
    fn letter_pairs_identify_the_language() {
        // The test trains a classifier on letter pairs of one seed and evaluates it on another.
        let pairs = |text: &str| text.chars().zip(text.chars().skip(1)).collect::<Vec<_>>();
        let mut counts: BTreeMap<(u32, (char, char)), f64> = BTreeMap::new();
        let mut totals = [1.0; 18];
        for name in &names(1, 8000, LENGTHS).names {
            for pair in pairs(&name.text) {
                *counts.entry((name.language, pair)).or_default() += 1.0;
                totals[name.language as usize] += 1.0;
            }
        }
        let score = |language: u32, text: &str| -> f64 {
            let count = |pair| counts.get(&(language, pair)).copied().unwrap_or(0.05);
            pairs(text).into_iter().map(|pair| (count(pair) / totals[language as usize]).ln()).sum()
        };
        let test = names(2, 500, LENGTHS);
        let best = |text: &str| (0..18).max_by(|&a, &b| score(a, text).total_cmp(&score(b, text)));
        let right = test.names.iter().filter(|n| best(&n.text) == Some(n.language)).count();
        assert!(right > 350, "{right} of 500");
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let names = names(3, 300, LENGTHS);
        for language in 0..18 {
            let texts: Vec<String> =
                names.names.iter().filter(|n| n.language == language).map(|n| n.text.clone()).collect();
            assert_eq!(format::parse(format::write(&names, language), "generated").unwrap(), texts);
        }
    }
}
