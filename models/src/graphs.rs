//! Graphs with a class each, such as molecules: a gated graph network and a graph attention network.

use crate::Model;
use crate::scores::Scores;
use crate::transformer::heads;
use autobatch::prelude::*;
use autobatch_nn::{
    Activation, Embedding, GatedGraph, GatedSum, GraphAttention, GraphAttentionOptions, Linear,
};

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

/// The layers of a graph attention network.
const LAYERS: usize = 2;

/// A graph attention network (Veličković et al. 2018): the vectors of the nodes' labels, two layers of attention over neighbours,
/// the mean over the nodes, and a linear layer for the classes.
#[derive(Clone, Copy, Debug)]
pub struct AttentionGraphs {
    labels: Embedding,
    layers: [GraphAttention; LAYERS],
    out: Linear,
}

impl GraphClassifier for AttentionGraphs {
    fn declare(m: &mut ModuleBuilder, labels: usize, classes: usize, width: usize) -> Self {
        let options =
            GraphAttentionOptions { activation: Activation::Elu(1.0), ..GraphAttentionOptions::default() };
        let mut layer = |name| GraphAttention::with_options(m, name, [width; 2], heads(width), options);
        let layers = ["graph.0", "graph.1"].map(&mut layer);
        AttentionGraphs {
            labels: Embedding::new(m, "labels", labels, width),
            layers,
            out: Linear::new(m, "out", width, classes),
        }
    }

    fn scores<'g>(&self, g: &'g Graph, graph: &Numbered) -> Value<'g> {
        let mut states: Vec<_> = graph.labels.iter().map(|&label| self.labels.lookup(g, label)).collect();
        for layer in &self.layers {
            states = layer.run(g, &states, &graph.neighbours);
        }
        self.out.on(g.list(states).mean())
    }
}
