//! What emitting costs, through the public door: nanoseconds and bytes an application.
//!
//! `cargo run --release -p autobatch-ir --example emit_speed [applications] [rounds] [cells|ops]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Param, Value, f32};
use std::sync::Arc;
use std::time::Instant;

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    weight: Param,
    bias: Param,
}

enum Tree {
    Leaf(u32),
    Node(Box<[Tree; 2]>),
}

fn model() -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("treelstm");
    let embed = m.table("embed", [1000, 128], Init::Uniform(0.1));
    let weight = m.param("w", [256, 640], Init::Glorot(1.0));
    let bias = m.param("b", [640], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([128])]);
    let node = m.cell("node", [f32([128]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], weight, Some(bias)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    (m.build().expect("the model is well typed"), Model { leaf, node, weight, bias })
}

impl Model {
    fn cells<'g>(&self, g: &'g Graph, tree: &Tree) -> [Value<'g>; 2] {
        match tree {
            Tree::Leaf(word) => g.call(self.leaf, *word),
            Tree::Node(kids) => {
                let [lh, lc] = self.cells(g, &kids[0]);
                let [rh, rc] = self.cells(g, &kids[1]);
                g.call(self.node, [lh, lc, rh, rc])
            }
        }
    }

    /// The same node, op by op: seventeen ops.
    fn ops<'g>(&self, g: &'g Graph, tree: &Tree) -> [Value<'g>; 2] {
        match tree {
            Tree::Leaf(word) => g.call(self.leaf, *word),
            Tree::Node(kids) => {
                let [lh, lc] = self.ops(g, &kids[0]);
                let [rh, rc] = self.ops(g, &kids[1]);
                let [a, i, l, r, o] = g.affine([lh, rh], self.weight, Some(self.bias)).split();
                let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
                [o.sigmoid() * c.tanh(), c]
            }
        }
    }
}

/// A random binary tree with `leaves` leaves.
fn tree(leaves: usize, random: &mut u64) -> Tree {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    if leaves == 1 {
        return Tree::Leaf((*random >> 33) as u32 % 1000);
    }
    let left = 1 + (*random >> 33) as usize % (leaves - 1);
    Tree::Node(Box::new([tree(left, random), tree(leaves - left, random)]))
}

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let wanted = arguments.next().unwrap_or(100_000);
    let rounds = arguments.next().unwrap_or(21);
    let (module, model) = model();
    let mut random = 1;
    // At most 10^5 nodes of trees, emitted again and again: larger ones would measure how fast the
    // trees themselves are read from memory.
    let distinct = wanted.div_ceil(39).min(100_000 / 39);
    let trees: Vec<Tree> = (0..distinct).map(|_| tree(20, &mut random)).collect();
    let mut graph = Graph::new(&module);
    let only = std::env::args().nth(3);
    for (name, by_ops) in [("cell calls", false), ("op by op", true)] {
        if only.as_deref().is_some_and(|only| (only == "ops") != by_ops) {
            continue;
        }
        let mut times: Vec<f64> = (0..rounds + 1)
            .map(|_| {
                graph.clear();
                let start = Instant::now();
                for (key, tree) in trees.iter().cycle().take(wanted.div_ceil(39)).enumerate() {
                    graph.instance(key as u64);
                    if by_ops {
                        model.ops(&graph, tree)
                    } else {
                        model.cells(&graph, tree)
                    };
                }
                start.elapsed().as_secs_f64() * 1e9 / graph.data().arena.len() as f64
            })
            .skip(1)
            .collect();
        times.sort_by(f64::total_cmp);
        graph.check().expect("the model is well typed");
        let data = graph.data();
        println!(
            "{name:>10}: {:>9} applications, {:.1} ns each (median; least {:.1}), {:.1} bytes each of which {:.1} operands",
            data.arena.len(),
            times[times.len() / 2],
            times[0],
            data.arena.capacity_bytes() as f64 / data.arena.len() as f64,
            data.arena.operand_pool().len() as f64 * 4.0 / data.arena.len() as f64,
        );
    }
}
