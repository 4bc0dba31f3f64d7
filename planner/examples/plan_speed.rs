//! What emitting and planning cost: nanoseconds an application, for minibatches of random trees.
//!
//! `cargo run --release -p autobatch-planner --example plan_speed [policy]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Param, Value, f32};
use autobatch_planner::schedule::Policy;
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

fn main() {
    let word = std::env::args().nth(1).unwrap_or_else(|| "auto".to_owned());
    let policy: Policy = word.parse().expect("a policy");
    let (module, model) = model();
    let mut planner = Planner::new(policy.load().expect("a readable policy"));
    for trees in [32, 128, 512, 2560, 25_600] {
        let mut graph = Graph::new(&module);
        let rounds = (30_000 / trees).clamp(3, 101);
        let (mut emit, mut plan) = (Vec::new(), [Vec::new(), Vec::new()]);
        let mut last = None;
        for _ in 0..rounds {
            graph.clear();
            let mut random = 7;
            let start = Instant::now();
            let mut logits = Vec::with_capacity(trees);
            for key in 0..trees {
                graph.instance(key as u64);
                let [h, _] = tree(&graph, &model, 20, &mut random);
                logits.extend(h.affine(model.out, None).id());
            }
            emit.push(start.elapsed().as_secs_f64());
            for (times, rows) in plan.iter_mut().zip([RowOrder::Batch, RowOrder::Propagated]) {
                let request = Request { wanted: &logits, rows, ..Request::default() };
                let start = Instant::now();
                last = Some(planner.plan(&graph.data(), &request).expect("a plan"));
                times.push(start.elapsed().as_secs_f64());
            }
        }
        let applications = graph.data().arena.len();
        let each = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2] * 1e9 / applications as f64
        };
        let (emit, [batch, propagated]) = (each(&mut emit), plan.each_mut().map(each));
        let certificate = last.expect("at least one round").certificate;
        println!(
            "{trees:>6} trees {applications:>8} applications: emit {emit:5.1}, plan {batch:6.1} in batch order, {propagated:6.1} propagated ns each; batches {} bound {}, direct {} tabled {}",
            certificate.batches, certificate.bound, certificate.direct, certificate.tabled,
        );
    }
}
