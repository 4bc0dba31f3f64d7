//! What a GPU reaches: products, moves of memory, and two models of the catalogue.
//!
//! Products and moves are timed as differences: a plan with three of them less a plan with one, so that
//! uploads, read-backs and the submission itself cancel. Models are timed as whole executes of a plan that is on
//! the device already; beside that, what the host does of it: submitting commands, writing those of the next
//! execute meanwhile, and handing over what is bound. Of small models the latter is timed with and without
//! immediates in turns, as are executes that follow one of another plan. They write commands and submit them, unless these were
//! written before: those of a plan that was announced, and of one that was executed before. Through executes of plans that are
//! new a line over all models says what a run takes and what a dispatch.

use crate::error::BenchError;
use autobatch::runtime_wgpu::{Bound, Executor, Options};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Value, Weights};
use autobatch_models::catalogue::{self, open};
use autobatch_planner::{Planner, Request};
use std::fmt::Write as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Turns of each plan; the best counts.
const TURNS: usize = 5;
/// Rows of the product that is all reading of its weight.
const FEW_ROWS: usize = 4;
/// Executes of a small model a turn, where the host is timed.
const EXECUTES: usize = 60;
/// Models whose host time is taken, and of how many instances, unless some are named.
const SMALL: [(&str, usize); 7] =
    [("b", 16), ("b", 256), ("d", 16), ("sst", 16), ("sst", 256), ("lattice", 8), ("lattice", 64)];

/// Times products of many rows and of few, moves, and the models `b` and `d` on a device, and what the host does of
/// small models; if some of these are named, that of them alone.
///
/// # Errors
/// If there is no such device or no such model, or it does not execute.
pub fn report(device: &str, size: Option<usize>, names: &[String]) -> Result<String, BenchError> {
    let selector = device.parse().map_err(|error| BenchError::Gpu(format!("{error}")))?;
    let options = Options { selector, ..Options::default() };
    let mut executor = Executor::new(options.clone()).map_err(gpu)?;
    let facts = executor.gpu().map(|gpu| gpu.facts().clone());
    let software = facts.as_ref().is_some_and(|facts| facts.kind == "software");
    let is_idle = facts.as_ref().is_some_and(|facts| facts.backend == "noop");
    let size = size.unwrap_or(if software { 128 } else { 4096 });
    let mut text = String::new();
    if let Some(facts) = facts {
        let _ = writeln!(text, "{}, {}, {}", facts.name, facts.kind, facts.driver);
    }
    if software {
        text.push_str("a software adapter: these numbers say nothing about GPUs\n");
    }
    if is_idle {
        text.push_str("no driver: nothing is executed, and what the host takes is what wgpu takes\n");
    } else if names.is_empty() {
        speeds(&mut executor, size, software, &mut text)?;
    }
    host(&options, names, &mut text)?;
    Ok(text)
}

/// Times products, moves, and whole models.
fn speeds(executor: &mut Executor, size: usize, software: bool, text: &mut String) -> Result<(), BenchError> {
    for rows in [size, FEW_ROWS] {
        let product = one_of(executor, (rows, size), |value, w| value.affine(w, None))?;
        let flops = 2.0 * rows as f64 * (size as f64).powi(2) / product.as_secs_f64();
        let _ = writeln!(text, "product {rows} x {size} x {size}: {product:?}, {:.1} GFLOP/s", flops / 1e9);
    }
    let moved = one_of(executor, (size, size), |value, _| value.relu())?;
    let bytes = 8.0 * (size as f64).powi(2) / moved.as_secs_f64();
    let _ = writeln!(
        text,
        "elementwise over {size} x {size}: {moved:?}, {:.1} GB/s read and written",
        bytes / 1e9
    );
    for name in ["b", "d"] {
        let Model { instances, steps, executed } = model(executor, name, software)?;
        let rate = instances as f64 / executed.whole.as_secs_f64();
        let _ = writeln!(
            text,
            "model {name}, {instances} instances: {:?} a run, {rate:.0} a second",
            executed.whole
        );
        let each = |time: Duration| time.as_secs_f64() * 1e6 / steps.max(1) as f64;
        let _ = writeln!(
            text,
            "  {steps} steps in {} dispatches; on the host {:.2} us a step to submit, {:.2} to write \
             commands ahead, {:.2} to hand over {} bytes",
            executed.dispatches,
            each(executed.encode),
            each(executed.ahead),
            each(executed.upload),
            executed.bytes
        );
    }
    Ok(())
}

