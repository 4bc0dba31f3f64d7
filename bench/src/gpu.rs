//! Times a GPU: matrix products, elementwise copies of memory, two models, and the work of the host.
//!
//! * *Products and elementwise steps*: the time of a plan with three steps minus the time of a plan with
//!   one step. Uploads, read-backs and the submission cancel.
//! * *Models*: complete executions of a plan that is already on the device, and the host part of them:
//!   submitting commands, writing the commands of the next execution ahead, and uploading bindings.
//! * *Small models*: the host part with numbers of dispatches bound and as immediates, alternating. An execution that follows
//!   another plan must write its commands first, unless the plan was announced or executed before.
//!
//! A least-squares line through the executions of new plans gives the cost of an execution and of a
//! dispatch.

use crate::error::BenchError;
use autobatch::runtime_wgpu::{Executor, Inputs, Options, Selector};
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

/// Number of executions of each plan; the fastest counts.
const ROUNDS: usize = 5;
/// Number of rows of a product whose time is that of reading its weight.
const FEW_ROWS: usize = 4;
/// Number of executions of a small model per round, for the host part.
const EXECUTIONS: usize = 60;
/// The small models for the host part, with their number of instances, if the command names none.
const SMALL: [(&str, usize); 7] = [
    ("treelstm", 16),
    ("treelstm", 256),
    ("tagger", 16),
    ("sentiment", 16),
    ("sentiment", 256),
    ("lattice", 8),
    ("lattice", 64),
];

/// Times products, elementwise steps, and the models `treelstm` and `tagger` on a GPU.
///
/// # Errors
/// If the device does not exist, or an execution fails.
pub fn device(selector: &Selector, size: Option<usize>) -> Result<String, BenchError> {
    let mut executor = Executor::new(Options { selector: selector.clone(), ..Options::default() })?;
    let mut text = String::new();
    let software = match executor.gpu().map(|gpu| gpu.facts().clone()) {
        Some(facts) => {
            let _ = writeln!(text, "{}, {}, {}", facts.name, facts.kind, facts.driver);
            if facts.backend == "noop" {
                let reason = "no driver executes anything: time the host's part with `bench host`";
                return Err(BenchError::Gpu(reason.to_owned()));
            }
            facts.kind == "software"
        }
        None => false,
    };
    if software {
        text.push_str("a software adapter: these times do not apply to GPUs\n");
    }
    device_times(&mut executor, size.unwrap_or(if software { 128 } else { 4096 }), software, &mut text)?;
    Ok(text)
}

/// Times the host part of small models: of the named ones, or of seven.
///
/// # Errors
/// As [`device`], or if a model is unknown.
pub fn host(selector: &Selector, names: &[&str]) -> Result<String, BenchError> {
    let mut text = String::new();
    host_times(&Options { selector: selector.clone(), ..Options::default() }, names, &mut text)?;
    Ok(text)
}

/// Times products, elementwise steps and complete models.
fn device_times(
    executor: &mut Executor,
    size: usize,
    software: bool,
    text: &mut String,
) -> Result<(), BenchError> {
    for rows in [size, FEW_ROWS] {
        let product = step_time(executor, rows, size, |value, w| value.affine(w, None))?;
        let flops = 2.0 * rows as f64 * (size as f64).powi(2) / product.as_secs_f64();
        let _ = writeln!(text, "product {rows} x {size} x {size}: {product:?}, {:.1} GFLOP/s", flops / 1e9);
    }
    let copied = step_time(executor, size, size, |value, _| value.relu())?;
    let bytes = 8.0 * (size as f64).powi(2) / copied.as_secs_f64();
    let _ = writeln!(
        text,
        "elementwise over {size} x {size}: {copied:?}, {:.1} GB/s read and written",
        bytes / 1e9
    );
    for name in ["treelstm", "tagger"] {
        let Model { instances, steps, executed } = model(executor, name, software)?;
        let rate = instances as f64 / executed.whole.as_secs_f64();
        let _ = writeln!(
            text,
            "model {name}, {instances} instances: {:?} per execution, {rate:.0} per second",
            executed.whole
        );
        let per_step = |time: Duration| time.as_secs_f64() * 1e6 / steps.max(1) as f64;
        let _ = writeln!(
            text,
            "  {steps} steps in {} dispatches; host: {:.2} us per step to submit, {:.2} to write \
             commands ahead, {:.2} to upload {} bytes",
            executed.dispatches,
            per_step(executed.encode),
            per_step(executed.ahead),
            per_step(executed.upload),
            executed.bytes
        );
    }
    Ok(())
}

