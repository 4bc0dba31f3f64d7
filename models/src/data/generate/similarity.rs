//! Pairs of parsed sentences whose similarity is the overlap of their meanings.
//!
//! Content words 2k and 2k+1 of a class are synonyms. In a quarter of the pairs the second sentence is
//! unrelated. Otherwise it is the first one without some leaves and with some content words replaced, each by
//! its synonym or by any word of the class. Similarity is 1 plus 4 times the Dice coefficient of the two
//! multisets of meanings, rounded to tenths.

use super::grammar::{Class, Item, sentence};
use super::instances;
use super::treebank::heads;
use crate::data::random::{Random, Sizes};
use crate::data::sick::{Pair, Sentence};

/// Sentence lengths of the corpus of pairs.
pub const LENGTHS: Sizes = Sizes::new([4, 9, 15, 21, 36]);

/// The generator uses one of every `SHARE` words, about 1,500 words in total.
const SHARE: usize = 4;

fn meanings(items: &[Item]) -> Vec<(Class, usize)> {
    let content = items.iter().filter(|item| item.class.is_content());
    let mut meanings: Vec<_> = content.map(|item| (item.class, item.number / 2)).collect();
    meanings.sort_unstable();
    meanings
}

/// The similarity in tenths, 10..=50.
fn similarity(a: &[Item], b: &[Item]) -> u32 {
    let (a, mut b) = (meanings(a), meanings(b));
    let total = (a.len() + b.len()) as u32;
    let mut common = 0;
    for meaning in &a {
        if let Ok(at) = b.binary_search(meaning) {
            b.remove(at);
            common += 1;
        }
    }
    // The division rounds to the nearest integer. The root verb is a content word, so the total is not 0.
    10 + (40 * 2 * common + total / 2) / total.max(1)
}

fn edited(items: &[Item], random: &mut Random) -> Vec<Item> {
    let strength = random.between(0, 600);
    let mut items = items.to_vec();
    for item in items.iter_mut().filter(|item| item.class.is_content()) {
        if random.chance(strength) {
            let words = (item.class.words().1 / SHARE).max(1);
            item.number = random.zipf(words);
        } else if random.chance(300) {
            item.number ^= 1;
        }
    }
    let is_head = |items: &[Item], at: usize| items.iter().any(|item| item.head as usize == at + 1);
    for at in (0..items.len()).rev() {
        if items.len() > 2 && items[at].head != 0 && !is_head(&items, at) && random.chance(80) {
            items.remove(at);
            for item in items.iter_mut().filter(|item| item.head as usize > at) {
                item.head -= 1;
            }
        }
    }
    items
}

fn parsed(items: &[Item]) -> Sentence {
    Sentence {
        tokens: items.iter().map(Item::form).collect(),
        heads: heads(items),
        relations: items.iter().map(|item| item.relation.to_owned()).collect(),
    }
}

/// Draws pairs with sentence lengths from `lengths`, usually [`LENGTHS`]. A second sentence may be
/// shorter.
pub fn pairs(seed: u64, count: usize, lengths: Sizes) -> Vec<Pair> {
    instances(seed, count, |index, random| {
        let length = lengths.draw(random) as usize;
        let a = sentence(length, SHARE, false, random);
        let b = if random.chance(250) {
            let length = lengths.draw(random) as usize;
            sentence(length, SHARE, false, random)
        } else {
            edited(&a, random)
        };
        Pair {
            id: index as u32 + 1,
            similarity: similarity(&a, &b) as f32 / 10.0,
            a: parsed(&a),
            b: parsed(&b),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, sick};

    #[test]
    fn sizes_and_similarities_are_spread_like_the_corpus() {
        let pairs = pairs(1, 2000, LENGTHS);
        let tokens = Summary::of(pairs.iter().flat_map(|p| [&p.a, &p.b]).map(|s| s.tokens.len()));
        assert!((8.5..10.5).contains(&tokens.mean()), "{tokens}");
        for grade in 1..5 {
            let range = grade as f32..=grade as f32 + 1.0;
            let share = pairs.iter().filter(|p| range.contains(&p.similarity)).count();
            assert!(share > 200, "grade {grade}: {share} of 2000");
        }
    }

    #[test]
    fn equal_meanings_have_the_highest_similarity_and_disjoint_ones_the_lowest() {
        let mut random = Random::new(1);
        let a = sentence(8, SHARE, false, &mut random);
        let changed = |change: fn(&mut Item)| {
            let mut b = a.clone();
            b.iter_mut().for_each(change);
            similarity(&a, &b)
        };
        assert_eq!(similarity(&a, &a), 50);
        assert_eq!(changed(|item| item.number ^= 1), 50);
        assert_eq!(changed(|item| item.number += 100_000), 10);
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let pairs = pairs(3, 300, LENGTHS);
        assert_eq!(sick::parse(&sick::write(&pairs), "generated").unwrap(), pairs);
    }
}