/// Times the host on small models, numbers of dispatches bound at offsets and among the commands in turns.
fn host(options: &Options, names: &[String], text: &mut String) -> Result<(), BenchError> {
    let small: Vec<(&str, usize)> = match names {
        [] => SMALL.to_vec(),
        _ => names.iter().map(|name| (name.as_str(), 16)).collect(),
    };
    let ways = [("bound", false), ("among", true)].map(|(way, immediates)| {
        Executor::new(Options { immediates, ..options.clone() }).map(|executor| (way, executor))
    });
    let mut ways = ways.into_iter().collect::<Result<Vec<_>, _>>().map_err(gpu)?;
    let mut anew: Vec<Vec<(f64, f64)>> = vec![Vec::new(); ways.len()];
    for (name, count) in small {
        let wanted = catalogue::Options {
            count: Some(count),
            batch: Some(count),
            hidden: Some(8),
            seed: 1,
            ..Default::default()
        };
        let made = made(name, &wanted)?.1;
        let mut best: Vec<Option<Executed>> = vec![None; ways.len()];
        for _ in 0..TURNS {
            for ((_, executor), best) in ways.iter_mut().zip(&mut best) {
                let [anew, in_turns, announced] = [Follows::New, Follows::Known, Follows::Announced]
                    .map(|follows| executed_behind(executor, &made, EXECUTES, follows));
                let executed = executed(executor, &made, EXECUTES)?;
                let found = Executed { anew: anew?, in_turns: in_turns?, announced: announced?, ..executed };
                *best = Some(match best {
                    Some(before) => before.best(&found),
                    None => found,
                });
            }
        }
        let _ = write!(text, "model {name}, {count} instances of width 8, {} steps:", made.1.steps.len());
        for (((way, _), executed), anew) in ways.iter().zip(best.into_iter().flatten()).zip(&mut anew) {
            let us = |time: Duration| time.as_secs_f64() * 1e6;
            let (dispatches, ahead) = (executed.dispatches, us(executed.ahead));
            let (encode, upload) = (us(executed.encode), us(executed.upload));
            anew.push((f64::from(dispatches), us(executed.anew)));
            let _ = write!(
                text,
                " {way} {ahead:.1} us ahead for {dispatches} dispatches, submit {encode:.1}, upload {upload:.1}, \
                 anew {:.1}, in turns {:.1}, announced {:.1};",
                us(executed.anew),
                us(executed.in_turns),
                us(executed.announced)
            );
        }
        text.push('\n');
    }
    for ((way, _), points) in ways.iter().zip(&anew) {
        let Some((execute, dispatch)) = line(points) else { continue };
        let _ = writeln!(
            text,
            "written and submitted anew, {way}: {execute:.1} us a execute and {dispatch:.2} us a dispatch"
        );
    }
    Ok(())
}

/// The line of least squares through points: where it begins, and how it climbs. Squares are of shares, so that
/// few dispatches count as much as many. None without two numbers of dispatches.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    points.iter().find(|point| point.0 != points[0].0)?;
    let weighted = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| of(x, y) / y.max(f64::MIN_POSITIVE).powi(2)).sum()
    };
    let (n, x, y) = (weighted(&|_, _| 1.0), weighted(&|x, _| x), weighted(&|_, y| y));
    let climb = (n * weighted(&|x, y| x * y) - x * y) / (n * weighted(&|x, _| x * x) - x * x);
    Some(((y - climb * x) / n, climb))
}

fn gpu(error: autobatch::runtime_wgpu::GpuError) -> BenchError {
    BenchError::Gpu(error.to_string())
}

/// What one more node of a step takes.
fn one_of(
    executor: &mut Executor,
    (rows, size): (usize, usize),
    step: impl for<'g> Fn(Value<'g>, autobatch_ir::Param) -> Value<'g>,
) -> Result<Duration, BenchError> {
    let mut times = Vec::new();
    for count in [1, 3] {
        let mut m = ModuleBuilder::new("steps");
        let w = m.param("w", [size, size], Init::Glorot(1.0));
        let graph = Graph::new(&m.build()?);
        graph.instance(0);
        let row: Vec<f32> = (0..rows * size).map(|at| (at % 97) as f32 * 0.01).collect();
        let mut value = graph.input_shaped([rows, size], &row);
        for _ in 0..count {
            value = step(value, w);
        }
        let wanted: Vec<ValueId> = value.slice_axis(0, 0..1).id().into_iter().collect();
        times.push(executed(executor, &planned(&graph.finish()?, &wanted)?, TURNS)?.whole);
    }
    Ok(times[1].saturating_sub(times[0]).max(Duration::from_nanos(1)) / 2)
}

/// A model that was executed.
struct Model {
    instances: usize,
    steps: usize,
    executed: Executed,
}

/// The best times of a run, each for itself, and what it took.
#[derive(Clone)]
struct Executed {
    whole: Duration,
    encode: Duration,
    ahead: Duration,
    upload: Duration,
    /// Writing and submitting the commands of a plan that was never executed, where that was timed.
    anew: Duration,
    /// The same of a plan that was executed before, but not last.
    in_turns: Duration,
    /// The same, where the run before was told which plan follows.
    announced: Duration,
    dispatches: u32,
    bytes: u64,
}

