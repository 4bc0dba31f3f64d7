//! Measures the work from which threads should share a wave. Chains of waves run on one thread, and on several threads that
//! share every wave, in turns.
//!
//! `cargo run --release -p autobatch-runtime-cpu --example sharing [threads] [rounds]`
//!
//! The last column is the speedup; above 1 sharing is faster. The best times count, because a thread that waits for a core on a
//! busy machine does not measure forks and joins.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Init, Module, ModuleBuilder, Value, Weights, f32};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};
use std::sync::Arc;
use std::time::Instant;

/// Waves of a chain.
const WAVES: usize = 16;

/// A chain of waves, and its inputs.
struct Chain {
    module: Arc<Module>,
    plan: Verified<Plan>,
    floats: Vec<f32>,
}

impl Chain {
    /// A chain of products with a square weight, or of elementwise instructions.
    fn new(products: bool, width: usize, rows: usize) -> Self {
        let mut m = ModuleBuilder::new("sharing");
        let one = f32([width]);
        let cell = if products {
            let w = m.param("w", [width, width], Init::Glorot(1.0));
            m.cell("step", [one], |g, [x]| [g.affine([x], w, None)])
        } else {
            m.cell("step", [one], |_, [x]| [(x * x + x).tanh()])
        };
        let module = m.build().expect("the model is well typed");
        let graph = Graph::new(&module);
        let mut values: Vec<Value<'_>> = Vec::new();
        for row in 0..rows {
            graph.instance(row as u64);
            let x: Vec<f32> = (0..width).map(|i| ((row + i) % 13) as f32 / 16.0).collect();
            values.push(graph.input(&x));
        }
        for _ in 0..WAVES {
            values.iter_mut().for_each(|value| [*value] = graph.call(cell, *value));
        }
        let values: Vec<_> = values.iter().filter_map(|value| value.id()).collect();
        let data = graph.data();
        let mut planner = Planner::new(Policy::Depth.load().expect("no file"));
        let plan = planner.plan(&data, &Request { wanted: &values, ..Request::default() }).expect("a plan");
        let plan = plan.verify().expect("planners make verifiable plans");
        Self { module: Arc::clone(&module), plan, floats: data.bindings.floats.clone() }
    }

    /// The best microseconds per wave of each executor.
    fn race<const N: usize>(&self, executors: &mut [Executor; N], rounds: usize) -> [f64; N] {
        let weights = Weights::init(&self.module, 1);
        let bound = Inputs { words: &[], floats: &self.floats, noise: Noise::Off };
        let mut best = [f64::INFINITY; N];
        for round in 0..=rounds {
            for (executor, best) in executors.iter_mut().zip(&mut best) {
                let start = Instant::now();
                executor.execute(&self.plan, &weights, bound).expect("bindings fit");
                // The first round allocates memory and packs weights.
                if round > 0 {
                    *best = best.min(start.elapsed().as_secs_f64());
                }
            }
        }
        best.map(|seconds| seconds * 1e6 / WAVES as f64)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let (threads, rounds) = (arguments.next().unwrap_or(2), arguments.next().unwrap_or(400));
    println!("kind        width  rows  Mop/wave     1 thread  {threads} threads   faster");
    for (kind, products, width) in
        [("product", true, 64), ("product", true, 128), ("product", true, 256), ("elementwise", false, 128)]
    {
        // The executor counts two operations per multiply-add and eight per elementwise instruction and element.
        let row = if products { 2 * width * width } else { 3 * 8 * width };
        for millions in [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 12.0] {
            let rows = ((millions * 1e6) as usize / row).max(2);
            let mut executors =
                [1, threads].map(|threads| Executor::new(threads).expect("an instruction set"));
            executors[1].set_shared_work(100_000);
            let [single, several] = Chain::new(products, width, rows).race(&mut executors, rounds);
            println!(
                "{kind:<11} {width:>5} {rows:>5} {:>11.2} {single:>8.1} µs {several:>8.1} µs {:>8.2}",
                (rows * row) as f64 / 1e6,
                single / several,
            );
        }
    }
}