/// Times the host part of small models, with and without immediates.
fn host_times(options: &Options, names: &[&str], text: &mut String) -> Result<(), BenchError> {
    let small: Vec<(&str, usize)> = match names {
        [] => SMALL.to_vec(),
        _ => names.iter().map(|&name| (name, 16)).collect(),
    };
    let variants = [("bound", false), ("immediate", true)].map(|(name, immediates)| {
        Executor::new(Options { immediates, ..options.clone() }).map(|executor| (name, executor))
    });
    let mut variants = variants.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut points: Vec<Vec<(f64, f64)>> = vec![Vec::new(); variants.len()];
    for (name, count) in small {
        let sizes = catalogue::Options {
            count: Some(count),
            batch: Some(count),
            hidden: Some(8),
            seed: 1,
            ..Default::default()
        };
        let model = planned_model(name, &sizes)?;
        let mut best: Vec<Option<Executed>> = vec![None; variants.len()];
        for _ in 0..ROUNDS {
            for ((_, executor), best) in variants.iter_mut().zip(&mut best) {
                let [new, known, announced] = [Next::New, Next::Known, Next::Announced]
                    .map(|next| encode_after_other(executor, &model.planned, EXECUTIONS, next));
                let times = executed(executor, &model.planned, EXECUTIONS)?;
                let found = Executed { new: new?, known: known?, announced: announced?, ..times };
                *best = Some(match best {
                    Some(before) => before.best(&found),
                    None => found,
                });
            }
        }
        let _ = writeln!(
            text,
            "host part of {name}, {count} instances of width 8, {} steps, in us:\n  {:<11}{:>10}{:>8}{:>8}{:>8}{:>10}{:>10}{:>10}",
            model.planned.plan.steps.len(),
            "numbers",
            "dispatches",
            "ahead",
            "submit",
            "upload",
            "new plan",
            "known",
            "announced",
        );
        for (((variant, _), executed), points) in
            variants.iter().zip(best.into_iter().flatten()).zip(&mut points)
        {
            let us = |time: Duration| time.as_secs_f64() * 1e6;
            let (dispatches, ahead) = (executed.dispatches, us(executed.ahead));
            let (encode, upload) = (us(executed.encode), us(executed.upload));
            points.push((f64::from(dispatches), us(executed.new)));
            let _ = writeln!(
                text,
                "  {variant:<11}{dispatches:>10}{ahead:>8.1}{encode:>8.1}{upload:>8.1}{:>10.1}{:>10.1}{:>10.1}",
                us(executed.new),
                us(executed.known),
                us(executed.announced)
            );
        }
    }
    for ((variant, _), points) in variants.iter().zip(&points) {
        let Some((execution, dispatch)) = line(points) else { continue };
        let _ = writeln!(
            text,
            "new plans, {variant}: {execution:.1} us per execution and {dispatch:.2} us per dispatch"
        );
    }
    Ok(())
}

/// The least-squares line through points, as its intercept and slope. Errors are relative, so that few
/// dispatches count as much as many. `None` if all points have the same number of dispatches.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    points.iter().find(|point| point.0 != points[0].0)?;
    let weighted = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| of(x, y) / y.max(f64::MIN_POSITIVE).powi(2)).sum()
    };
    let (n, x, y) = (weighted(&|_, _| 1.0), weighted(&|x, _| x), weighted(&|_, y| y));
    let slope = (n * weighted(&|x, y| x * y) - x * y) / (n * weighted(&|x, _| x * x) - x * x);
    Some(((y - slope * x) / n, slope))
}

/// The time of one step on a value of `rows` by `size` elements.
fn step_time(
    executor: &mut Executor,
    rows: usize,
    size: usize,
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
        times.push(executed(executor, &plan(graph.finish()?, &wanted)?, ROUNDS)?.whole);
    }
    Ok(times[1].saturating_sub(times[0]).max(Duration::from_nanos(1)) / 2)
}

/// An executed model.
struct Model {
    instances: usize,
    steps: usize,
    executed: Executed,
}

/// The fastest times of executions, each independently, and the counters of an execution.
#[derive(Clone)]
struct Executed {
    whole: Duration,
    encode: Duration,
    ahead: Duration,
    upload: Duration,
    /// Writing and submitting the commands of a plan that was never executed.
    new: Duration,
    /// The same for a plan that was executed before, but not last.
    known: Duration,
    /// The same for a plan that the previous execution announced.
    announced: Duration,
    dispatches: u32,
    bytes: u64,
}

impl Executed {
    /// The minimum of each time.
    fn best(&self, other: &Self) -> Self {
        Self {
            whole: self.whole.min(other.whole),
            encode: self.encode.min(other.encode),
            ahead: self.ahead.min(other.ahead),
            upload: self.upload.min(other.upload),
            new: self.new.min(other.new),
            known: self.known.min(other.known),
            announced: self.announced.min(other.announced),
            ..*other
        }
    }
}

