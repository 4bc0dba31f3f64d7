//! Measures how long a graph takes to print and to parse. It has a million nodes, as a tree LSTM emits them.
//!
//! `cargo run --release -p autobatch-ir --example text_speed [nodes]`

use autobatch_ir::{Cell, Graph, GraphData, INDEX, Init, Module, ModuleBuilder, Value, f32};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    out: Cell<2, 1>,
}

fn model() -> Option<(Arc<Module>, Model)> {
    let mut m = ModuleBuilder::new("tree-lstm");
    let embed = m.table("embed", [18_280, 128], Init::Uniform(0.05));
    let w = m.param("w", [256, 640], Init::Glorot(1.0));
    let b = m.param("b", [640], Init::ZEROS);
    let wo = m.param("wo", [128, 5], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([128])]);
    let node = m.cell("node", [f32([128]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], w, Some(b)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    let out = m.cell("out", [f32([128]), INDEX], |_, [h, label]| [h.affine(wo, None).cross_entropy(label)]);
    Some((m.build().ok()?, Model { leaf, node, out }))
}

/// Trees of random shapes, 20 leaves each, with some plain ops between the calls.
fn emit(nodes: usize) -> Option<GraphData> {
    let (module, model) = model()?;
    let g = Graph::new(&module);
    let mut state = 0x9e37_79b9u32;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (state >> 8) % below
    };
    let mut instance = 0u64;
    while g.data().arena.len() < nodes {
        g.instance(instance);
        let mut forest: Vec<[Value<'_>; 2]> = (0..20).map(|_| g.call(model.leaf, random(18_280))).collect();
        while forest.len() > 1 {
            let place = random(forest.len() as u32 - 1) as usize;
            let [rh, rc] = forest.remove(place + 1);
            let [lh, lc] = forest[place];
            let [h, c] = g.call(model.node, [lh, lc, rh, rc]);
            forest[place] = [h + lh, c];
        }
        let [loss] = g.call(model.out, (forest[0][0], random(5)));
        g.loss(&format!("loss{instance}"), loss);
        instance += 1;
    }
    g.finish().ok()
}

#[allow(clippy::print_stdout, reason = "an example speaks to its user")]
fn main() -> ExitCode {
    let nodes = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1_000_000);
    let Some(graph) = emit(nodes) else { return ExitCode::FAILURE };
    for _ in 0..3 {
        let start = Instant::now();
        let text = graph.to_text();
        let printed = start.elapsed();
        let start = Instant::now();
        let Ok(parsed) = GraphData::from_text(&text) else { return ExitCode::FAILURE };
        let read = start.elapsed();
        if parsed.structure() != graph.structure() || parsed.bindings != graph.bindings {
            return ExitCode::FAILURE;
        }
        println!(
            "{} nodes, {:.1} MB of text: printed in {printed:.3?}, parsed in {read:.3?}",
            graph.arena.len(),
            text.len() as f64 / 1e6,
        );
    }
    ExitCode::SUCCESS
}
