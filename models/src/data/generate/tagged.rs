//! Sentences with named entities that follow from spelling and left context.
//!
//! * A capitalised word that ends in `son`, `burg`, `corp` or `ish` is part of the name of a
//!   person, place, organisation or other entity. Stems are many and often rare, so the characters
//!   predict the tag better than the word.
//! * A capitalised word without such an ending takes its kind from the trigger word (one of 32,
//!   eight per kind) one or two places before it.
//! * A name has at most two words. A third consecutive word begins a new name of the same kind and
//!   has a `B-` tag. All other words and triggers are outside, and a sentence ends with `.`.

use super::{capital, instances, word};
use crate::data::random::{Random, Sizes};
use crate::data::wikiner::{Entity, Sentence, Tag, Token};

/// Sentence lengths of the named-entity corpus.
pub const LENGTHS: Sizes = Sizes::new([2, 23, 39, 60, 135]);

const TRIGGERS: usize = 32;
const COMMON_WORDS: usize = 12_000;
const STEMS: usize = 20_000;
/// The number of names that begin per 1000 words. At this rate names cover 14 % of the tokens.
const NAMES_PERMILLE: u32 = 98;

fn ending(entity: Entity) -> &'static str {
    match entity {
        Entity::Person => "son",
        Entity::Location => "burg",
        Entity::Organisation => "corp",
        Entity::Other => "ish",
    }
}

fn token(word: String, tag: Tag) -> Token {
    Token { word, tag }
}

fn common(random: &mut Random) -> Token {
    token(word(TRIGGERS + random.zipf(COMMON_WORDS)), Tag::Outside)
}

fn name_phrase(random: &mut Random, tokens: &mut Vec<Token>) {
    let kind = random.index(4);
    let entity = Entity::ALL[kind];
    let stem = |random: &mut Random| capital(&word(random.index(STEMS)));
    if random.chance(500) {
        let trigger = 8 * kind + random.index(8);
        tokens.push(token(word(trigger), Tag::Outside));
        for _ in 0..random.between(1, 2) {
            tokens.push(token(stem(random), Tag::Inside(entity)));
        }
    } else {
        let tags = [Tag::Inside(entity), Tag::Inside(entity), Tag::Begin(entity)];
        let words = 1 + random.weighted(&[50, 45, 5]);
        for &tag in &tags[..words] {
            tokens.push(token(stem(random) + ending(entity), tag));
        }
    }
    tokens.push(common(random));
}

/// Draws sentences with lengths from `lengths`, usually [`LENGTHS`].
pub fn sentences(seed: u64, count: usize, lengths: Sizes) -> Vec<Sentence> {
    instances(seed, count, |_, random| {
        let length = lengths.draw(random).max(1) as usize;
        let mut tokens = Vec::new();
        while tokens.len() + 1 < length {
            if random.chance(NAMES_PERMILLE) {
                name_phrase(random, &mut tokens);
            } else {
                tokens.push(common(random));
            }
        }
        tokens.truncate(length - 1);
        tokens.push(token(".".to_owned(), Tag::Outside));
        Sentence { tokens }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, wikiner};

    /// Derives the tag of a word from the words alone, by the rules of the module's documentation.
    fn tag_by_rule(words: &[&str], at: usize) -> Tag {
        let is_name = |word: &str| word.starts_with(|c: char| c.is_uppercase());
        if !is_name(words[at]) {
            return Tag::Outside;
        }
        let start = words[..at].iter().rposition(|word| !is_name(word)).map_or(0, |p| p + 1);
        let by_ending = Entity::ALL.into_iter().find(|&entity| words[at].ends_with(ending(entity)));
        let trigger = || (0..TRIGGERS).find(|&number| start > 0 && word(number) == words[start - 1]);
        let by_trigger = || trigger().map(|number| Entity::ALL[number / 8]);
        let entity = by_ending.or_else(by_trigger).expect("every name has an ending or a trigger");
        if at - start == 2 { Tag::Begin(entity) } else { Tag::Inside(entity) }
    }

    #[test]
    fn tags_follow_from_the_words() {
        for (index, sentence) in sentences(1, 500, LENGTHS).iter().enumerate() {
            let words: Vec<&str> = sentence.tokens.iter().map(|t| t.word.as_str()).collect();
            for (at, token) in sentence.tokens.iter().enumerate() {
                assert_eq!(token.tag, tag_by_rule(&words, at), "seed 1, sentence {index}: {sentence}");
            }
        }
    }

    #[test]
    fn sizes_and_entities_are_like_the_corpus() {
        let sentences = sentences(2, 2000, LENGTHS);
        let length = Summary::of(sentences.iter().map(|s| s.tokens.len()));
        assert!((23.0..26.0).contains(&length.mean()), "{length}");
        let tokens: Vec<_> = sentences.iter().flat_map(|s| &s.tokens).collect();
        let names = tokens.iter().filter(|t| t.tag != Tag::Outside).count();
        let percent = 100 * names / tokens.len();
        assert!((11..=16).contains(&percent), "{percent} %");
        assert!(tokens.iter().any(|t| matches!(t.tag, Tag::Begin(_))));
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let sentences = sentences(3, 200, LENGTHS);
        assert_eq!(wikiner::parse(wikiner::write(&sentences), "generated").unwrap(), sentences);
    }
}