fn model(executor: &mut Executor, name: &str, small: bool) -> Result<Model, BenchError> {
    let count = small.then_some(4);
    let sizes = catalogue::Options { count, batch: count, seed: 1, ..Default::default() };
    let PlannedModel { instances, planned } = planned_model(name, &sizes)?;
    let executed = executed(executor, &planned, ROUNDS)?;
    Ok(Model { instances, steps: planned.plan.steps.len(), executed })
}

/// A graph with its plan.
struct Planned {
    graph: GraphData,
    plan: Verified<Plan>,
}

/// A model of the catalogue with its number of instances.
struct PlannedModel {
    instances: usize,
    planned: Planned,
}

/// Emits and plans a model.
fn planned_model(name: &str, options: &catalogue::Options) -> Result<PlannedModel, BenchError> {
    let opened = open(name, options)?;
    let graph = Graph::new(&opened.module);
    let mut outputs = Vec::new();
    for instance in 0..opened.workload.instances() {
        graph.instance(instance as u64);
        opened.workload.emit(&graph, instance, &mut outputs);
    }
    let wanted: Vec<ValueId> = outputs.iter().filter_map(|value| value.id()).collect();
    Ok(PlannedModel { instances: opened.workload.instances(), planned: plan(graph.finish()?, &wanted)? })
}

/// Plans a graph.
fn plan(graph: GraphData, wanted: &[ValueId]) -> Result<Planned, BenchError> {
    let request = Request { wanted, ..Request::default() };
    let plan = Planner::default().plan(&graph, &request)?.verify()?;
    Ok(Planned { graph, plan })
}

/// Executes a plan repeatedly and returns the fastest times.
fn executed(
    executor: &mut Executor,
    Planned { graph, plan }: &Planned,
    executions: usize,
) -> Result<Executed, BenchError> {
    let weights = Weights::init(&graph.module, 0);
    let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
    let bound = Inputs { words, floats, noise: Noise::Off };
    let unmeasured = Duration::MAX;
    let mut best = Executed {
        whole: unmeasured,
        encode: unmeasured,
        ahead: unmeasured,
        upload: unmeasured,
        new: unmeasured,
        known: unmeasured,
        announced: unmeasured,
        dispatches: 0,
        bytes: 0,
    };
    // The first execution creates pipelines and uploads parameters and tables. The second writes commands
    // ahead.
    for execution in 0..=executions + 1 {
        let start = Instant::now();
        executor.execute(plan, &weights, bound)?;
        let (whole, times, counters) = (start.elapsed(), executor.times(), executor.counters());
        if execution > 1 {
            best = best.best(&Executed {
                whole,
                encode: times.encode,
                ahead: times.prerecord,
                upload: times.upload,
                new: unmeasured,
                known: unmeasured,
                announced: unmeasured,
                dispatches: counters.dispatches,
                bytes: counters.uploaded,
            });
        }
    }
    Ok(best)
}

/// The plan that follows an execution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A plan that was never executed.
    New,
    /// Another plan that was executed before.
    Known,
    /// Such a plan, which the execution announced.
    Announced,
}

/// The minimum time to write and submit the commands of a plan after an execution of another plan. If the
/// commands are already written, only the time to submit them.
fn encode_after_other(
    executor: &mut Executor,
    Planned { graph, plan }: &Planned,
    executions: usize,
    next: Next,
) -> Result<Duration, BenchError> {
    let weights = Weights::init(&graph.module, 0);
    let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
    let bound = Inputs { words, floats, noise: Noise::Off };
    // A plan that is verified again has another identity.
    let another = || plan.clone().into_inner().verify().map(Arc::new);
    let mut plans = [another()?, another()?];
    let mut best = Duration::MAX;
    for execution in 0..executions + 4 {
        if next == Next::New {
            plans[execution % 2] = another()?;
        }
        let following =
            || Poll::Ready((next == Next::Announced).then(|| Arc::clone(&plans[(execution + 1) % 2])));
        executor.execute_and_prepare(&plans[execution % 2], &weights, bound, following)?;
        if execution > 3 {
            best = best.min(executor.times().encode);
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_line_goes_through_collinear_points() {
        let (intercept, slope) = line(&[(14.0, 19.0), (48.0, 36.0), (380.0, 202.0)]).expect("three points");
        assert!((intercept - 12.0).abs() < 1e-9 && (slope - 0.5).abs() < 1e-12, "{intercept} {slope}");
        assert_eq!(line(&[(14.0, 19.0), (14.0, 18.0)]), None, "one number of dispatches determines no line");
        assert_eq!(line(&[]), None);
    }
}
