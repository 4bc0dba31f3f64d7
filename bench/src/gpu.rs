//! What a GPU reaches: products, moves of memory, and two models of the catalogue.
//!
//! Products and moves are timed as differences: a plan with three of them less a plan with one, so that
//! uploads, read-backs and the submission itself cancel. Models are timed as whole plays of a plan that is on
//! the device already; beside that, what the host does of it: writing commands and submitting them, and
//! handing over what is bound.

use crate::error::BenchError;
use autobatch::runtime_wgpu::{Bound, Options, Player};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Value, Weights};
use autobatch_models::catalogue::{self, open};
use autobatch_planner::{Planner, Request};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Turns of each plan; the best counts.
const TURNS: usize = 5;

/// Times products of square matrices, moves, and the models `b` and `d` on a device.
///
/// # Errors
/// If there is no such device, or it does not play.
pub fn report(device: &str, size: Option<usize>) -> Result<String, BenchError> {
    let selector = device.parse().map_err(|error| BenchError::Gpu(format!("{error}")))?;
    let mut player = Player::new(Options { selector, ..Options::default() }).map_err(gpu)?;
    let facts = player.gpu().map(|gpu| gpu.facts().clone());
    let software = facts.as_ref().is_some_and(|facts| facts.kind == "software");
    let size = size.unwrap_or(if software { 128 } else { 4096 });
    let mut text = String::new();
    if let Some(facts) = facts {
        let _ = writeln!(text, "{}, {}, {}", facts.name, facts.kind, facts.driver);
    }
    if software {
        text.push_str("a software adapter: these numbers say nothing about GPUs\n");
    }
    let product = one_of(&mut player, size, |value, w| value.affine(w, None))?;
    let flops = 2.0 * (size as f64).powi(3) / product.as_secs_f64();
    let _ = writeln!(text, "product {size} x {size} x {size}: {product:?}, {:.1} GFLOP/s", flops / 1e9);
    let moved = one_of(&mut player, size, |value, _| value.relu())?;
    let bytes = 8.0 * (size as f64).powi(2) / moved.as_secs_f64();
    let _ = writeln!(
        text,
        "elementwise over {size} x {size}: {moved:?}, {:.1} GB/s read and written",
        bytes / 1e9
    );
    for name in ["b", "d"] {
        let Model { instances, steps, played } = model(&mut player, name, software)?;
        let rate = instances as f64 / played.whole.as_secs_f64();
        let _ = writeln!(
            text,
            "model {name}, {instances} instances: {:?} a play, {rate:.0} a second",
            played.whole
        );
        let each = |time: Duration| time.as_secs_f64() * 1e6 / steps.max(1) as f64;
        let _ = writeln!(
            text,
            "  {steps} steps in {} dispatches; on the host {:.2} us a step to encode and submit, {:.2} to hand \
             over {} bytes",
            played.dispatches,
            each(played.encode),
            each(played.upload),
            played.bytes
        );
    }
    Ok(text)
}

fn gpu(error: autobatch::runtime_wgpu::GpuError) -> BenchError {
    BenchError::Gpu(error.to_string())
}

/// What one more application of a step takes.
fn one_of(
    player: &mut Player,
    size: usize,
    step: impl for<'g> Fn(Value<'g>, autobatch_ir::Param) -> Value<'g>,
) -> Result<Duration, BenchError> {
    let mut times = Vec::new();
    for count in [1, 3] {
        let mut m = ModuleBuilder::new("steps");
        let w = m.param("w", [size, size], Init::Glorot(1.0));
        let graph = Graph::new(&m.build()?);
        graph.instance(0);
        let row: Vec<f32> = (0..size * size).map(|at| (at % 97) as f32 * 0.01).collect();
        let mut value = graph.input_shaped([size, size], &row);
        for _ in 0..count {
            value = step(value, w);
        }
        let wanted: Vec<ValueId> = value.slice_axis(0, 0..1).id().into_iter().collect();
        times.push(played(player, &planned(&graph.finish()?, &wanted)?)?.whole);
    }
    Ok(times[1].saturating_sub(times[0]).max(Duration::from_nanos(1)) / 2)
}

/// A model that was played.
struct Model {
    instances: usize,
    steps: usize,
    played: Played,
}

/// The best times of a play, each for itself, and what it took.
struct Played {
    whole: Duration,
    encode: Duration,
    upload: Duration,
    dispatches: u32,
    bytes: u64,
}

fn model(player: &mut Player, name: &str, small: bool) -> Result<Model, BenchError> {
    let count = small.then_some(4);
    let problem = open(name, &catalogue::Options { count, batch: count, seed: 1, ..Default::default() })?;
    let graph = Graph::new(&problem.module);
    let mut outputs = Vec::new();
    for instance in 0..problem.workload.instances() {
        graph.instance(instance as u64);
        problem.workload.emit(&graph, instance, &mut outputs);
    }
    let wanted: Vec<ValueId> = outputs.iter().filter_map(|value| value.id()).collect();
    let made = planned(&graph.finish()?, &wanted)?;
    let played = played(player, &made)?;
    Ok(Model { instances: problem.workload.instances(), steps: made.1.steps.len(), played })
}

/// A graph and its plan.
fn planned(graph: &GraphData, wanted: &[ValueId]) -> Result<(GraphData, Verified<Plan>), BenchError> {
    let request = Request { wanted, ..Request::default() };
    Ok((graph.clone(), Planner::default().plan(graph, &request)?.verify()?))
}

fn played(player: &mut Player, (graph, plan): &(GraphData, Verified<Plan>)) -> Result<Played, BenchError> {
    let weights = Weights::init(&graph.module, 0);
    let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
    let bound = Bound { words, floats, noise: Noise::Off };
    let most = Duration::MAX;
    let mut best = Played { whole: most, encode: most, upload: most, dispatches: 0, bytes: 0 };
    // The first play makes pipelines and brings parameters and tables.
    for turn in 0..=TURNS {
        let start = Instant::now();
        player.play(plan, &weights, bound).map_err(gpu)?;
        let (whole, times, counters) = (start.elapsed(), player.times(), player.counters());
        if turn > 0 {
            best = Played {
                whole: best.whole.min(whole),
                encode: best.encode.min(times.encode),
                upload: best.upload.min(times.upload),
                dispatches: counters.dispatches,
                bytes: counters.uploaded,
            };
        }
    }
    Ok(best)
}
