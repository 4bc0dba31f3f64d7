//! The time of verifying and proving a plan, for a minibatch of random trees.
//!
//! `cargo run --release -p autobatch-planner --example check_speed [trees]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, Value, f32};
use autobatch_oracle::check::{Wanted, check};
use autobatch_planner::{Gradients, Planner, Request, RowOrder};
use std::time::Instant;

fn main() {
    let trees: u64 = std::env::args().nth(1).map_or(2500, |word| word.parse().expect("a number of trees"));
    let mut m = ModuleBuilder::new("treelstm");
    let embed = m.table("embed", [1000, 128], Init::Uniform(0.1));
    let weight = m.param("w", [256, 640], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([128])]);
    let node = m.cell("node", [f32([128]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], weight, None).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    let g = Graph::new(&m.build().expect("the model is well typed"));
    let mut random = 7u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for key in 0..trees {
        g.instance(key);
        let mut open: Vec<[Value<'_>; 2]> = (0..21).map(|_| g.call(leaf, next(1000) as u32)).collect();
        while open.len() > 1 {
            let at = next(open.len() - 1);
            let right = open.remove(at + 1);
            open[at] = g.call(node, [open[at][0], open[at][1], right[0], right[1]]);
        }
        g.output(&format!("root{key}"), open[0][0]);
    }
    let graph = g.finish().expect("the graph is well typed");
    let losses: Vec<(ValueId, f32)> = graph.outputs.iter().map(|output| (output.value, 1.0)).collect();
    let all = Gradients { losses: &losses, params: None, values: &[] };
    for (mode, rows, gradients) in [
        (Mode::Infer, RowOrder::Propagated, None),
        (Mode::Train, RowOrder::Batch, None),
        (Mode::Train, RowOrder::Propagated, Some(all)),
    ] {
        let request = Request { mode, rows, gradients, ..Request::default() };
        let plan = Planner::default().plan(&graph, &request).expect("the request has roots");
        let (mut verifying, mut proving) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..5 {
            let copy = plan.clone();
            let start = Instant::now();
            let verified = copy.verify().expect("a valid plan");
            verifying = verifying.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            check(&verified, &graph, Wanted { values: &[], training: false }).expect("a correct plan");
            proving = proving.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{mode:?} {rows:?}{}: {} nodes, verify {:.2} ms, check {:.2} ms",
            if gradients.is_some() { " with a reverse" } else { "" },
            graph.arena.len(),
            verifying * 1e3,
            proving * 1e3
        );
    }
}
