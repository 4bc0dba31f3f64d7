//! Sentences of an invented language with their translations into another one.
//!
//! A sentence has one to three clauses joined by conjunctions, and ends with `.`. A clause is a subject, a verb and often an
//! object, and a phrase has a determiner, up to two adjectives, a noun, and sometimes a preposition with another phrase. A
//! word-for-word translation is wrong in four ways, so a translator has to find words at other places:
//!
//! * the verb comes last in its clause;
//! * adjectives follow their noun, in reverse order;
//! * prepositional phrases precede their noun, and the preposition ends them;
//! * a determiner has one form for nouns with even numbers and one for nouns with odd numbers.

use super::{instances, word};
use crate::data::parallel::Pair;
use crate::data::random::Random;

/// The share of clauses with an object, of phrases with a prepositional phrase, and of sentences that continue after a
/// clause, per 1000.
const OBJECTS: u32 = 700;
const PREPOSITIONS: u32 = 250;
const CLAUSES: u32 = 350;
/// The largest number of clauses.
const MOST_CLAUSES: usize = 3;

/// Word classes. A class has its own range of word numbers in each language.
#[derive(Clone, Copy)]
enum Class {
    Determiner,
    Adjective,
    Noun,
    Verb,
    Preposition,
    Conjunction,
}

impl Class {
    /// The first number and the count of the words of the class.
    const fn words(self) -> [usize; 2] {
        match self {
            Class::Determiner => [0, 4],
            Class::Adjective => [10, 30],
            Class::Noun => [40, 60],
            Class::Verb => [100, 30],
            Class::Preposition => [130, 6],
            Class::Conjunction => [140, 3],
        }
    }

    /// A number of a word of the class.
    fn draw(self, random: &mut Random) -> usize {
        random.index(self.words()[1])
    }

    /// The word of the first language.
    fn source(self, number: usize) -> String {
        word(self.words()[0] + number)
    }

    /// The word of the second language.
    fn target(self, number: usize) -> String {
        /// The first number of the words of the second language.
        const TARGET: usize = 200;
        word(TARGET + self.words()[0] + number)
    }
}

/// A phrase in both languages.
#[derive(Default)]
struct Phrase {
    source: Vec<String>,
    target: Vec<String>,
}

fn noun_phrase(random: &mut Random) -> Phrase {
    let [determiner, noun] = [Class::Determiner, Class::Noun].map(|class| class.draw(random));
    let adjectives: Vec<usize> =
        (0..random.weighted(&[5, 3, 2])).map(|_| Class::Adjective.draw(random)).collect();
    let [_, determiners] = Class::Determiner.words();
    let mut phrase = Phrase::default();
    phrase.source.push(Class::Determiner.source(determiner));
    phrase.source.extend(adjectives.iter().map(|&number| Class::Adjective.source(number)));
    phrase.source.push(Class::Noun.source(noun));
    if random.chance(PREPOSITIONS) {
        let preposition = Class::Preposition.draw(random);
        let inner = noun_phrase(random);
        phrase.source.push(Class::Preposition.source(preposition));
        phrase.source.extend(inner.source);
        phrase.target.extend(inner.target);
        phrase.target.push(Class::Preposition.target(preposition));
    }
    phrase.target.push(Class::Determiner.target(determiner + noun % 2 * determiners));
    phrase.target.push(Class::Noun.target(noun));
    phrase.target.extend(adjectives.iter().rev().map(|&number| Class::Adjective.target(number)));
    phrase
}

fn clause(random: &mut Random) -> Phrase {
    let mut clause = noun_phrase(random);
    let verb = Class::Verb.draw(random);
    clause.source.push(Class::Verb.source(verb));
    if random.chance(OBJECTS) {
        let object = noun_phrase(random);
        clause.source.extend(object.source);
        clause.target.extend(object.target);
    }
    clause.target.push(Class::Verb.target(verb));
    clause
}

fn pair(random: &mut Random) -> Pair {
    let mut sentence = clause(random);
    for _ in 1..MOST_CLAUSES {
        if !random.chance(CLAUSES) {
            break;
        }
        let conjunction = Class::Conjunction.draw(random);
        let next = clause(random);
        sentence.source.push(Class::Conjunction.source(conjunction));
        sentence.source.extend(next.source);
        sentence.target.push(Class::Conjunction.target(conjunction));
        sentence.target.extend(next.target);
    }
    Pair { source: sentence.source.join(" ") + ".", target: sentence.target.join(" ") + "." }
}

/// Draws sentences with their translations.
pub fn pairs(seed: u64, count: usize) -> Vec<Pair> {
    instances(seed, count, |_, random| pair(random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, parallel};
    use std::collections::BTreeSet;

    #[test]
    fn both_sides_have_equally_many_words_and_no_word_in_common() {
        let pairs = pairs(1, 1000);
        let (mut sources, mut targets) = (BTreeSet::new(), BTreeSet::new());
        for pair in &pairs {
            let [source, target] = [&pair.source, &pair.target].map(|text| parallel::words(text));
            assert_eq!(source.len(), target.len(), "{pair}");
            assert_eq!([source.last(), target.last()].map(|word| word.unwrap().as_str()), [".", "."]);
            sources.extend(source);
            targets.extend(target);
        }
        assert_eq!(sources.intersection(&targets).collect::<Vec<_>>(), ["."]);
        assert_eq!((sources.len(), targets.len()), (134, 138));
        let lengths = Summary::of(pairs.iter().map(|pair| parallel::words(&pair.source).len()));
        assert!((11.0..16.0).contains(&lengths.mean()) && lengths.max > 35, "{lengths}");
    }

    #[test]
    fn the_first_instances_do_not_depend_on_the_count() {
        assert_eq!(pairs(7, 3)[..], pairs(7, 10)[..3]);
        assert_ne!(pairs(7, 3), pairs(8, 3));
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let pairs = pairs(3, 200);
        assert_eq!(parallel::parse(parallel::write(&pairs), "generated").unwrap(), pairs);
    }
}
