//! Measures sums over lists of gathered rows, as in a graph network, beside a loop that sums neighbouring rows.
//!
//! `RUSTFLAGS="-C target-cpu=native" cargo run --release -p autobatch-runtime-cpu --example list_sums [threads] [rounds]`
//!
//! A plan sums random rows of a field, one list per node. The loop beside it makes sums of as many rows from an array of the
//! same size, in order, so it reads and writes as many bytes and needs no row number; the flag gives it the vectors of this
//! machine. Both run in turns. The table shows the gathered bytes per second of the best and the median round, and the sum
//! over lists as a part of the loop.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Module, ModuleBuilder, Value, Weights, f32, list};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Nodes with features, and the sums over their neighbours.
struct Neighbours {
    module: Arc<Module>,
    plan: Verified<Plan>,
    floats: Vec<f32>,
    /// The step of the sums.
    step: usize,
    /// The bytes of the rows that the lists name.
    gathered: usize,
}

impl Neighbours {
    fn new(width: usize, nodes: usize, degree: usize) -> Self {
        let mut m = ModuleBuilder::new("neighbours");
        let feature = m.cell("feature", [f32([width])], |_, [x]| [x * 0.5]);
        let sum = m.cell("sum", [list(f32([width]))], |_, [neighbours]| [neighbours.sum()]);
        let module = m.build().expect("the model is well typed");
        let graph = Graph::new(&module);
        let x: Vec<f32> = (0..width).map(|i| i as f32 / 16.0).collect();
        let features = (0..nodes).flat_map(|_| graph.call(feature, graph.input(&x)));
        let features: Vec<Value<'_>> = features.collect();
        let mut state = 1u64;
        let mut below = |count: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % count
        };
        let mut items = 0;
        let mut neighbours = || {
            let length = 1 + below(2 * degree - 1);
            items += length;
            graph.list((0..length).map(|_| features[below(nodes)]))
        };
        let sums: Vec<Value<'_>> = (0..nodes).flat_map(|_| graph.call(sum, neighbours())).collect();
        let sums: Vec<_> = sums.iter().filter_map(|value| value.id()).collect();
        let data = graph.data();
        let mut planner = Planner::new(Policy::Depth.load().expect("no file"));
        let plan = planner.plan(&data, &Request { wanted: &sums, ..Request::default() }).expect("a plan");
        let plan = plan.verify().expect("planners make verifiable plans");
        let step = plan.steps.iter().position(|step| plan.kernel(step).name.contains("sum"));
        Self {
            step: step.expect("a step of sums"),
            module: Arc::clone(&module),
            plan,
            floats: data.bindings.floats.clone(),
            gathered: items * width * 4,
        }
    }

    /// The seconds of the sums in one execution.
    fn seconds(&self, executor: &mut Executor, weights: &Weights) -> f64 {
        let bound = Inputs { words: &[], floats: &self.floats, noise: Noise::Off };
        executor.execute(&self.plan, weights, bound).expect("bindings fit");
        executor.counters().expect("counting is on").steps[self.step].time.as_secs_f64()
    }
}

/// Sums of neighbouring rows: each result is the sum of `degree` rows.
fn sum_in_order<const WIDTH: usize>(rows: &[[f32; WIDTH]], degree: usize, sums: &mut [[f32; WIDTH]]) {
    let whole = rows.len() / degree;
    for (number, out) in sums.iter_mut().enumerate() {
        let first = number % whole * degree;
        let mut sum = rows[first];
        for row in &rows[first + 1..first + degree] {
            for (sum, x) in sum.iter_mut().zip(row) {
                *sum += x;
            }
        }
        *out = sum;
    }
}

fn measure<const WIDTH: usize>(executor: &mut Executor, rounds: usize) {
    for (bytes, degree) in [(1 << 20, 4), (1 << 20, 40), (64 << 20, 4), (64 << 20, 40)] {
        let nodes = bytes / 4 / WIDTH;
        let lists = Neighbours::new(WIDTH, nodes, degree);
        let weights = Weights::init(&lists.module, 1);
        let rows = vec![[0.5f32; WIDTH]; nodes];
        let mut sums = vec![[0.0f32; WIDTH]; nodes];
        let (mut ours, mut loops) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let ours_seconds = lists.seconds(executor, &weights);
            let start = Instant::now();
            sum_in_order(black_box(&rows), degree, &mut sums);
            let loop_seconds = start.elapsed().as_secs_f64();
            black_box(&sums);
            // The first round allocates memory.
            if round > 0 {
                ours.push(lists.gathered as f64 / ours_seconds / 1e9);
                loops.push((nodes * degree * WIDTH * 4) as f64 / loop_seconds / 1e9);
            }
        }
        let [ours, loops] = [ours, loops].map(|mut speeds| {
            speeds.sort_by(f64::total_cmp);
            [speeds[speeds.len() - 1], speeds[speeds.len() / 2]]
        });
        println!(
            "{WIDTH:>5} {:>7} {degree:>7} {:>8.1} {:>7.1} {:>8.1} {:>7.1} {:>6.0} % {:>5.0} %",
            bytes >> 20,
            ours[0],
            ours[1],
            loops[0],
            loops[1],
            100.0 * ours[0] / loops[0],
            100.0 * ours[1] / loops[1]
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let (threads, rounds) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(15));
    let mut executor = Executor::new(threads).expect("an instruction set");
    executor.set_counting(true);
    println!("{}, GB/s of gathered rows: best, median", executor.isa());
    println!("width     MiB  degree   lists           in order          part");
    measure::<64>(&mut executor, rounds);
    measure::<128>(&mut executor, rounds);
}
