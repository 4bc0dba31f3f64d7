//! Dependency trees: one head per word.
//!
//! Words are numbered from 1 as in the files; head 0 marks the root. [`Heads`] always holds exactly one tree,
//! so computations on it cannot fail. This module also contains the arc-standard system: the gold transitions
//! of a projective tree, and the tree of a list of transitions.

use std::fmt;

/// The heads of a sentence's words: a tree with exactly one root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Heads {
    heads: Vec<u32>,
}

/// The reason why heads are not a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NotATree {
    /// No word has head 0, or there are no words.
    NoRoot,
    /// This word (from 1) is a second word with head 0.
    SecondRoot(u32),
    /// The head of this word (from 1) is not a word of the sentence.
    NoSuchHead(u32),
    /// This word (from 1) is its own ancestor.
    Cycle(u32),
}

impl NotATree {
    /// The word that the problem concerns, from 1.
    pub fn word(&self) -> u32 {
        match *self {
            NotATree::NoRoot => 1,
            NotATree::SecondRoot(word) | NotATree::NoSuchHead(word) | NotATree::Cycle(word) => word,
        }
    }
}

impl fmt::Display for NotATree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotATree::NoRoot => f.write_str("no word with head 0"),
            NotATree::SecondRoot(word) => write!(f, "word {word} as a second one"),
            NotATree::NoSuchHead(word) => write!(f, "word {word} with a head that does not exist"),
            NotATree::Cycle(word) => write!(f, "word {word} below itself"),
        }
    }
}

impl std::error::Error for NotATree {}

autobatch::ir::debug_as_display!(NotATree);

impl Heads {
    /// Checks that heads form one tree.
    pub fn new(heads: Vec<u32>) -> Result<Self, NotATree> {
        let mut root = None;
        for (word, &head) in (1..).zip(&heads) {
            if head == 0 && root.replace(word).is_some() {
                return Err(NotATree::SecondRoot(word));
            }
            if head as usize > heads.len() {
                return Err(NotATree::NoSuchHead(word));
            }
        }
        root.ok_or(NotATree::NoRoot)?;
        let tree = Heads { heads };
        let mut reached = vec![false; tree.heads.len()];
        tree.top_down().iter().for_each(|&word| reached[word as usize - 1] = true);
        match reached.iter().position(|&is_reached| !is_reached) {
            Some(index) => Err(NotATree::Cycle(index as u32 + 1)),
            None => Ok(tree),
        }
    }

    /// The head of every word, 0 for the root's.
    pub fn heads(&self) -> &[u32] {
        &self.heads
    }

    /// The root, from 1.
    pub fn root(&self) -> u32 {
        let index = self.heads.iter().position(|&head| head == 0);
        index.expect("the constructor checks that a root exists") as u32 + 1
    }

