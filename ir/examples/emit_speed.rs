//! Measures the emitter through its public interface: nanoseconds and bytes per node.
//!
//! `cargo run --release -p autobatch-ir --example emit_speed [nodes] [rounds] [cells|ops]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::Graph;
use autobatch_testing::tree_lstm::{Tree, TreeLstm};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let wanted = arguments.next().unwrap_or(100_000);
    let rounds = arguments.next().unwrap_or(21);
    let (module, model) = TreeLstm::new(128);
    // At most 10^5 nodes of trees, emitted repeatedly. Larger ones would measure how fast the
    // processor reads the trees from memory.
    let distinct = wanted.div_ceil(39).min(100_000 / 39);
    let trees = Tree::many(distinct, 1);
    let mut graph = Graph::new(&module);
    let only = std::env::args().nth(3);
    for (name, by_ops) in [("cell calls", false), ("op by op", true)] {
        if only.as_deref().is_some_and(|only| (only == "ops") != by_ops) {
            continue;
        }
        let mut times: Vec<f64> = (0..rounds + 1)
            .map(|_| {
                graph.clear();
                let start = Instant::now();
                for (key, tree) in trees.iter().cycle().take(wanted.div_ceil(39)).enumerate() {
                    graph.instance(key as u64);
                    if by_ops {
                        model.ops(&graph, tree)
                    } else {
                        model.cells(&graph, tree)
                    };
                }
                start.elapsed().as_secs_f64() * 1e9 / graph.data().arena.len() as f64
            })
            .skip(1)
            .collect();
        times.sort_by(f64::total_cmp);
        graph.check().expect("the model is valid");
        let data = graph.data();
        println!(
            "{name:>10}: {:>9} nodes, {:.1} ns each (median; least {:.1}), {:.1} bytes each of which {:.1} operands",
            data.arena.len(),
            times[times.len() / 2],
            times[0],
            data.arena.capacity_bytes() as f64 / data.arena.len() as f64,
            data.arena.operand_pool().len() as f64 * 4.0 / data.arena.len() as f64,
        );
    }
}
