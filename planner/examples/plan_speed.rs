//! What emitting and planning cost: nanoseconds an application, for minibatches of random trees.
//!
//! `cargo run --release -p autobatch-planner --example plan_speed [policy [trees [rounds]]]`
//!
//! With `trees` and `rounds` only that size is planned, and only in the default row order, so that
//! a profiler sees nothing else.
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
    let mut words = std::env::args().skip(1);
    let word = words.next().unwrap_or_else(|| "auto".to_owned());
    let mut number = || words.next().map(|word| word.parse::<usize>().expect("a number"));
    let (only_trees, only_rounds) = (number(), number());
    let policy: Policy = word.parse().expect("a policy");
    let (module, model) = model();
    let mut planner = Planner::new(policy.load().expect("a readable policy"));
    let sizes = only_trees.map_or_else(|| vec![32, 128, 512, 2560, 25_600], |trees| vec![trees]);
    let orders = match only_rounds {
        None => vec![RowOrder::Batch, RowOrder::default()],
        Some(_) => vec![RowOrder::default()],
    };
    for trees in sizes {
        let mut graph = Graph::new(&module);
        let rounds = only_rounds.unwrap_or((60_000 / trees).clamp(5, 401));
        let (mut emit, mut plan) = (Vec::new(), vec![Vec::new(); orders.len()]);
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
            for (times, &rows) in plan.iter_mut().zip(&orders) {
                let request = Request { wanted: &logits, rows, ..Request::default() };
                let start = Instant::now();
                last = Some(planner.plan(&graph.data(), &request).expect("a plan"));
                times.push(start.elapsed().as_secs_f64());
            }
        }
        let applications = graph.data().arena.len();
        let each = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            let nanoseconds = |time: f64| time * 1e9 / applications as f64;
            format!("{:.1} ({:.1})", nanoseconds(times[0]), nanoseconds(times[times.len() / 2]))
        };
        print!(
            "{trees:>6} trees {applications:>8} applications, ns each, least (median): emit {}",
            each(emit)
        );
        for (&rows, times) in orders.iter().zip(plan) {
            print!(", plan {rows:?} {}", each(times));
        }
        let certificate = last.expect("at least one round").certificate;
        println!(
            "; batches {} bound {}, direct {} tabled {}",
            certificate.batches, certificate.bound, certificate.direct, certificate.tabled,
        );
    }
}
