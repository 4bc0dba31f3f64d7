//! Workload b: a binary tree LSTM over parses, like SPINN, with a classifier of the root.

use crate::Model;
use crate::data::binary_tree::BinaryTree;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Linear, TreeLstm};

/// Leaves are word vectors with a zero memory, inner nodes are a [`TreeLstm`], and a linear layer classifies
/// the root.
#[derive(Clone, Copy, Debug)]
pub struct Spinn {
    leaf: Cell<1, 2>,
    node: TreeLstm<2>,
    out: Linear,
}

impl Spinn {
    /// Declares the model. Vectors of words and nodes have width `width`.
    pub fn new(m: &mut ModuleBuilder, words: usize, width: usize, classes: usize) -> Self {
        let embed = m.table("words", [words, width], Init::Normal(1.0));
        Spinn {
            leaf: m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([width])]),
            node: TreeLstm::new(m, "node", width),
            out: Linear::new(m, "out", width, classes),
        }
    }

    /// Emits the state `[h, c]` of every node.
    pub fn states<'g>(&self, g: &'g Graph, tree: &BinaryTree<u32>) -> Vec<[Value<'g>; 2]> {
        tree.bottom_up(|&word| g.call(self.leaf, word), |left, right| self.node.node(g, [left, right]))
    }

    /// Returns the classifier of a node's `h`.
    pub fn classifier(&self) -> Linear {
        self.out
    }

    /// Emits the score of every class.
    pub fn logits<'g>(&self, g: &'g Graph, tree: &BinaryTree<u32>) -> Value<'g> {
        let [root, _] = self.states(g, tree)[tree.root() as usize];
        self.out.on(root)
    }
}

impl Model for Spinn {
    type Instance = (BinaryTree<u32>, u32);

    fn emit<'g>(&self, g: &'g Graph, (tree, _): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.push(self.logits(g, tree));
    }

    fn loss<'g>(&self, g: &'g Graph, (tree, class): &Self::Instance) -> Value<'g> {
        self.logits(g, tree).cross_entropy(*class)
    }

    fn score(&self, (_, class): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        outputs.iter().for_each(|output| scores.hit("accuracy", output.argmax() == *class as usize));
    }
}
