//! Measures where the time of a step goes: products against the peak of the processor, the other kinds of work, the overhead of
//! the executor, and the parts of a step outside execution.
//!
//! The first graph of a model is planned once and executed repeatedly. The peak is measured in the same
//! thread before and after each execution, because clock rates change. The result compares the fastest
//! execution with the highest peak. Time in which the thread waits for a core does not count. The shares of the kinds of work
//! come from further executions that read a clock at every stage of a tile.

use crate::step::{Measured, Phase, Runner};
use crate::{BenchError, Options};
use autobatch_ir::graph::Op;
use autobatch_ir::plan::{ListSource, Plan, ReductionSum, RegId, Stage, Step, View};
use autobatch_models::catalogue;
use autobatch_runtime_cpu::kernels::peak_flops;
use autobatch_runtime_cpu::{Counters, WorkKind};
use serde::Serialize;
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The bytes that are copied to measure the rate of memory, more than the caches of a core.
const COPIED: usize = 64 << 20;
/// Number of copies; the fastest counts.
const COPIES: usize = 5;

/// Executions of one plan on one thread, compared with the peak of a core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effort {
    /// The model's name.
    pub workload: String,
    /// The instruction set.
    pub isa: String,
    /// Number of steps of the plan.
    pub steps: usize,
    /// Whether the step is one of training.
    pub is_training: bool,
    /// Floating-point operations of its products, two per multiply-add: with weights, of two values, in attention, for losses of
    /// labels, and for the gradients of weights.
    pub product_flops: f64,
    /// Seconds of the fastest execution, without waiting for a core.
    pub seconds: f64,
    /// Peak floating-point operations per second of a core.
    pub peak: f64,
    /// Bytes per second that a core reads and writes while it copies 64 MiB.
    pub copying: f64,
    /// The overhead of the execution with the smallest overhead.
    pub overhead: Overhead,
    /// The kinds of work of the fastest counted execution, the longest first; those that take no time are left out.
    pub kinds: Vec<KindShare>,
    /// Seconds of the parts of the fastest complete step of the first graph: emit, plan, verify, execute, update, read.
    pub step: [f64; 6],
}

/// One kind of work of an execution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindShare {
    /// The kind.
    pub kind: &'static str,
    /// Seconds, summed over its stages.
    pub seconds: f64,
    /// Floating-point operations of its products.
    pub flops: f64,
    /// Bytes of values that its stages name: what they read and write, in memory or in caches. An item of a list counts for each
    /// list.
    pub bytes: f64,
}

/// Nanoseconds per step that an execution spends outside kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overhead {
    /// Looking up programs, parameters and packed weights.
    pub preparing: f64,
    /// Checking bindings and preparing memory.
    pub checking: f64,
    /// Time before, between and after steps, including two clock readings per step.
    pub between: f64,
}

impl Overhead {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.preparing + self.checking + self.between
    }
}

impl Effort {
    /// The share of the peak that matrix products reach.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.product_flops / self.seconds / self.peak
    }

    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings serialize")
    }
}

/// Executes the first graph of a model at least `options.rounds` times on one thread.
///
/// # Errors
/// As [`run`](crate::run).
pub fn effort(name: &str, options: &Options) -> Result<Effort, BenchError> {
    options.check()?;
    let opened = catalogue::open(name, &options.sizes)?;
    let mut runner = Runner::new(&opened, &options.policy, &Options { threads: 1, ..options.clone() })?;
    let plan = runner.first_plan()?;
    let isa = runner.executor().isa();
    let mut peak = 0.0f64;
    let mut measure_peak =
        || peak_flops(isa).map(|found| peak = peak.max(found)).map_err(autobatch_runtime_cpu::RunError::Isa);
    let (mut best, mut least) = (Duration::MAX, Duration::MAX);
    runner.execute_again(&plan)?;
    for _ in 0..options.rounds.max(3) {
        measure_peak()?;
        let before = waiting_time();
        let executed = runner.execute_again(&plan)?;
        match waiting_time().saturating_sub(before) {
            Duration::ZERO => best = best.min(executed),
            waited => least = least.min(executed.saturating_sub(waited)),
        }
    }
    // If all executions waited, the remaining time of the fastest is the best estimate.
    let best = if best == Duration::MAX { least } else { best };
    measure_peak()?;
    runner.executor().set_counting(true);
    let mut overhead: Option<Overhead> = None;
    let (mut kinds, mut least_counted) = (Vec::new(), Duration::MAX);
    let work = Work::of(&plan);
    let per_step = |time: Duration| 1e9 * time.as_secs_f64() / plan.steps.len().max(1) as f64;
    for _ in 0..options.rounds.max(3) {
        runner.execute_again(&plan)?;
        let Some(counters) = runner.executor().counters() else { continue };
        let inside: Duration = counters.spans.iter().map(|span| span.time).sum();
        let found = Overhead {
            preparing: per_step(counters.pack),
            checking: per_step(counters.check),
            between: per_step(counters.executing.saturating_sub(inside)),
        };
        overhead = Some(overhead.filter(|least| least.total() <= found.total()).unwrap_or(found));
        let time = counters.executing + counters.reductions;
        if time < least_counted {
            (kinds, least_counted) = (kinds_of(counters, &work), time);
        }
    }
    runner.executor().set_counting(false);
    let mut step: Option<Measured> = None;
    for _ in 0..options.rounds.max(3) {
        let found = runner.first_step()?;
        step = Some(step.filter(|least| least.total() <= found.total()).unwrap_or(found));
    }
    let step = step.unwrap_or_default();
    Ok(Effort {
        workload: name.to_owned(),
        isa: isa.to_string(),
        steps: plan.steps.len(),
        is_training: plan.mode == autobatch_ir::plan::Mode::Train,
        product_flops: work.flops(),
        seconds: best.as_secs_f64(),
        peak,
        copying: copying_rate(),
        overhead: overhead.unwrap_or_default(),
        kinds,
        step: Phase::STEP.map(|phase| step.of(phase).as_secs_f64()),
    })
}

