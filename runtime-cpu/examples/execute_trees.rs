//! Measures Tree-LSTM inference from emitting to logits in milliseconds per minibatch, batched and node by node, with the same
//! kernels.
//!
//! `cargo run --release -p autobatch-runtime-cpu --example execute_trees [hidden] [trees] [threads] [rounds]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{Graph, Weights};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};
use autobatch_testing::tree_lstm::{Tree, TreeLstm};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let (h, trees) = (arguments.next().unwrap_or(100), arguments.next().unwrap_or(128));
    let (threads, rounds) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(21));
    let (module, model) = TreeLstm::new(h);
    let examples = Tree::many(trees, 7);
    let weights = Weights::init(&module, 1);
    let mut graph = Graph::new(&module);
    let mut executor = Executor::new(threads).expect("an instruction set");
    let mut reference: Option<Vec<u32>> = None;
    for (word, rounds) in [("auto", rounds), ("none", rounds.min(3))] {
        let policy: Policy = word.parse().expect("a policy");
        let mut planner = Planner::new(policy.load().expect("no file"));
        let mut times = [const { Vec::new() }; 4];
        let mut nodes = 0;
        for _ in 0..=rounds {
            graph.clear();
            let start = Instant::now();
            let mut logits = Vec::with_capacity(trees);
            for (key, tree) in examples.iter().enumerate() {
                graph.instance(key as u64);
                logits.extend(model.logits(&graph, tree).id());
            }
            times[0].push(start.elapsed().as_secs_f64());
            let data = graph.data();
            let start = Instant::now();
            let plan =
                planner.plan(&data, &Request { wanted: &logits, ..Request::default() }).expect("a plan");
            times[1].push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let plan = plan.verify().expect("planners make verifiable plans");
            times[3].push(start.elapsed().as_secs_f64());
            let bound =
                Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
            let start = Instant::now();
            executor.execute(&plan, &weights, bound).expect("bindings fit");
            times[2].push(start.elapsed().as_secs_f64());
            nodes = data.arena.len();
            let bits: Vec<u32> =
                (0..trees).flat_map(|n| executor.output(&plan, n).iter().map(|x| x.to_bits())).collect();
            assert_eq!(
                *reference.get_or_insert_with(|| bits.clone()),
                bits,
                "batched and single execution differ"
            );
        }
        let mut median = |n: usize| {
            times[n].sort_by(f64::total_cmp);
            times[n][times[n].len() / 2] * 1e3
        };
        let (emit, plan, verify, execute) = (median(0), median(1), median(3), median(2));
        let flops = (trees * 19 * 2 * h * 5 * h * 2) as f64;
        println!(
            "{word:>5}: {nodes} nodes, emit {emit:.2} plan {plan:.2} verify {verify:.2} execute {execute:.2} ms, together {:.2} ms; {:.0} GFLOP/s of execution",
            emit + plan + verify + execute,
            flops / execute / 1e6,
        );
    }
}