impl Executed {
    /// The better of each.
    fn best(&self, other: &Self) -> Self {
        Self {
            whole: self.whole.min(other.whole),
            encode: self.encode.min(other.encode),
            ahead: self.ahead.min(other.ahead),
            upload: self.upload.min(other.upload),
            anew: self.anew.min(other.anew),
            in_turns: self.in_turns.min(other.in_turns),
            announced: self.announced.min(other.announced),
            ..*other
        }
    }
}

fn model(executor: &mut Executor, name: &str, small: bool) -> Result<Model, BenchError> {
    let count = small.then_some(4);
    let (instances, made) =
        made(name, &catalogue::Options { count, batch: count, seed: 1, ..Default::default() })?;
    let executed = executed(executor, &made, TURNS)?;
    Ok(Model { instances, steps: made.1.steps.len(), executed })
}

/// The instances of a model, and its graph and plan.
fn made(
    name: &str,
    options: &catalogue::Options,
) -> Result<(usize, (GraphData, Verified<Plan>)), BenchError> {
    let problem = open(name, options)?;
    let graph = Graph::new(&problem.module);
    let mut outputs = Vec::new();
    for instance in 0..problem.workload.instances() {
        graph.instance(instance as u64);
        problem.workload.emit(&graph, instance, &mut outputs);
    }
    let wanted: Vec<ValueId> = outputs.iter().filter_map(|value| value.id()).collect();
    Ok((problem.workload.instances(), planned(&graph.finish()?, &wanted)?))
}

/// A graph and its plan.
fn planned(graph: &GraphData, wanted: &[ValueId]) -> Result<(GraphData, Verified<Plan>), BenchError> {
    let request = Request { wanted, ..Request::default() };
    Ok((graph.clone(), Planner::default().plan(graph, &request)?.verify()?))
}

/// The best of so many runs.
fn executed(
    executor: &mut Executor,
    (graph, plan): &(GraphData, Verified<Plan>),
    turns: usize,
) -> Result<Executed, BenchError> {
    let weights = Weights::init(&graph.module, 0);
    let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
    let bound = Bound { words, floats, noise: Noise::Off };
    let most = Duration::MAX;
    let mut best = Executed {
        whole: most,
        encode: most,
        ahead: most,
        upload: most,
        anew: most,
        in_turns: most,
        announced: most,
        dispatches: 0,
        bytes: 0,
    };
    // The first run makes pipelines and brings parameters and tables, the second writes commands ahead.
    for turn in 0..=turns + 1 {
        let start = Instant::now();
        executor.execute(plan, &weights, bound).map_err(gpu)?;
        let (whole, times, counters) = (start.elapsed(), executor.times(), executor.counters());
        if turn > 1 {
            best = best.best(&Executed {
                whole,
                encode: times.encode,
                ahead: times.prerecord,
                upload: times.upload,
                anew: most,
                in_turns: most,
                announced: most,
                dispatches: counters.dispatches,
                bytes: counters.uploaded,
            });
        }
    }
    Ok(best)
}

/// What follows a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// A plan that was never executed.
    New,
    /// Another plan that was executed before.
    Known,
    /// That, and the run was told.
    Announced,
}

/// The least time to write and submit the commands of a plan behind a run of another one, or to submit them if they were
/// written before.
fn executed_behind(
    executor: &mut Executor,
    (graph, plan): &(GraphData, Verified<Plan>),
    turns: usize,
    follows: Follows,
) -> Result<Duration, BenchError> {
    let weights = Weights::init(&graph.module, 0);
    let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
    let bound = Bound { words, floats, noise: Noise::Off };
    // A plan that is verified again is another one.
    let another = || plan.clone().into_inner().verify().map(Arc::new);
    let mut plans = [another()?, another()?];
    let mut best = Duration::MAX;
    for turn in 0..turns + 4 {
        if follows == Follows::New {
            plans[turn % 2] = another()?;
        }
        let next =
            || Poll::Ready((follows == Follows::Announced).then(|| Arc::clone(&plans[(turn + 1) % 2])));
        executor.execute_and_prepare(&plans[turn % 2], &weights, bound, next).map_err(gpu)?;
        if turn > 3 {
            best = best.min(executor.times().encode);
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_line_goes_through_points_that_lie_on_one() {
        let (begin, climb) = line(&[(14.0, 19.0), (48.0, 36.0), (380.0, 202.0)]).expect("three points");
        assert!((begin - 12.0).abs() < 1e-9 && (climb - 0.5).abs() < 1e-12, "{begin} {climb}");
        assert_eq!(
            line(&[(14.0, 19.0), (14.0, 18.0)]),
            None,
            "any line goes through one number of dispatches"
        );
        assert_eq!(line(&[]), None);
    }
}