/// The time that the thread has been ready but not running, if the system reports it. On a shared
/// machine, this wait lengthens executions but not the short peak loop.
fn waiting_time() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = schedule.and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Bytes per second, read and written, of a copy that no cache holds.
fn copying_rate() -> f64 {
    let (from, mut to) = (vec![1u8; COPIED], vec![2u8; COPIED]);
    let mut best = Duration::MAX;
    for _ in 0..COPIES {
        let start = Instant::now();
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        best = best.min(start.elapsed());
    }
    2.0 * COPIED as f64 / best.as_secs_f64()
}

/// Operations and bytes of a plan, by kind of work.
struct Work {
    /// The floating-point operations of the products, and the bytes of values.
    kinds: [(f64, f64); WorkKind::ALL.len()],
    /// The floating-point operations of the gradients of weights; `None` without sums.
    gradients: Option<f64>,
}

impl Work {
    fn of(plan: &Plan) -> Self {
        let mut kinds = [(0.0, 0.0); WorkKind::ALL.len()];
        for step in &plan.steps {
            for stage in &plan.kernel(step).stages {
                let (flops, bytes) = &mut kinds[WorkKind::of_stage(stage) as usize];
                *flops += 2.0 * multiply_adds(plan, step, stage) as f64;
                *bytes += 4.0 * words(plan, step, stage) as f64;
            }
        }
        let gradients = plan.reductions.iter().map(|sum| {
            let rows: u64 = sum.parts.iter().map(|part| u64::from(part.lanes) * u64::from(part.each)).sum();
            let per_row = match sum.sum {
                ReductionSum::Wgrad { k, n, .. } => u64::from(k) * u64::from(n),
                // The logits, and the sum.
                ReductionSum::Lgrad => 2 * plan.stores[sum.store.index()].ty.shape.elements() as u64,
                ReductionSum::Colsum | ReductionSum::Tgrad => 0,
            };
            2.0 * (rows * per_row) as f64
        });
        let gradients = (!plan.reductions.is_empty()).then(|| gradients.sum());
        Self { kinds, gradients }
    }

    fn flops(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.0).sum::<f64>() + self.gradients.unwrap_or_default()
    }
}

/// The items of all lists at a port of a step.
fn items_at(plan: &Plan, step: &Step, port: RegId) -> u64 {
    plan.operands(step)[port.index()].address.listed(&plan.tables, &plan.groups, step.rows)
}

/// The words of the values that a stage reads and writes.
fn words(plan: &Plan, step: &Step, stage: &Stage) -> u64 {
    let regs = &plan.kernel(step).regs;
    let listed = |port: RegId| items_at(plan, step, port) * regs[port.index()].ty.shape.elements() as u64;
    let of_lists: u64 = match stage {
        Stage::Seg { lists, .. } => lists
            .iter()
            .map(|list| match list {
                ListSource::Port(port) => listed(*port),
                // They are views, which count below.
                ListSource::Views(_) => 0,
            })
            .sum(),
        Stage::SegGrad { lists, dsts, .. } => {
            let written = lists.iter().zip(dsts).filter(|(_, dst)| dst.is_some());
            lists.iter().map(|&list| listed(list)).sum::<u64>()
                + written.map(|(&list, _)| listed(list)).sum::<u64>()
        }
        Stage::AttendGrad { keys, values, .. } => listed(*keys) + listed(*values),
        Stage::AttendPull { readers, .. } => listed(*readers),
        Stage::Lookup { dst, .. } => u64::from(step.rows) * u64::from(dst.width),
        _ => 0,
    };
    let views = stage.reads().into_iter().chain(stage.writes());
    of_lists + u64::from(step.rows) * views.map(|view| u64::from(view.width)).sum::<u64>()
}

