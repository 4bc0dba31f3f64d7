//! Measures matrix products against the peak of the processor, and the overhead of the executor.
//!
//! The first graph of a model is planned once and executed repeatedly. The peak is measured in the same
//! thread before and after each execution, because clock rates change. The result compares the fastest
//! execution with the highest peak. Time in which the thread waits for a core does not count.

use crate::step::Runner;
use crate::{BenchError, Options};
use autobatch_ir::plan::Plan;
use autobatch_models::catalogue;
use autobatch_planner::Work;
use autobatch_planner::schedule::Class;
use autobatch_runtime_cpu::kernels::peak_flops;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Executions of one plan on one thread, compared with the peak of a core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effort {
    /// The model's name.
    pub workload: String,
    /// The instruction set.
    pub isa: String,
    /// Number of steps of the plan.
    pub steps: usize,
    /// Floating-point operations of its matrix products, two per multiply-add.
    pub product_flops: f64,
    /// Seconds of the fastest execution, without waiting for a core.
    pub seconds: f64,
    /// Peak floating-point operations per second of a core.
    pub peak: f64,
    /// The overhead of the execution with the smallest overhead.
    pub overhead: Overhead,
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
    }
    Ok(Effort {
        workload: name.to_owned(),
        isa: isa.to_string(),
        steps: plan.steps.len(),
        product_flops: product_flops(&plan),
        seconds: best.as_secs_f64(),
        peak,
        overhead: overhead.unwrap_or_default(),
    })
}

/// The time that the thread has been ready but not running, if the system reports it. On a shared
/// machine, this wait lengthens executions but not the short peak loop.
fn waiting_time() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = schedule.and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

fn product_flops(plan: &Plan) -> f64 {
    let work: Vec<u64> =
        plan.kernels.iter().map(|kernel| Work::of(kernel).class(Class::Product).units).collect();
    let step = |step: &autobatch_ir::plan::Step| work[step.kernel.index()] as f64 * f64::from(step.rows);
    2.0 * plan.steps.iter().map(step).sum::<f64>()
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, isa, steps, product_flops, seconds, peak, overhead } = self;
        writeln!(f, "{workload}  first graph, {steps} steps, one thread, {isa}")?;
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
        )
    }
}
