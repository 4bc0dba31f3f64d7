//! Measures the reference interpreter on Tree-LSTMs, forward and reverse.
//!
//! `cargo run --release -p autobatch-oracle --example reference_speed [nodes] [width]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::numeric::Real;
use autobatch_ir::{Cell, Graph, GraphData, INDEX, Init, ModuleBuilder, Value, Weights, f32};
use autobatch_oracle::reference::{Evaluation, Noise};
use std::time::Instant;

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
}

/// Emits a random binary tree and returns the state of its root.
fn tree<'g>(g: &'g Graph, model: &Model, leaves: usize, random: &mut u64) -> [Value<'g>; 2] {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let draw = (*random >> 33) as usize;
    if leaves == 1 {
        return g.call(model.leaf, (draw % 1000) as u32);
    }
    let left = 1 + draw % (leaves - 1);
    let [lh, lc] = tree(g, model, left, random);
    let [rh, rc] = tree(g, model, leaves - left, random);
    g.call(model.node, [lh, lc, rh, rc])
}

fn measure<T: Real>(name: &str, graph: &GraphData, weights: &Weights) {
    let losses: Vec<_> = graph.outputs.iter().map(|output| (output.value, 1.0)).collect();
    let evaluation = Evaluation::<T>::new(graph, weights, Noise::Off).expect("the graph is small");
    let start = Instant::now();
    let run = evaluation.forward().expect("all indices exist");
    let forward = start.elapsed();
    let start = Instant::now();
    let gradients = evaluation.reverse(&run, &losses).expect("losses are scalars");
    let reverse = start.elapsed();
    let first = graph.module.param("w").and_then(|w| Some(gradients.param(w.id()?)?[0].to_f64()));
    println!("{name}: forward {forward:.2?}, reverse {reverse:.2?}, first gradient {first:?}");
}

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let (nodes, width) = (arguments.next().unwrap_or(10_000), arguments.next().unwrap_or(128));
    let mut m = ModuleBuilder::new("treelstm");
    let embed = m.table("embed", [1000, width], Init::Uniform(0.1));
    let w = m.param("w", [2 * width, 5 * width], Init::Glorot(1.0));
    let b = m.param("b", [5 * width], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([width])]);
    let node = m.cell("node", [f32([width]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], w, Some(b)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    let module = m.build().expect("the model is valid");
    let model = Model { leaf, node };
    let g = Graph::new(&module);
    let (mut random, mut instance) = (1, 0);
    while g.data().arena.len() < nodes {
        g.instance(instance);
        let [h, _] = tree(&g, &model, 20, &mut random);
        g.loss(&format!("loss{instance}"), h.cross_entropy(1));
        instance += 1;
    }
    let graph = g.finish().expect("the model emits without faults");
    let weights = Weights::init(&module, 1);
    println!("{} nodes, {instance} instances, width {width}", graph.arena.len());
    measure::<f32>("f32", &graph, &weights);
    measure::<f64>("f64", &graph, &weights);
}
