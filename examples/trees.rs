//! Encodes a thousand trees of different shapes with one plan. The front page of the repository shows a part of it.
//!
//! ```text
//! cargo run --release --example trees
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::prelude::*;
use autobatch::random::Random;

enum Tree {
    Leaf(u32),
    Node(Box<[Tree; 2]>),
}

struct Model {
    words: Table,
    node: Cell<2, 1>,
}

impl Model {
    fn new(m: &mut ModuleBuilder, words: usize, h: usize) -> Self {
        let words = m.table("words", [words, h], Init::Uniform(0.1));
        let (w, b) = (m.param("w", [2 * h, h], Init::Glorot(1.0)), m.param("b", [h], Init::ZEROS));
        let node = m.cell("node", [f32([h]); 2], |g, [l, r]| [g.affine([l, r], w, Some(b)).tanh()]);
        Model { words, node }
    }

    fn encode<'g>(&self, g: &'g Graph, tree: &Tree) -> Value<'g> {
        match tree {
            Tree::Leaf(word) => self.words.lookup(g, *word),
            Tree::Node(children) => {
                let [l, r] = [&children[0], &children[1]].map(|child| self.encode(g, child));
                let [h] = g.call(self.node, [l, r]);
                h
            }
        }
    }
}

/// A tree of random shape.
fn grow(random: &mut Random, leaves: usize) -> Tree {
    if leaves == 1 {
        return Tree::Leaf(random.index(100) as u32);
    }
    let left = 1 + random.index(leaves - 1);
    Tree::Node(Box::new([left, leaves - left].map(|leaves| grow(random, leaves))))
}

pub(crate) fn main() -> autobatch::Result<()> {
    let mut m = ModuleBuilder::new("trees");
    let model = Model::new(&mut m, 100, 64);
    let mut session = Session::new(&m.build()?, Device::Cpu)?;
    let mut random = Random::new(1);
    let trees: Vec<Tree> = (0..1000)
        .map(|_| {
            let leaves = 2 + random.index(19);
            grow(&mut random, leaves)
        })
        .collect();

    let vectors = session.predict(&trees, |g, tree| model.encode(g, tree))?;
    let plan = session.last_plan().expect("predict makes a plan");
    let nodes: u32 = plan.steps.iter().map(|step| step.rows).sum();
    println!("{} trees, {nodes} nodes, {} batches", vectors.len(), plan.certificate.batches);
    Ok(())
}
