//! What emitting and planning cost: nanoseconds an application, for minibatches of random trees.
//!
//! `cargo run --release -p autobatch-planner --example plan_speed [policy [trees [rounds]]]`
//!
//! With `trees` and `rounds` only that size is planned, and only in the default row order, so that
//! a profiler sees nothing else.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

#[path = "../../ir/examples/common/tree_lstm.rs"]
mod tree_lstm;

use autobatch_ir::Graph;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};
use std::time::Instant;
use tree_lstm::{Tree, TreeLstm};

fn main() {
    let mut words = std::env::args().skip(1);
    let word = words.next().unwrap_or_else(|| "auto".to_owned());
    let mut number = || words.next().map(|word| word.parse::<usize>().expect("a number"));
    let (only_trees, only_rounds) = (number(), number());
    let policy: Policy = word.parse().expect("a policy");
    let (module, model) = TreeLstm::new(128);
    let mut planner = Planner::new(policy.load().expect("a readable policy"));
    let sizes = only_trees.map_or_else(|| vec![32, 128, 512, 2560, 25_600], |trees| vec![trees]);
    let orders = match only_rounds {
        None => vec![RowOrder::Batch, RowOrder::default()],
        Some(_) => vec![RowOrder::default()],
    };
    for trees in sizes {
        let mut graph = Graph::new(&module);
        let examples = Tree::many(trees, 7);
        let rounds = only_rounds.unwrap_or((60_000 / trees).clamp(5, 401));
        let (mut emit, mut plan) = (Vec::new(), vec![Vec::new(); orders.len()]);
        let mut last = None;
        for _ in 0..rounds {
            graph.clear();
            let start = Instant::now();
            let mut logits = Vec::with_capacity(trees);
            for (key, tree) in examples.iter().enumerate() {
                graph.instance(key as u64);
                logits.extend(model.logits(&graph, tree).id());
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
