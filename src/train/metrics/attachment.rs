//! Attachment scores of dependency trees.

use crate::train::metrics::Rate;

/// Counts the words with the right head, and those with the right head and relation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    unlabelled: Rate,
    labelled: Rate,
}

impl Attachment {
    /// Adds a word: its heads, and whether the relation is right.
    pub fn observe(&mut self, gold: u32, predicted: u32, same_relation: bool) {
        self.unlabelled.observe(gold == predicted);
        self.labelled.observe(gold == predicted && same_relation);
    }

    /// Returns the fraction of words with the right head.
    #[must_use]
    pub fn unlabelled(&self) -> f64 {
        self.unlabelled.value()
    }

    /// Returns the fraction of words with the right head and relation.
    #[must_use]
    pub fn labelled(&self) -> f64 {
        self.labelled.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_relation_at_a_wrong_head_does_not_count() {
        let mut score = Attachment::default();
        [(2, 2, true), (0, 0, false), (2, 1, true)].into_iter().for_each(|(a, b, c)| score.observe(a, b, c));
        assert_eq!((score.unlabelled(), score.labelled()), (2.0 / 3.0, 1.0 / 3.0));
    }
}
