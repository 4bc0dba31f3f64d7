//! Workload c: the similarity of two sentences from their dependency trees (Tai et al. 2015).

use crate::Model;
use crate::data::peers::Dependencies;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::recurrent::Hoist;
use autobatch_nn::{ChildSumTreeLstm, Embedding, Linear, losses};

/// The number of ratings, which start at 1.
const RATINGS: usize = 5;

/// Widths of a [`Similarity`].
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// The width of a word's vector.
    pub embedding: usize,
    /// The width of a node's state.
    pub memory: usize,
    /// The width of the comparison.
    pub hidden: usize,
}

/// Encodes both trees, compares the roots' memories by product and distance, and computes
/// log-probabilities of the ratings.
#[derive(Clone, Copy, Debug)]
pub struct Similarity {
    node: ChildSumTreeLstm,
    compare: Cell<2, 1>,
}

impl Similarity {
    /// Declares the model. The widths of the comparative benchmark are 300, 150 and 50.
    pub fn new(m: &mut ModuleBuilder, words: usize, widths: Widths) -> Self {
        let Widths { embedding, memory, hidden } = widths;
        let both = Linear::new(m, "both", memory.saturating_mul(2), hidden);
        let out = Linear::new(m, "out", hidden, RATINGS);
        let words = Embedding::new(m, "words", words, embedding);
        Similarity {
            // One product covers the words of all inner nodes, and one the words of all leaves.
            node: ChildSumTreeLstm::of_words(m, "node", words, memory, Hoist::Yes, &Init::Glorot(1.0)),
            compare: m.cell("compare", [f32([memory]); 2], |g, [a, b]| {
                [out.on(both.on_parts(g, [a * b, (a - b).abs()]).sigmoid()).log_softmax()]
            }),
        }
    }

    /// Emits the memory of the root. Every word follows its head, so a walk from the end visits children
    /// first.
    pub fn encode<'g>(&self, g: &'g Graph, tree: &Dependencies) -> Value<'g> {
        let mut children: Vec<Vec<[Value<'g>; 2]>> = vec![Vec::new(); tree.words.len()];
        for (number, (&word, &parent)) in tree.words.iter().zip(&tree.parent).enumerate().rev() {
            let mut below = std::mem::take(&mut children[number]);
            below.reverse();
            let state = self.node.node(g, word, &below);
            match usize::try_from(parent) {
                Ok(parent) if parent < number => children[parent].push(state),
                _ => return state[1],
            }
        }
        g.zeros([self.node.width()])
    }

    /// Emits the log-probability of every rating.
    pub fn ratings<'g>(&self, g: &'g Graph, first: &Dependencies, second: &Dependencies) -> Value<'g> {
        let [ratings] = g.call(self.compare, [self.encode(g, first), self.encode(g, second)]);
        ratings
    }
}

/// Returns the mean rating of an output, which holds the log-probability of every rating.
pub fn expected_rating(output: &Row) -> f64 {
    (1..).zip(output.iter()).map(|(rating, p)| f64::from(rating) * f64::from(p.exp())).sum()
}

impl Model for Similarity {
    type Instance = (Dependencies, Dependencies, f64);

    fn emit<'g>(&self, g: &'g Graph, instance: &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.push(self.ratings(g, &instance.0, &instance.1));
    }

    fn loss<'g>(&self, g: &'g Graph, (first, second, score): &Self::Instance) -> Value<'g> {
        let wanted = g.input(&losses::rating_distribution(*score as f32, RATINGS));
        self.ratings(g, first, second).kl_div(wanted)
    }

    /// Correlates the expected rating with the target.
    fn score(&self, (.., wanted): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        for output in outputs {
            let rating = expected_rating(output);
            scores.pair("pearson", rating, *wanted);
            scores.number("squared error", (rating - wanted).powi(2));
        }
    }
}
