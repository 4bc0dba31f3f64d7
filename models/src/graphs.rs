//! Graphs with a class each, such as molecules: a gated graph network.

use crate::Model;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Embedding, GatedGraph, GatedSum, Linear};

/// A graph as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The label of each node.
    pub labels: Vec<u32>,
    /// The neighbours of each node.
    pub neighbours: Vec<Vec<u32>>,
    /// The class.
    pub class: u32,
}

/// A model that gives a score to each class of a graph.
pub trait GraphClassifier: Send + Sync {
    /// Declares the model. States have width `width`.
    fn declare(m: &mut ModuleBuilder, labels: usize, classes: usize, width: usize) -> Self;

    /// Emits the score of every class.
    fn scores<'g>(&self, g: &'g Graph, graph: &Numbered) -> Value<'g>;
}

impl<M: GraphClassifier> Model for M {
    type Instance = Numbered;

    fn emit<'g>(&self, g: &'g Graph, graph: &Numbered, outputs: &mut Vec<Value<'g>>) {
        outputs.push(self.scores(g, graph));
    }

    fn loss<'g>(&self, g: &'g Graph, graph: &Numbered) -> Value<'g> {
        self.scores(g, graph).cross_entropy(graph.class)
    }

    fn score(&self, graph: &Numbered, outputs: &[&Row], scores: &mut Scores) {
        for output in outputs {
            scores.hit("accuracy", output.argmax() == graph.class as usize);
        }
    }
}

/// The rounds of messages of a gated graph network.
const ROUNDS: usize = 4;

/// A gated graph network (Li et al. 2016): the vectors of the nodes' labels, four rounds of messages, a gated sum over the nodes,
/// and a linear layer for the classes.
#[derive(Clone, Copy, Debug)]
pub struct GatedGraphs {
    labels: Embedding,
    rounds: GatedGraph,
    readout: GatedSum,
    out: Linear,
}

impl GraphClassifier for GatedGraphs {
    fn declare(m: &mut ModuleBuilder, labels: usize, classes: usize, width: usize) -> Self {
        GatedGraphs {
            labels: Embedding::new(m, "labels", labels, width),
            rounds: GatedGraph::new(m, "graph", width),
            readout: GatedSum::new(m, "readout", width, width),
            out: Linear::new(m, "out", width, classes),
        }
    }

    fn scores<'g>(&self, g: &'g Graph, graph: &Numbered) -> Value<'g> {
        let xs: Vec<_> = graph.labels.iter().map(|&label| self.labels.lookup(g, label)).collect();
        let states = self.rounds.run(g, &xs, &graph.neighbours, ROUNDS);
        self.out.on(self.readout.on(g, &states, &xs))
    }
}
