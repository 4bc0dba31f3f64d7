//! The time of writing and reading plans as text and bytes, in milliseconds, for random trees.
//!
//! `cargo run --release -p autobatch-planner --example plan_text_speed [trees]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::Graph;
use autobatch_ir::plan::Plan;
use autobatch_planner::{Planner, Request, RowOrder};
use autobatch_testing::tree_lstm::{Tree, TreeLstm};
use std::time::Instant;

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
    let (module, model) = TreeLstm::new(128);
    let trees = Tree::many(trees, 7);
    for rows in [RowOrder::Propagated, RowOrder::Batch] {
        let graph = Graph::new(&module);
        let mut logits = Vec::new();
        for (key, tree) in trees.iter().enumerate() {
            graph.instance(key as u64);
            logits.extend(model.logits(&graph, tree).id());
        }
        let request = Request { wanted: &logits, rows, ..Request::default() };
        let plan = Planner::default().plan(&graph.data(), &request).expect("a plan");
        let (print, text) = timed(|| plan.to_text());
        let (parse, parsed) = timed(|| Plan::from_text(&text).expect("the written form is readable"));
        let (save, bytes) = timed(|| plan.to_bytes());
        let (load, loaded) = timed(|| Plan::from_bytes(&bytes).expect("the written form is readable"));
        assert!(parsed == plan && *loaded == plan, "the plan survives text and bytes");
        let nodes = graph.data().arena.len();
        println!(
            "{nodes} nodes, {} steps, {} table words, rows {rows:?}\n  text {} KiB: print {print:.1} ms, \
             parse {parse:.1} ms\n  bytes {} KiB: save {save:.1} ms, load and verify {load:.1} ms",
            plan.steps.len(),
            plan.tables.len(),
            text.len() >> 10,
            bytes.len() >> 10,
        );
    }
}
