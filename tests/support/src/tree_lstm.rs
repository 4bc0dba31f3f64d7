//! The model that examples measure: a binary Tree-LSTM over random trees, with logits at the roots.
//!
//! The examples of several crates use it, so their costs of emitting, planning and executing describe
//! one model.

use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Param, Value, f32};
use std::sync::Arc;

/// The number of words of the embedding.
const WORDS: usize = 1000;

/// The handles of the model.
#[derive(Debug)]
pub struct TreeLstm {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    weight: Param,
    bias: Param,
    out: Param,
    out_bias: Param,
}

/// A binary tree over words.
#[derive(Debug)]
pub enum Tree {
    /// A word.
    Leaf(u32),
    /// A node with two children.
    Node(Box<[Tree; 2]>),
}

impl Tree {
    /// Draws a random binary tree with `leaves` leaves.
    pub fn random(leaves: usize, random: &mut u64) -> Self {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (*random >> 33) as usize;
        if leaves == 1 {
            return Self::Leaf((drawn % WORDS) as u32);
        }
        let left = 1 + drawn % (leaves - 1);
        Self::Node(Box::new([Self::random(left, random), Self::random(leaves - left, random)]))
    }

    /// Draws random trees of twenty leaves, which have 39 nodes each.
    pub fn many(count: usize, mut random: u64) -> Vec<Self> {
        (0..count).map(|_| Self::random(20, &mut random)).collect()
    }
}

impl TreeLstm {
    /// Builds the model with vectors of `h` numbers.
    pub fn new(h: usize) -> (Arc<Module>, Self) {
        let mut m = ModuleBuilder::new("treelstm");
        let embed = m.table("embed", [WORDS, h], Init::Uniform(0.1));
        let weight = m.param("w", [2 * h, 5 * h], Init::Glorot(1.0));
        let bias = m.param("b", [5 * h], Init::ZEROS);
        let out = m.param("out", [h, 5], Init::Glorot(1.0));
        let out_bias = m.param("out.b", [5], Init::Uniform(0.1));
        let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([h])]);
        let node = m.cell("node", [f32([h]); 4], |g, children| node(g, weight, bias, children));
        let model = Self { leaf, node, weight, bias, out, out_bias };
        (m.build().expect("the model is well typed"), model)
    }

    /// Emits a tree as calls of cells.
    pub fn cells<'g>(&self, g: &'g Graph, tree: &Tree) -> [Value<'g>; 2] {
        match tree {
            Tree::Leaf(word) => g.call(self.leaf, *word),
            Tree::Node(kids) => {
                let [lh, lc] = self.cells(g, &kids[0]);
                let [rh, rc] = self.cells(g, &kids[1]);
                g.call(self.node, [lh, lc, rh, rc])
            }
        }
    }

    /// Emits a tree as single ops, fifteen per node.
    pub fn ops<'g>(&self, g: &'g Graph, tree: &Tree) -> [Value<'g>; 2] {
        match tree {
            Tree::Leaf(word) => g.call(self.leaf, *word),
            Tree::Node(kids) => {
                let [lh, lc] = self.ops(g, &kids[0]);
                let [rh, rc] = self.ops(g, &kids[1]);
                node(g, self.weight, self.bias, [lh, lc, rh, rc])
            }
        }
    }

    /// Emits the logits of a tree, as calls of cells.
    pub fn logits<'g>(&self, g: &'g Graph, tree: &Tree) -> Value<'g> {
        let [h, _] = self.cells(g, tree);
        h.affine(self.out, Some(self.out_bias))
    }
}

fn node<'g>(g: &'g Graph, weight: Param, bias: Param, [lh, lc, rh, rc]: [Value<'g>; 4]) -> [Value<'g>; 2] {
    let [a, i, l, r, o] = g.affine([lh, rh], weight, Some(bias)).split();
    let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
    [o.sigmoid() * c.tanh(), c]
}
