//! Sentence pairs with binary parses. The edits that make the hypothesis determine the relation.
//!
//! A sentence is a subject, a verb, an object and prepositional phrases; nouns have adjectives. An entailed
//! hypothesis omits modifiers and may replace nouns by their kind (noun n has kind n/8, another word). A
//! neutral one adds a modifier that the premise lacks. A contradiction replaces the verb by its opposite
//! (verbs 2k and 2k+1). Every hypothesis may have the edits of an entailed one, so only the additional edit
//! decides.

use super::{instances, word};
use crate::data::binary_tree::{BinaryTree, TreeBuilder};
use crate::data::random::Random;
use crate::data::snli::{Pair, Relation};

const NOUNS: usize = 800;
const KINDS: usize = 1000;
const VERBS: usize = 2000;
const ADJECTIVES: usize = 3000;
const PREPOSITIONS: usize = 4000;
const DETERMINERS: usize = 4100;

#[derive(Clone)]
struct Phrase {
    determiner: String,
    adjectives: Vec<usize>,
    noun: usize,
    /// Whether its kind replaces the noun.
    general: bool,
}

impl Phrase {
    fn random(random: &mut Random) -> Self {
        let adjectives = random.weighted(&[55, 30, 15]);
        Phrase {
            determiner: word(DETERMINERS + random.index(4)),
            adjectives: (0..adjectives).map(|_| random.zipf(200)).collect(),
            noun: random.zipf(NOUNS),
            general: false,
        }
    }

    /// Builds the phrase as `( determiner ( adjective .. noun ) )`.
    fn build(&self, builder: &mut TreeBuilder<String>) {
        builder.shift(self.determiner.clone());
        for adjective in &self.adjectives {
            builder.shift(word(ADJECTIVES + adjective));
        }
        builder.shift(word(if self.general { KINDS + self.noun / 8 } else { self.noun }));
        for _ in 0..=self.adjectives.len() {
            builder.reduce();
        }
    }

    fn generalise(&mut self, random: &mut Random) {
        self.general |= random.chance(300);
        if random.chance(600) {
            self.adjectives.clear();
        }
    }
}

#[derive(Clone)]
struct Clause {
    subject: Phrase,
    verb: usize,
    object: Phrase,
    places: Vec<(usize, Phrase)>,
}

impl Clause {
    fn random(random: &mut Random) -> Self {
        let places = random.weighted(&[25, 30, 22, 12, 6, 3, 2]);
        Clause {
            subject: Phrase::random(random),
            verb: random.zipf(300),
            object: Phrase::random(random),
            places: (0..places).map(|_| (random.index(20), Phrase::random(random))).collect(),
        }
    }

    /// Returns the sentence as `( subject ( ( ( verb object ) place .. ) . ) )`.
    fn tree(&self) -> BinaryTree<String> {
        let mut builder = TreeBuilder::default();
        self.subject.build(&mut builder);
        builder.shift(word(VERBS + self.verb));
        self.object.build(&mut builder);
        builder.reduce();
        for (preposition, phrase) in &self.places {
            builder.shift(word(PREPOSITIONS + preposition));
            phrase.build(&mut builder);
            builder.reduce();
            builder.reduce();
        }
        builder.shift(".".to_owned());
        builder.reduce();
        builder.reduce();
        builder.finish().expect("every part joins the previous one")
    }

    fn generalise(&mut self, random: &mut Random) {
        self.subject.generalise(random);
        self.object.generalise(random);
        let places = std::mem::take(&mut self.places);
        self.places = places.into_iter().filter(|_| random.chance(350)).collect();
        self.places.iter_mut().for_each(|(_, phrase)| phrase.generalise(random));
    }

    /// Adds an adjective that the premise's phrases lack.
    fn add_news(&mut self, random: &mut Random) {
        // The numbers of the premise's adjectives are below 200.
        let adjective = 200 + random.zipf(200);
        let phrase = if random.chance(500) { &mut self.subject } else { &mut self.object };
        phrase.adjectives.insert(0, adjective);
    }
}

/// Draws pairs of all three relations with equal probability.
pub fn pairs(seed: u64, count: usize) -> Vec<Pair> {
    instances(seed, count, |index, random| {
        let premise = Clause::random(random);
        let mut hypothesis = premise.clone();
        hypothesis.generalise(random);
        let relation = Relation::ALL[random.index(3)];
        match relation {
            Relation::Entailment => {}
            Relation::Neutral => hypothesis.add_news(random),
            Relation::Contradiction => hypothesis.verb ^= 1,
        }
        Pair {
            relation,
            premise: premise.tree(),
            hypothesis: hypothesis.tree(),
            id: format!("{seed}-{index}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, snli};
    use std::collections::BTreeSet;

    #[test]
    fn sizes_and_relations_are_spread_like_the_corpus() {
        let pairs = pairs(1, 3000);
        let trees = || pairs.iter().flat_map(|p| [&p.premise, &p.hypothesis]);
        let tokens = Summary::of(trees().map(|t| t.leaves().len()));
        let depth = Summary::of(trees().map(|t| t.depth() as usize));
        assert!((10.0..14.0).contains(&tokens.mean()), "{tokens}");
        assert!((5.0..8.0).contains(&depth.mean()), "{depth}");
        for relation in Relation::ALL {
            let share = pairs.iter().filter(|p| p.relation == relation).count();
            assert!((900..1100).contains(&share), "{relation}: {share}");
        }
    }

    #[test]
    fn the_relation_follows_from_the_words() {
        let verbs: BTreeSet<String> = (0..300).map(|verb| word(VERBS + verb)).collect();
        let adjectives: BTreeSet<String> = (0..400).map(|number| word(ADJECTIVES + number)).collect();
        let chosen = |tree: &BinaryTree<String>, set: &BTreeSet<String>| -> BTreeSet<String> {
            tree.leaves().iter().filter(|leaf| set.contains(*leaf)).cloned().collect()
        };
        for pair in pairs(2, 500) {
            let in_both = |set| (chosen(&pair.premise, set), chosen(&pair.hypothesis, set));
            let (verb, other_verb) = in_both(&verbs);
            let (known, claimed) = in_both(&adjectives);
            let relation = if verb != other_verb {
                Relation::Contradiction
            } else if claimed.is_subset(&known) {
                Relation::Entailment
            } else {
                Relation::Neutral
            };
            assert_eq!(relation, pair.relation, "seed 2: {pair}");
        }
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let pairs = pairs(3, 300);
        assert_eq!(snli::parse(snli::write(&pairs), "generated").unwrap(), pairs);
    }
}
