//! The time and effect of passes: nanoseconds per node of the given graph, for minibatches of random trees, written as ops and with
//! cells.
//!
//! `cargo run --release -p autobatch-planner --example pass_speed`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::{Cell, Graph, GraphData, INDEX, Init, ModuleBuilder, Param, Table, Value, ValueId, f32};
use autobatch_oracle::equivalent::equivalent;
use autobatch_planner::passes::{PASSES, Verify, all, optimize};
use autobatch_planner::{Planner, Request, Selection};
use std::time::Instant;

const WIDTH: usize = 128;

#[derive(Clone, Copy)]
struct Model {
    embed: Table,
    weight: Param,
    bias: Param,
    out: Param,
    /// The cells to call. `None` emits ops.
    cells: Option<(Cell<1, 2>, Cell<4, 2>)>,
}

/// The state of a node from the states of its children.
fn node<'g>(g: &'g Graph, model: Model, [lh, lc, rh, rc]: [Value<'g>; 4]) -> [Value<'g>; 2] {
    let [a, i, l, r, o] = g.affine([lh, rh], model.weight, Some(model.bias)).split();
    let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
    [o.sigmoid() * c.tanh(), c]
}

/// Emits a random binary tree with `leaves` leaves.
fn tree<'g>(g: &'g Graph, model: Model, leaves: usize, random: &mut u64) -> [Value<'g>; 2] {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    if leaves == 1 {
        let word = (*random >> 33) as u32 % 1000;
        return match model.cells {
            Some((leaf, _)) => g.call(leaf, word),
            None => [model.embed.lookup(g, word), g.zeros([WIDTH])],
        };
    }
    let left = 1 + (*random >> 33) as usize % (leaves - 1);
    let [lh, lc] = tree(g, model, left, random);
    let [rh, rc] = tree(g, model, leaves - left, random);
    match model.cells {
        Some((_, cell)) => g.call(cell, [lh, lc, rh, rc]),
        None => node(g, model, [lh, lc, rh, rc]),
    }
}

fn emit(trees: usize, with_cells: bool) -> (GraphData, Vec<ValueId>) {
    let mut m = ModuleBuilder::new("ops");
    let mut model = Model {
        embed: m.table("embed", [1000, WIDTH], Init::Uniform(0.1)),
        weight: m.param("w", [2 * WIDTH, 5 * WIDTH], Init::Glorot(1.0)),
        bias: m.param("b", [5 * WIDTH], Init::ZEROS),
        out: m.param("out", [WIDTH, 5], Init::Glorot(1.0)),
        cells: None,
    };
    if with_cells {
        let leaf = m.cell("leaf", [INDEX], |g, [word]| [model.embed.row(word), g.zeros([WIDTH])]);
        let node = m.cell("node", [f32([WIDTH]); 4], |g, ports| node(g, model, ports));
        model.cells = Some((leaf, node));
    }
    let graph = Graph::new(&m.build().expect("the model is well typed"));
    let mut random = 7;
    let mut wanted = Vec::new();
    for key in 0..trees {
        graph.instance(key as u64);
        let [h, _] = tree(&graph, model, 20, &mut random);
        wanted.extend(h.affine(model.out, None).id());
    }
    (graph.finish().expect("the model is well typed"), wanted)
}

/// The median time of some rounds, in nanoseconds per node.
fn time<T>(rounds: usize, nodes: usize, mut run: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(run());
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2] * 1e9 / nodes as f64
}

fn main() {
    for (trees, with_cells) in [(32, false), (360, false), (3600, false), (320, true), (3200, true)] {
        let (graph, wanted) = emit(trees, with_cells);
        let nodes = graph.arena.len();
        let rounds = (20_000 / trees).clamp(3, 41);
        println!("{trees} trees, {nodes} nodes{}", if with_cells { " of cells" } else { "" });
        for pass in PASSES {
            let mut selection = Selection::none().with(pass.name, true).expect("a pass");
            selection.verify = Verify::Off;
            let run = || optimize(&graph, &wanted, autobatch_ir::plan::Mode::Infer, &selection, &mut all);
            let spent = time(rounds, nodes, run);
            println!("  {:>6.1} ns  {}", spent, run().expect("no check fails").log[0]);
        }
        let mut planner = Planner::default();
        let request = Request { wanted: &wanted, ..Request::default() };
        for (name, on) in [("as it stands", false), ("after the default passes", true)] {
            let mut selection = if on { Selection::of_mode(request.mode) } else { Selection::none() };
            selection.verify = Verify::Off;
            let mut run = || planner.optimize_and_plan(&graph, &request, &selection).expect("a plan");
            let spent = time(rounds.min(7), nodes, &mut run);
            let certificate = run().plan.certificate;
            println!("  {spent:>6.1} ns  planned {name}: {} batches", certificate.batches);
        }
        let selection = Selection::of_mode(request.mode);
        let optimized =
            optimize(&graph, &wanted, request.mode, &selection, &mut all).expect("no check fails");
        let pairs: Vec<_> = optimized.renaming.pairs().collect();
        let spent = time(3, nodes, || equivalent(&graph, &optimized.graph, &pairs).expect("a proof"));
        println!("  {spent:>6.1} ns  proof");
    }
}
