//! A binary Tree-LSTM, written for one tree and trained on minibatches of trees.
//!
//! The task is artificial: the class of a tree is its share of words with large numbers.
//!
//! ```text
//! cargo run --release --example treelstm
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::nn::Linear;
use autobatch::prelude::*;
use autobatch::random::Random;

enum Tree {
    Leaf(u32),
    Node(Box<[Tree; 2]>),
}

/// Handles of cells and parameters. They hold no weights and have no lifetimes.
struct TreeLstm {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    out: Linear,
}

impl TreeLstm {
    fn new(m: &mut ModuleBuilder, words: usize, h: usize, classes: usize) -> Self {
        let embed = m.table("embed", [words, h], Init::Uniform(0.1));
        // Parameters are declared before the cell that uses them.
        let gates = Linear::new(m, "gates", 2 * h, 5 * h);
        let out = Linear::new(m, "out", h, classes);
        let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([h])]);
        let node = m.cell("node", [f32([h]); 4], |g, [lh, lc, rh, rc]| {
            let [a, i, l, r, o] = gates.on_parts(g, [lh, rh]).split();
            let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
            [o.sigmoid() * c.tanh(), c]
        });
        TreeLstm { leaf, node, out }
    }

    /// Encodes one tree by plain recursion.
    fn encode<'g>(&self, g: &'g Graph, tree: &Tree) -> [Value<'g>; 2] {
        match tree {
            Tree::Leaf(word) => g.call(self.leaf, *word),
            Tree::Node(kids) => {
                let [lh, lc] = self.encode(g, &kids[0]);
                let [rh, rc] = self.encode(g, &kids[1]);
                g.call(self.node, [lh, lc, rh, rc])
            }
        }
    }

    fn logits<'g>(&self, g: &'g Graph, tree: &Tree) -> Value<'g> {
        let [h, _] = self.encode(g, tree);
        self.out.on(h)
    }
}

/// Trees with their classes.
struct Data {
    train: Vec<(Tree, u32)>,
    valid: Vec<(Tree, u32)>,
}

const WORDS: usize = 100;
const CLASSES: usize = 5;

impl Data {
    fn generate(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut trees = |count: usize| -> Vec<(Tree, u32)> {
            let mut one = |_| {
                let leaves = 2 + random.index(19);
                let mut large = 0;
                let tree = grow(&mut random, leaves, &mut large);
                (tree, (large * CLASSES / (leaves + 1)) as u32)
            };
            (0..count).map(&mut one).collect()
        };
        Data { train: trees(1600), valid: trees(400) }
    }
}

/// A tree of random shape. Adds the number of its large words to `large`.
fn grow(random: &mut Random, leaves: usize, large: &mut usize) -> Tree {
    if leaves == 1 {
        let word = random.index(WORDS);
        *large += usize::from(word >= WORDS / 2);
        return Tree::Leaf(word as u32);
    }
    let left = 1 + random.index(leaves - 1);
    Tree::Node(Box::new([left, leaves - left].map(|leaves| grow(random, leaves, large))))
}

fn main() -> autobatch::Result<()> {
    let data = Data::generate(1);
    let mut m = ModuleBuilder::new("treelstm");
    let model = TreeLstm::new(&mut m, WORDS, 64, CLASSES);
    let mut trainer = Trainer::new(m.build()?, Adam::new(2e-3))?.on_device(Device::best())?;
    let checkpoint = std::env::temp_dir().join("treelstm.safetensors");
    for epoch in 0..8 {
        let mut bar = Bar::new(&format!("epoch {epoch}"), data.train.len().div_ceil(32));
        for batch in data.train.batches(32).shuffled(epoch) {
            let step = trainer.step(batch, |g, (tree, label)| model.logits(g, tree).cross_entropy(*label))?;
            bar.report(&step);
        }
        let acc = trainer.evaluate(
            &data.valid,
            |g, (t, _)| model.logits(g, t),
            |(_, y), p| p.argmax() == *y as usize,
        )?;
        println!("epoch {epoch}: accuracy {:.1} %", 100.0 * acc.mean());
        trainer.save(&checkpoint)?;
    }
    Ok(())
}
