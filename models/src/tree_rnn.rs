//! Workload f, trees: the simple recursive network with a classifier of the root.

use crate::Model;
use crate::data::binary_tree::BinaryTree;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Embedding, Linear, TreeRnn};

/// The recursion `h = tanh([left right] · W)` without biases.
#[derive(Clone, Copy, Debug)]
pub struct TreeRnnClassifier {
    words: Embedding,
    node: TreeRnn<2>,
    out: Linear,
}

impl TreeRnnClassifier {
    /// Declares the model. Vectors of words and nodes have width `width`.
    pub fn new(m: &mut ModuleBuilder, words: usize, width: usize, classes: usize) -> Self {
        TreeRnnClassifier {
            words: Embedding::new(m, "words", words, width),
            node: TreeRnn::new(m, "node", width),
            out: Linear::no_bias(m, "out", width, classes),
        }
    }

    /// Emits the score of every class.
    pub fn logits<'g>(&self, g: &'g Graph, tree: &BinaryTree<u32>) -> Value<'g> {
        let values = tree
            .bottom_up(|&word| self.words.lookup(g, word), |left, right| self.node.node(g, [left, right]));
        self.out.on(values[tree.root() as usize])
    }
}

impl Model for TreeRnnClassifier {
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
