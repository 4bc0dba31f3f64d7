//! A binary tree LSTM, written for one tree and run over many.
//!
//! ```text
//! cargo run --release --example treelstm
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::nn::Linear;
use autobatch::prelude::*;

enum Tree {
    Leaf(u32),
    Node(Box<[Tree; 2]>),
}

/// Handles of cells and parameters: no numbers, no lifetimes.
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

    /// Plain recursion over one tree.
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

/// Trees of 2 to 40 words, shaped by a fixed sequence of numbers.
struct Trees(u64);

impl Trees {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn tree(&mut self, leaves: u64) -> Tree {
        if leaves <= 1 {
            return Tree::Leaf(self.below(1000) as u32);
        }
        let left = 1 + self.below(leaves - 1);
        Tree::Node(Box::new([self.tree(left), self.tree(leaves - left)]))
    }
}

fn main() -> autobatch::Result<()> {
    let mut m = ModuleBuilder::new("treelstm");
    let model = TreeLstm::new(&mut m, 1000, 100, 5);
    let mut session = Session::new(&m.build()?, Device::Cpu)?;

    let mut source = Trees(1);
    let trees: Vec<Tree> =
        (0..128).map(|_| 2 + source.below(39)).map(|leaves| Trees(leaves).tree(leaves)).collect();
    let logits = session.predict(&trees, |g, tree| model.logits(g, tree))?;
    let plan = session.last_plan().expect("a plan was just played");
    let certificate = plan.certificate;
    println!("{} trees, {} applications", trees.len(), plan.lanes.len());
    println!("{} batches; no schedule has fewer than {}", certificate.batches, certificate.bound);
    println!("scores of the first tree: {:?}", logits[0]);
    Ok(())
}
