//! What plans cost as text and bytes: milliseconds to write and to read them, for random trees.
//!
//! `cargo run --release -p autobatch-planner --example plan_text_speed [trees]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::plan::Plan;
use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Param, Value, f32};
use autobatch_planner::{Planner, Request, RowOrder};
use std::sync::Arc;
use std::time::Instant;

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    out: Param,
}

fn model() -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("treelstm");
    let embed = m.table("embed", [1000, 128], Init::Uniform(0.1));
    let weight = m.param("w", [256, 640], Init::Glorot(1.0));
    let bias = m.param("b", [640], Init::ZEROS);
    let out = m.param("out", [128, 5], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([128])]);
    let node = m.cell("node", [f32([128]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], weight, Some(bias)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    (m.build().expect("the model is well typed"), Model { leaf, node, out })
}

/// Emits a random binary tree with `leaves` leaves.
fn tree<'g>(g: &'g Graph, model: &Model, leaves: usize, random: &mut u64) -> [Value<'g>; 2] {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    if leaves == 1 {
        return g.call(model.leaf, (*random >> 33) as u32 % 1000);
    }
    let left = 1 + (*random >> 33) as usize % (leaves - 1);
    let [lh, lc] = tree(g, model, left, random);
    let [rh, rc] = tree(g, model, leaves - left, random);
    g.call(model.node, [lh, lc, rh, rc])
}

/// The median of several runs in milliseconds, and the last result.
fn timed<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut times = Vec::new();
    let mut last = run();
    for _ in 0..9 {
        let start = Instant::now();
        last = run();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], last)
}

fn main() {
    let trees = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2500);
    let (module, model) = model();
    for rows in [RowOrder::Propagated, RowOrder::Batch] {
        let graph = Graph::new(&module);
        let mut random = 7;
        let mut logits = Vec::new();
        for key in 0..trees {
            graph.instance(key);
            let [h, _] = tree(&graph, &model, 20, &mut random);
            logits.extend(h.affine(model.out, None).id());
        }
        let request = Request { wanted: &logits, rows, ..Request::default() };
        let plan = Planner::default().plan(&graph.data(), &request).expect("a plan");
        let (print, text) = timed(|| plan.to_text());
        let (parse, parsed) = timed(|| Plan::from_text(&text).expect("what was written can be read"));
        let (save, bytes) = timed(|| plan.to_bytes());
        let (load, loaded) = timed(|| Plan::from_bytes(&bytes).expect("what was written can be read"));
        assert!(parsed == plan && *loaded == plan, "the plan comes back equal");
        let applications = graph.data().arena.len();
        println!(
            "{applications} applications, {} steps, {} table words, rows {rows:?}\n  text {} KiB: print {print:.1} ms, \
             parse {parse:.1} ms\n  bytes {} KiB: save {save:.1} ms, load and verify {load:.1} ms",
            plan.steps.len(),
            plan.tables.len(),
            text.len() >> 10,
            bytes.len() >> 10,
        );
    }
}