    /// For every word its dependents in sentence order; entry 0 holds the root alone.
    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.heads.len() + 1];
        for (word, &head) in (1..).zip(&self.heads) {
            children[head as usize].push(word);
        }
        children
    }

    /// Returns the words with heads before their dependents. The reverse is a bottom-up evaluation order.
    pub fn top_down(&self) -> Vec<u32> {
        let children = self.children();
        let mut order = children[0].clone();
        let mut next = 0;
        while let Some(&word) = order.get(next) {
            order.extend(&children[word as usize]);
            next += 1;
        }
        order
    }

    /// The largest number of arcs between the root and a word.
    pub fn depth(&self) -> u32 {
        let mut depths = vec![0_u32; self.heads.len() + 1];
        for word in self.top_down() {
            let head = self.heads[word as usize - 1];
            if head != 0 {
                depths[word as usize] = depths[head as usize] + 1;
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Returns whether every word between a word and its head descends from that head.
    pub fn is_projective(&self) -> bool {
        self.transitions().is_some()
    }

    /// Returns the arc-standard transitions that build this tree, or `None` if it is not projective.
    ///
    /// A word is attached as soon as all its dependents are. Left arcs come before right arcs, and right arcs
    /// before shifts. There are `2n - 1` transitions for `n` words.
    pub fn transitions(&self) -> Option<Vec<Transition>> {
        let head = |word: u32| self.heads[word as usize - 1];
        let mut missing: Vec<usize> = self.children().iter().map(Vec::len).collect();
        let mut stack: Vec<u32> = Vec::new();
        let mut transitions = Vec::with_capacity(2 * self.heads.len());
        let mut next = 1_u32;
        loop {
            if let [.., below, top] = stack[..] {
                if head(below) == top && missing[below as usize] == 0 {
                    transitions.push(Transition::LeftArc);
                    missing[top as usize] -= 1;
                    stack.truncate(stack.len() - 2);
                    stack.push(top);
                    continue;
                }
                if head(top) == below && missing[top as usize] == 0 {
                    transitions.push(Transition::RightArc);
                    missing[below as usize] -= 1;
                    stack.pop();
                    continue;
                }
            }
            if next as usize > self.heads.len() {
                return (stack.len() == 1).then_some(transitions);
            }
            transitions.push(Transition::Shift);
            stack.push(next);
            next += 1;
        }
    }
}

/// A step of the arc-standard system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transition {
    /// Moves the next word onto the stack.
    Shift,
    /// Makes the topmost word the head of the word below it, which leaves the stack.
    LeftArc,
    /// Makes the word below the top the head of the topmost word, which leaves the stack.
    RightArc,
}

impl Transition {
    /// The class number 0..3.
    pub fn index(self) -> u32 {
        self as u32
    }
}

/// Returns the tree that transitions build on `words` words, or `None` if they do not join all words
/// into one tree.
pub fn execute(words: u32, transitions: &[Transition]) -> Option<Heads> {
    // Every word is shifted once, and all words but one leave the stack.
    if transitions.len() as u64 + 1 != 2 * u64::from(words) {
        return None;
    }
    let mut heads = vec![0; words as usize];
    let mut stack: Vec<u32> = Vec::new();
    let mut next = 1;
    for transition in transitions {
        if *transition == Transition::Shift {
            if next > words {
                return None;
            }
            stack.push(next);
            next += 1;
            continue;
        }
        let (top, below) = (stack.pop()?, stack.pop()?);
        let (head, dependent) = match transition {
            Transition::LeftArc => (top, below),
            _ => (below, top),
        };
        heads[dependent as usize - 1] = head;
        stack.push(head);
    }
    Heads::new(heads).ok()
}

#[cfg(test)]
mod tests {
    use super::Transition::{LeftArc, RightArc, Shift};
    use super::*;
    use crate::data::random::Random;

    #[test]
    fn heads_that_are_not_a_tree_are_rejected() {
        let problem = |heads: &[u32]| Heads::new(heads.to_vec()).unwrap_err();
        assert_eq!(problem(&[]), NotATree::NoRoot);
        assert_eq!(problem(&[2, 1]), NotATree::NoRoot);
        assert_eq!(problem(&[0, 0]), NotATree::SecondRoot(2));
        assert_eq!(problem(&[0, 3]), NotATree::NoSuchHead(2));
        assert_eq!(problem(&[0, 3, 2]), NotATree::Cycle(2));
        assert_eq!(problem(&[0, 2]), NotATree::Cycle(2));
    }

    #[test]
    fn a_tree_computes_its_root_children_and_depth() {
        let tree = Heads::new(vec![2, 0, 4, 2]).unwrap();
        assert_eq!((tree.root(), tree.depth()), (2, 2));
        assert_eq!(tree.children(), [vec![2], vec![], vec![1, 4], vec![], vec![3]]);
        assert_eq!(tree.top_down(), [2, 1, 4, 3]);
    }

    #[test]
    fn a_projective_tree_has_gold_transitions() {
        let tree = Heads::new(vec![2, 0, 4, 2]).unwrap();
        let gold = tree.transitions().unwrap();
        assert_eq!(gold, [Shift, Shift, LeftArc, Shift, Shift, LeftArc, RightArc]);
        assert_eq!(execute(4, &gold), Some(tree));
    }

    #[test]
    fn a_tree_with_crossing_arcs_has_no_transitions() {
        let tree = Heads::new(vec![3, 4, 0, 3]).unwrap();
        assert!(!tree.is_projective());
    }

    #[test]
    fn transitions_that_do_not_build_a_tree_are_rejected() {
        assert_eq!(execute(2, &[Shift, LeftArc, Shift]), None);
        assert_eq!(execute(1, &[Shift, Shift, LeftArc]), None);
        assert_eq!(execute(2, &[Shift, Shift]), None);
        assert_eq!(execute(u32::MAX, &[]), None);
    }

    /// Returns whether the head of every word dominates all words strictly between them.
    fn is_projective_by_definition(heads: &[u32]) -> bool {
        (1..).zip(heads).filter(|&(_, &head)| head != 0).all(|(word, &head)| {
            (word.min(head) + 1..word.max(head)).all(|between| {
                let mut above = between;
                while above != 0 && above != head {
                    above = heads[above as usize - 1];
                }
                above == head
            })
        })
    }

    #[test]
    fn transitions_exist_exactly_for_projective_trees() {
        let (mut trees, mut projective) = (0, 0);
        for seed in 0..2000 {
            let mut random = Random::new(seed);
            let words = random.between(1, 6);
            let heads: Vec<u32> = (0..words).map(|_| random.between(0, words)).collect();
            let Ok(tree) = Heads::new(heads) else {
                continue;
            };
            trees += 1;
            let gold = tree.transitions();
            assert_eq!(gold.is_some(), is_projective_by_definition(tree.heads()), "seed {seed}");
            if let Some(gold) = gold {
                projective += 1;
                assert_eq!(execute(words, &gold), Some(tree), "seed {seed}");
            }
        }
        assert!(projective > 100 && trees > projective + 20, "{projective} of {trees}");
    }
}
