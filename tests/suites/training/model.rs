//! A small model with all constructs that training must support: cells, a table, lists, dropout, and trees
//! of any shape. A seed determines its data.

use autobatch::nn::Linear;
use autobatch::prelude::*;
use autobatch::random::Random;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const CLASSES: u32 = 3;
const WORDS: u32 = 12;
const WIDTH: usize = 10;

/// A tree over words. The model classifies it by the sum of its words.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Leaf(u32),
    Node(Box<[Tree; 2]>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    words: Table,
    node: Cell<2, 1>,
    out: Linear,
}

impl Model {
    pub(crate) fn new() -> (Model, Arc<Module>) {
        let mut m = ModuleBuilder::new("trees");
        let words = m.table("words", [WORDS as usize, WIDTH], Init::Uniform(0.5));
        let join = Linear::new(&mut m, "join", 2 * WIDTH, WIDTH);
        let out = Linear::new(&mut m, "out", WIDTH, CLASSES as usize);
        let node = m.cell("node", [f32([WIDTH]); 2], |g, pair| [join.on_parts(g, pair).tanh().dropout(0.1)]);
        (Model { words, node, out }, m.build().unwrap())
    }

    fn encode<'g>(&self, g: &'g Graph, tree: &Tree, all: &mut Vec<Value<'g>>) -> Value<'g> {
        let value = match tree {
            Tree::Leaf(word) => self.words.lookup(g, *word),
            Tree::Node(kids) => {
                let pair = [&kids[0], &kids[1]].map(|kid| self.encode(g, kid, all));
                let [value] = g.call(self.node, pair);
                value
            }
        };
        all.push(value);
        value
    }

    pub(crate) fn logits<'g>(&self, g: &'g Graph, tree: &Tree) -> Value<'g> {
        let mut all = Vec::new();
        self.encode(g, tree, &mut all);
        self.out.on(g.list(&all).max().dropout(0.1))
    }

    pub(crate) fn loss<'g>(&self, g: &'g Graph, (tree, class): &(Tree, u32)) -> Value<'g> {
        self.logits(g, tree).cross_entropy(*class)
    }
}

fn tree(random: &mut Random, leaves: usize, sum: &mut u32) -> Tree {
    if leaves == 1 {
        let word = random.index(WORDS as usize) as u32;
        *sum += u32::from(word >= WORDS / 2);
        return Tree::Leaf(word);
    }
    let left = 1 + random.index(leaves - 1);
    Tree::Node(Box::new([left, leaves - left].map(|leaves| tree(random, leaves, sum))))
}

/// Draws trees of one to eight leaves. The class depends on the number of large words.
pub(crate) fn data(seed: u64, count: usize) -> Vec<(Tree, u32)> {
    let mut random = Random::new(seed);
    let mut one = || {
        let leaves = 1 + random.index(8);
        let mut sum = 0;
        let tree = tree(&mut random, leaves, &mut sum);
        (tree, (sum * CLASSES / (leaves as u32 + 1)).min(CLASSES - 1))
    };
    (0..count).map(|_| one()).collect()
}

pub(crate) fn trainer(threads: usize) -> (Model, Trainer) {
    let (model, module) = Model::new();
    let options = SessionOptions { threads, seed: 7, ..SessionOptions::default() };
    let weights = Arc::new(Weights::init(&module, 7));
    (model, Trainer::with_options(module, Adam::new(0.02), weights, options).unwrap())
}

/// Returns the bits of all parameters.
pub(crate) fn bits(trainer: &Trainer) -> Vec<u32> {
    trainer.weights().iter().flat_map(|param| param.values().iter().map(|x| x.to_bits())).collect()
}

/// Trains from the trainer's current position. Returns the bits of the losses.
pub(crate) fn train(
    model: &Model,
    trainer: &mut Trainer,
    data: &[(Tree, u32)],
    epochs: std::ops::Range<u64>,
) -> Vec<u32> {
    let mut losses = Vec::new();
    for epoch in epochs {
        for batch in data.batches(16).shuffled(epoch) {
            let step = trainer.step(batch, |g, item| model.loss(g, item)).unwrap();
            losses.push(step.loss.to_bits());
        }
    }
    losses
}

/// Returns the path of a temporary file that only this test uses.
pub(crate) fn file(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("autobatch-training-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}
