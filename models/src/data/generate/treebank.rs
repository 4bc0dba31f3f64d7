//! Parsed sentences with parts of speech, all projective.
//!
//! Each word has one class, and the order of classes determines most of the tree. The number of a preposition
//! determines whether it attaches to a noun (even) or a verb (odd). So a tagger can learn classes from words.
//! A parser can learn the trees, or the arc-standard transitions of [`Heads::transitions`].

use super::grammar::{Item, sentence};
use super::instances;
use crate::data::conllu::{Sentence, Word};
use crate::data::dependency::Heads;
use crate::data::random::Sizes;

/// Sentence lengths of the treebank.
pub const LENGTHS: Sizes = Sizes::new([2, 14, 32, 54, 135]);

/// Returns the heads of a generated sentence.
pub(super) fn heads(items: &[Item]) -> Heads {
    let heads = items.iter().map(|item| item.head).collect();
    Heads::new(heads).expect("the grammar attaches every word but the root exactly once")
}

fn annotated(item: &Item) -> Word {
    let form = item.form();
    Word {
        lemma: form.clone(),
        form,
        upos: item.class.upos().to_owned(),
        xpos: "_".to_owned(),
        feats: "_".to_owned(),
        relation: item.relation.to_owned(),
    }
}

/// Draws sentences with lengths from `lengths`, usually [`LENGTHS`].
pub fn sentences(seed: u64, count: usize, lengths: Sizes) -> Vec<Sentence> {
    instances(seed, count, |index, random| {
        let length = lengths.draw(random) as usize;
        let items = sentence(length, 1, true, random);
        Sentence {
            comments: vec![format!(" sent_id = {seed}-{index}")],
            words: items.iter().map(annotated).collect(),
            heads: heads(&items),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dependency::execute;
    use crate::data::{Summary, conllu};

    #[test]
    fn sentences_have_the_sizes_of_the_treebank() {
        let sentences = sentences(1, 2000, LENGTHS);
        let words = Summary::of(sentences.iter().map(|s| s.words.len()));
        let depth = Summary::of(sentences.iter().map(|s| s.heads.depth() as usize));
        assert!((15.0..19.0).contains(&words.mean()), "{words}");
        assert!((3.0..5.0).contains(&depth.mean()), "{depth}");
    }

    #[test]
    fn lengths_are_exact() {
        for length in 1..60 {
            let sentence = &sentences(length.into(), 1, Sizes::new([length; 5]))[0];
            assert_eq!(sentence.words.len(), length as usize, "seed {length}");
        }
    }

    #[test]
    fn every_tree_has_gold_transitions_that_rebuild_it() {
        for (index, sentence) in sentences(2, 500, LENGTHS).iter().enumerate() {
            let gold = sentence.heads.transitions();
            let rebuilt = gold.and_then(|gold| execute(sentence.words.len() as u32, &gold));
            assert_eq!(rebuilt.as_ref(), Some(&sentence.heads), "seed 2, sentence {index}");
        }
    }

    #[test]
    fn prepositions_determine_their_head() {
        for sentence in sentences(3, 300, LENGTHS) {
            for (word, &head) in sentence.words.iter().zip(sentence.heads.heads()) {
                if word.relation == "case" {
                    let noun = &sentence.words[head as usize - 1];
                    let number = (0..40).find(|n| super::super::word(6508 + n) == word.form);
                    let verbal = number.expect("there are 40 prepositions") % 2 == 1;
                    assert_eq!(verbal, noun.relation == "obl", "{sentence}");
                }
            }
        }
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let sentences = sentences(4, 200, LENGTHS);
        assert_eq!(conllu::parse(conllu::write(&sentences), "generated").unwrap(), sentences);
    }
}
