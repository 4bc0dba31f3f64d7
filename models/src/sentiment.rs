//! Sentiment of every phrase of a sentence: a binary tree LSTM with a label at each node.

use crate::Model;
use crate::data::binary_tree::BinaryTree;
use crate::scores::Scores;
use crate::spinn::Spinn;
use autobatch::prelude::*;
use autobatch_nn::{Linear, losses};

/// The number of labels, from very negative to very positive.
const LABELS: usize = 5;

/// The encoder of [`Spinn`] with a classifier at every node.
#[derive(Clone, Copy, Debug)]
pub struct Sentiment {
    encoder: Spinn,
    out: Linear,
}

impl Sentiment {
    /// Declares the model. Vectors of words and phrases have width `width`.
    pub fn new(m: &mut ModuleBuilder, words: usize, width: usize) -> Self {
        let encoder = Spinn::new(m, words, width, LABELS);
        Sentiment { encoder, out: encoder.classifier() }
    }

    /// Emits the scores of every phrase, the whole sentence last.
    pub fn scores<'g>(&self, g: &'g Graph, tree: &BinaryTree<u32>) -> Vec<Value<'g>> {
        self.encoder.states(g, tree).into_iter().map(|[h, _]| self.out.on(h)).collect()
    }
}

impl Model for Sentiment {
    /// A tree and the label of every node, in the order of `tree.nodes()`.
    type Instance = (BinaryTree<u32>, Vec<u32>);

    fn emit<'g>(&self, g: &'g Graph, (tree, _): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.extend(self.scores(g, tree));
    }

    fn loss<'g>(&self, g: &'g Graph, (tree, labels): &Self::Instance) -> Value<'g> {
        losses::sequence_cross_entropy(g, self.scores(g, tree), labels.iter().copied())
    }

    fn score(&self, (tree, labels): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        // The root comes first, so its accuracy is the first score.
        scores.declare_rate("root accuracy");
        for (node, (output, &label)) in (0..).zip(outputs.iter().zip(labels)) {
            let hit = output.argmax() == label as usize;
            if node == tree.root() {
                scores.hit("root accuracy", hit);
            }
            scores.hit("node accuracy", hit);
        }
    }
}
