//! Sentiment trees whose labels follow from word polarity and negation.
//!
//! One word in eight is mildly positive, one in eight mildly negative, one in sixteen strongly positive, one in
//! sixteen strongly negative, and one in 64 a negator. The other words are neutral. A node's score is the sum of its
//! children's scores, clamped to -2..2. If the left child is a negator, the score is the negative of the right
//! child's score. The label is the score plus 2. A Tree-LSTM therefore has to carry a score and one bit.

use super::{instances, word};
use crate::data::binary_tree::TreeBuilder;
use crate::data::random::{Random, Sizes};
use crate::data::sst::Tree;

/// Sentence lengths of the sentiment treebank.
pub const LENGTHS: Sizes = Sizes::new([2, 18, 32, 43, 52]);

/// The number of different words.
pub const WORDS: usize = 4000;

/// The effect of a word on the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Meaning {
    score: i8,
    negates: bool,
}

fn meaning(number: usize) -> Meaning {
    let negates = number % 64 == 7;
    let score = match number % 16 {
        1 | 9 => 1,
        2 | 10 => -1,
        3 => 2,
        11 => -2,
        _ => 0,
    };
    Meaning { score, negates }
}

fn combine(left: Meaning, right: Meaning) -> Meaning {
    let score = if left.negates { -right.score } else { left.score + right.score };
    Meaning { score: score.clamp(-2, 2), negates: false }
}

enum Task {
    Build(u32),
    Reduce,
}

fn tree(words: u32, random: &mut Random) -> Tree {
    let mut builder = TreeBuilder::default();
    let mut labels = Vec::new();
    let mut meanings: Vec<Meaning> = Vec::new();
    let mut tasks = vec![Task::Build(words.max(1))];
    while let Some(task) = tasks.pop() {
        let result = match task {
            Task::Build(1) => {
                let number = random.zipf(WORDS);
                builder.shift(word(number));
                meaning(number)
            }
            Task::Build(words) => {
                // Most phrases branch to the right, as in English.
                let most = if random.chance(850) { (words - 1).min(3) } else { words - 1 };
                let left = random.between(1, most);
                tasks.extend([Task::Reduce, Task::Build(words - left), Task::Build(left)]);
                continue;
            }
            Task::Reduce => {
                builder.reduce();
                let right = meanings.pop();
                let left = meanings.pop();
                left.zip(right)
                    .map(|(left, right)| combine(left, right))
                    .expect("both children were built before their parent")
            }
        };
        labels.push((result.score + 2) as u8);
        meanings.push(result);
    }
    let tree = builder.finish().expect("the root is reduced last");
    Tree { tree, labels }
}

/// Draws trees with sentence lengths from `lengths`, usually [`LENGTHS`].
pub fn trees(seed: u64, count: usize, lengths: Sizes) -> Vec<Tree> {
    instances(seed, count, |_, random| {
        let words = lengths.draw(random);
        tree(words, random)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, sst};

    #[test]
    fn sizes_and_labels_are_spread_like_the_treebank() {
        let trees = trees(1, 2000, LENGTHS);
        let words = Summary::of(trees.iter().map(|t| t.tree.leaves().len()));
        let depth = Summary::of(trees.iter().map(|t| t.tree.depth() as usize));
        assert!((18.0..20.0).contains(&words.mean()), "{words}");
        assert!((8.5..11.0).contains(&depth.mean()), "{depth}");
        for label in 0..5 {
            let share = trees.iter().filter(|t| t.label() == label).count();
            assert!((150..900).contains(&share), "label {label}: {share} of 2000");
        }
    }

    #[test]
    fn negation_inverts_the_score_and_sums_are_clamped() {
        let plain = |score| Meaning { score, negates: false };
        let not = Meaning { score: 0, negates: true };
        assert_eq!(combine(not, plain(2)), plain(-2));
        assert_eq!(combine(plain(2), not), plain(2));
        assert_eq!(combine(plain(2), plain(1)), plain(2));
        assert_eq!(combine(plain(-1), plain(2)), plain(1));
    }

    #[test]
    fn the_first_instances_do_not_depend_on_the_count() {
        assert_eq!(trees(7, 3, LENGTHS)[..], trees(7, 10, LENGTHS)[..3]);
        assert_ne!(trees(7, 3, LENGTHS), trees(8, 3, LENGTHS));
        assert_eq!(trees(7, 1, Sizes::new([0; 5]))[0].tree.leaves().len(), 1);
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let trees = trees(3, 200, LENGTHS);
        assert_eq!(sst::parse(sst::write(&trees), "generated").unwrap(), trees);
    }
}
