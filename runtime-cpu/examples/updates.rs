//! Times updates of one parameter: `updates [rule] [updates] [threads] [elements]`, by default with five million elements.
//!
//! Prints nanoseconds per element of the fastest update (and of the median), and memory bandwidth. To count instructions per
//! element, run it under `valgrind --tool=callgrind` with `AUTOBATCH_CPU=avx2` for two numbers of updates, and divide the
//! difference.

#![allow(clippy::print_stdout, reason = "this is a program")]

use autobatch_ir::{Init, ModuleBuilder, ParamId, Weights};
use autobatch_nn::optim::{Adam, AdamW, Momentum, Optimize, Optimizer, Sgd};
use autobatch_planner::update_plan;
use autobatch_runtime_cpu::{Executor, GradientSource};
use std::time::Instant;

struct Given(Vec<f32>);

impl GradientSource for Given {
    fn gradient(&self, _: ParamId) -> Option<&[f32]> {
        Some(&self.0)
    }

    fn sparse_rows(&self, _: ParamId) -> Option<&[u32]> {
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let rule = args.next().unwrap_or_else(|| "adam".to_owned());
    let updates: u64 = args.next().map_or(Ok(20), |word| word.parse())?;
    let threads: usize = args.next().map_or(Ok(1), |word| word.parse())?;
    let elements: usize = args.next().map_or(Ok(5_000_000), |word| word.parse())?;
    let optimizer: Optimizer = match rule.as_str() {
        "sgd" => Sgd::new(0.1).into(),
        "momentum" => Momentum::new(0.1, 0.9).into(),
        "adam" => Adam::new(1e-3).into(),
        "adam-clipped" => Adam::new(1e-3).clip_norm(1.0),
        "adamw-average" => AdamW::new(1e-3).average(0.999),
        other => {
            return Err(format!(
                "expected sgd, momentum, adam, adam-clipped or adamw-average, found {other}"
            )
            .into());
        }
    };
    let mut m = ModuleBuilder::new("updates");
    m.param("w", [elements], Init::ZEROS);
    let module = m.build()?;
    let recipe = optimizer.recipe(&module, &optimizer.all(&module))?;
    let plan = update_plan(&module, &recipe)?.verify()?;
    let mut weights = Weights::init(&module, 1);
    let mut states = recipe.states(&weights, &module)?;
    let given = Given((0..elements).map(|i| (i % 1000) as f32 * 1e-3 - 0.5).collect());
    let mut executor = Executor::new(threads)?;
    let arrays = 3 + 2 * states.len();
    let mut seconds = Vec::new();
    for number in 1..=updates.max(1) {
        let floats = optimizer.floats(number, 1.0);
        let start = Instant::now();
        executor.update_with(&plan, &given, &mut weights, &mut states, &floats)?;
        seconds.push(start.elapsed().as_secs_f64() / elements as f64);
    }
    seconds.sort_by(f64::total_cmp);
    let (least, median) = (seconds[0], seconds[seconds.len() / 2]);
    println!(
        "{rule}, {threads} threads, {}: {:.3} ns per element ({:.3}), {:.1} GB/s",
        executor.isa(),
        least * 1e9,
        median * 1e9,
        (4 * arrays) as f64 / least / 1e9
    );
    Ok(())
}
