//! Workloads with trees: binary trees as nested JSON lists, dependency trees as parent lists.

use std::fmt;

use serde::de::{self, DeserializeSeed, SeqAccess, Visitor};
use serde::ser::{self, SerializeTuple};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Mismatch, Workload, instances, length, table_size, words};
use crate::data::binary_tree::{BinaryTree, Node, TreeBuilder};
use crate::data::random::Random;

/// A binary tree with word numbers at its leaves. In JSON a leaf is its number and an inner node a
/// list of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(pub BinaryTree<u32>);

/// The maximum depth of trees. The JSON reader recurses and limits the nesting, so the writer rejects
/// deeper trees.
const MAX_DEPTH: u32 = 110;

struct Subtree<'a> {
    tree: &'a BinaryTree<u32>,
    node: u32,
}

impl Serialize for Subtree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tree = self.tree;
        match tree.nodes()[self.node as usize] {
            Node::Leaf(leaf) => serializer.serialize_u32(tree.leaves()[leaf as usize]),
            Node::Inner(left, right) => {
                let mut pair = serializer.serialize_tuple(2)?;
                pair.serialize_element(&Subtree { tree, node: left })?;
                pair.serialize_element(&Subtree { tree, node: right })?;
                pair.end()
            }
        }
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Tree(tree) = self;
        if tree.depth() > MAX_DEPTH {
            return Err(ser::Error::custom(format!(
                "expected trees at most {MAX_DEPTH} deep, found {}",
                tree.depth()
            )));
        }
        Subtree { tree, node: tree.root() }.serialize(serializer)
    }
}

/// Reads a subtree onto the builder's stack.
struct Nested<'a>(&'a mut TreeBuilder<u32>);

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word number or a list of two subtrees")
    }

    fn visit_u64<E: de::Error>(self, word: u64) -> Result<(), E> {
        let word =
            u32::try_from(word).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(word), &self))?;
        self.0.shift(word);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        for part in 0..2 {
            if parts.next_element_seed(Nested(self.0))?.is_none() {
                return Err(de::Error::invalid_length(part, &self));
            }
        }
        if parts.next_element::<de::IgnoredAny>()?.is_some() {
            return Err(de::Error::invalid_length(3, &self));
        }
        self.0.reduce();
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut builder = TreeBuilder::default();
        Nested(&mut builder).deserialize(deserializer)?;
        let tree = builder.finish().expect("a subtree leaves one entry on the stack");
        Ok(Tree(tree))
    }
}

/// Workloads b and f: random binary trees with one class each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trees {
    /// The trees.
    pub trees: Vec<Tree>,
    /// The class of each tree, below [`Trees::CLASSES`].
    pub labels: Vec<u32>,
}

fn random_tree(leaves: u32, words: u32, random: &mut Random) -> Tree {
    let mut builder = TreeBuilder::default();
    // The numbers of leaves of the subtrees to build. 0 joins the two newest subtrees.
    let mut todo = vec![leaves.max(1)];
    while let Some(leaves) = todo.pop() {
        match leaves {
            0 => drop(builder.reduce()),
            1 => builder.shift(random.below(u64::from(words)) as u32),
            _ => {
                let left = random.between(1, leaves - 1);
                todo.extend([0, leaves - left, left]);
            }
        }
    }
    Tree(builder.finish().expect("every split is joined"))
}

impl Trees {
    /// The number of classes.
    pub const CLASSES: u32 = 3;
    /// The default number of words.
    pub const WORDS: u32 = 1000;

    /// Draws trees with `leaves` leaves on average (20 in most scripts; deviation 8, within 2..=60) and words
    /// below `words`. Every split is uniform.
    pub fn generate(seed: u64, count: usize, leaves: f64, words: u32) -> Self {
        let drawn = instances(seed, count, |_, random| {
            let leaves = length(random, leaves, 8.0, 2, 60);
            let tree = random_tree(leaves, words, random);
            (tree, random.below(u64::from(Self::CLASSES)) as u32)
        });
        let (trees, labels) = drawn.into_iter().unzip();
        Trees { trees, labels }
    }

    /// Returns the number of rows of a table of words.
    pub fn word_rows(&self) -> usize {
        table_size(self.trees.iter().flat_map(|tree| tree.0.leaves()), Self::WORDS)
    }

    /// Returns the trees with their classes.
    pub fn instances(&self) -> impl Iterator<Item = (&BinaryTree<u32>, u32)> {
        self.trees.iter().map(|tree| &tree.0).zip(self.labels.iter().copied())
    }
}

impl Workload for Trees {
    fn check(&self) -> Result<(), Mismatch> {
        Mismatch::unless_paired(self.trees.len(), self.labels.len(), "labels")?;
        self.labels.iter().enumerate().try_for_each(|(index, &label)| {
            Mismatch::unless(label < Self::CLASSES, index, "classes 0..2", &format!("class {label}"))
        })
    }
}

/// A dependency tree in which each word follows its head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependencies {
    /// The head of each word, from 0 and smaller than the word. The first word is the root and
    /// has -1.
    pub parent: Vec<i64>,
    /// The word numbers.
    pub words: Vec<u32>,
}

impl Dependencies {
    fn random(length: u32, vocabulary: u32, random: &mut Random) -> Self {
        let head = |word: u32| match word {
            0 => -1,
            _ => random.below(u64::from(word)) as i64,
        };
        Dependencies { parent: (0..length).map(head).collect(), words: words(random, length, vocabulary) }
    }

    fn check(&self, index: usize) -> Result<(), Mismatch> {
        let same = self.parent.len() == self.words.len() && !self.words.is_empty();
        Mismatch::unless(same, index, "one parent per word and at least one word", "other lengths")?;
        let well_placed = |(word, &parent): (usize, &i64)| match word {
            0 => parent == -1,
            _ => (0..word as i64).contains(&parent),
        };
        let tree = self.parent.iter().enumerate().all(well_placed);
        Mismatch::unless(
            tree,
            index,
            "parent -1 for the first word and earlier words for the others",
            "others",
        )
    }
}

/// Workload c: pairs of dependency trees with a score 1..5.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pairs {
    /// First tree, second tree, score.
    pub pairs: Vec<(Dependencies, Dependencies, f64)>,
}

impl Pairs {
    /// The default number of words.
    pub const WORDS: u32 = 2400;

    /// Draws pairs with 10 words per sentence on average (deviation 3.5, within 3..=30).
    pub fn generate(seed: u64, count: usize) -> Self {
        let pairs = instances(seed, count, |_, random| {
            let mut tree = || {
                let length = length(random, 10.0, 3.5, 3, 30);
                Dependencies::random(length, Self::WORDS, random)
            };
            let (first, second) = (tree(), tree());
            (first, second, f64::from(random.between(100, 500)) / 100.0)
        });
        Pairs { pairs }
    }

    /// Returns the number of rows of a table of words.
    pub fn word_rows(&self) -> usize {
        let words = self.pairs.iter().flat_map(|(first, second, _)| first.words.iter().chain(&second.words));
        table_size(words, Self::WORDS)
    }
}

impl Workload for Pairs {
    fn check(&self) -> Result<(), Mismatch> {
        self.pairs.iter().enumerate().try_for_each(|(index, (first, second, score))| {
            first.check(index)?;
            second.check(index)?;
            Mismatch::unless((1.0..=5.0).contains(score), index, "scores 1..5", &format!("score {score}"))
        })
    }
}