/// The multiply-adds of the products of a stage.
fn multiply_adds(plan: &Plan, step: &Step, stage: &Stage) -> u64 {
    let rows = u64::from(step.rows);
    let width = |view: &View| u64::from(view.width);
    let items = |port: &RegId| items_at(plan, step, *port);
    // The scores of graph attention are sums.
    let scores = |op: Op, key: &View| if matches!(op, Op::Attend { .. }) { width(key) } else { 0 };
    match stage {
        Stage::Prod { dst, rows: of, parts, .. } => {
            let of = u64::from(*of).max(1);
            let inner: u64 = parts.iter().map(|part| width(&part.source) / of).sum();
            rows * inner * width(dst)
        }
        Stage::Row { op: Op::Matmul, sources, dsts } => {
            let inner = sources.first().map_or(0, |source| source.1.shape.width() as u64);
            rows * inner * dsts.first().map_or(0, width)
        }
        Stage::LabelLoss { param, slope, .. } => {
            let elements = plan.kernel(step).params[param.index()].shape.elements() as u64;
            rows * elements * if slope.is_some() { 2 } else { 1 }
        }
        Stage::Seg { op, query: Some(query), lists, dst, .. } if *op != Op::ListPick => {
            let items = match lists.first() {
                Some(ListSource::Port(port)) => items(port),
                Some(ListSource::Views(views)) => rows * views.len() as u64,
                None => 0,
            };
            items * (scores(*op, query) + width(dst))
        }
        Stage::AttendGrad { op, query, keys, dy, .. } => items(keys) * (2 * scores(*op, query) + width(dy)),
        Stage::AttendPull { op, key, value, readers, .. } => {
            items(readers) * 2 * (scores(*op, key) + width(value))
        }
        _ => 0,
    }
}

/// The name of the sums over all rows, after the steps.
const GRADIENTS: &str = "gradients of weights";

fn kinds_of(counters: &Counters, work: &Work) -> Vec<KindShare> {
    let of_steps = WorkKind::ALL.into_iter().zip(counters.kinds).zip(work.kinds);
    let of_steps = of_steps.map(|((kind, time), work)| (kind.name(), time, work));
    let of_sums = work.gradients.map(|flops| (GRADIENTS, counters.reductions, (flops, 0.0)));
    let all = of_steps.chain(of_sums);
    let mut kinds: Vec<KindShare> = all
        .filter(|(_, time, _)| *time > Duration::ZERO)
        .map(|(kind, time, (flops, bytes))| KindShare { kind, seconds: time.as_secs_f64(), flops, bytes })
        .collect();
    kinds.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    kinds
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, isa, steps, is_training, product_flops, seconds, peak, copying, .. } = self;
        let Self { overhead, kinds, step, .. } = self;
        let mode = if *is_training { "training" } else { "inference" };
        writeln!(f, "{workload}  {mode}, first graph, {steps} steps, one thread, {isa}")?;
        writeln!(
            f,
            "products    {:.2} GFLOP in {:.3} ms: {:.1} GFLOP/s, {:.0} % of the peak of {:.1}",
            product_flops / 1e9,
            1e3 * seconds,
            product_flops / seconds / 1e9,
            100.0 * self.share(),
            peak / 1e9
        )?;
        writeln!(
            f,
            "overhead    {:.0} ns per step outside kernels, {:.1} % of the execution: {:.0} looking up programs and weights, \
             {:.0} checking bindings, {:.0} between steps",
            overhead.total(),
            100.0 * overhead.total() * 1e-9 * *steps as f64 / seconds,
            overhead.preparing,
            overhead.checking,
            overhead.between,
        )?;
        writeln!(f, "memory      {:.1} GB/s, read and written, copying {} MiB", copying / 1e9, COPIED >> 20)?;
        let counted: f64 = kinds.iter().map(|kind| kind.seconds).sum();
        for (number, KindShare { kind, seconds, flops, bytes }) in kinds.iter().enumerate() {
            let title = if number == 0 { "execution" } else { "" };
            let share = 100.0 * seconds / counted;
            write!(f, "{title:<11} {share:5.1} %  {:9.3} ms  {kind}", 1e3 * seconds)?;
            if *flops > 0.0 {
                write!(f, ", {:.0} % of the peak", 100.0 * flops / seconds / peak)?;
            }
            if *bytes > 0.0 {
                write!(f, ", {:.0} GB/s", bytes / seconds / 1e9)?;
            }
            writeln!(f)?;
        }
        let whole: f64 = step.iter().sum();
        let parts = ["emit", "plan", "verify", "execute", "update", "read"].into_iter().zip(step);
        let parts: Vec<String> =
            parts.map(|(part, seconds)| format!("{part} {:.3}", 1e3 * seconds)).collect();
        writeln!(
            f,
            "step        {:.3} ms, products at {:.0} % of the peak: {}",
            1e3 * whole,
            100.0 * product_flops / whole / peak,
            parts.join(", ")
        )
    }
}
