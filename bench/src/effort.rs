//! How much of what the processor could do at most goes into products, and what an executor costs besides its kernels.
//!
//! The first graph of a model is planned once and executed again and again. Right before and after each run the peak is measured
//! in the same thread, because clocks change from moment to moment; the best execute counts, against the best peak. Time in which the
//! thread waited for a core is not the run's.

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

/// Executes of one plan on one thread against the peak of a core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effort {
    /// The model's name.
    pub workload: String,
    /// The instruction set.
    pub isa: String,
    /// Steps of the plan.
    pub steps: usize,
    /// Floating-point operations of its products, two each multiply-add.
    pub product_flops: f64,
    /// Seconds of the best execute, without waiting for a core.
    pub seconds: f64,
    /// Floating-point operations a second of a core at its best.
    pub peak: f64,
    /// The run that spent the least outside of kernels.
    pub besides: Besides,
}

/// Nanoseconds a step that a run spends outside of kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Besides {
    /// Finding programs, parameters and packed weights.
    pub preparing: f64,
    /// Checking bound numbers, and making memory ready.
    pub checking: f64,
    /// Before, between and behind steps, two readings of the processor's counter a step included.
    pub between: f64,
}

impl Besides {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.preparing + self.checking + self.between
    }
}

impl Effort {
    /// The part of the peak that is useful work.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.product_flops / self.seconds / self.peak
    }

    /// The same as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words have a spelling in JSON")
    }
}

/// Executes the first graph of a model `options.rounds` times and more, on one thread.
///
/// # Errors
/// As [`run`](crate::run).
pub fn effort(name: &str, options: &Options) -> Result<Effort, BenchError> {
    options.check()?;
    let problem = catalogue::open(name, &options.sizes)?;
    let mut runner = Runner::new(&problem, &options.policy, &Options { threads: 1, ..options.clone() })?;
    let plan = runner.first_plan()?;
    let isa = runner.executor().isa();
    let mut peak = 0.0f64;
    let mut ask =
        || peak_flops(isa).map(|found| peak = peak.max(found)).map_err(autobatch_runtime_cpu::RunError::Isa);
    let (mut best, mut least) = (Duration::MAX, Duration::MAX);
    runner.replay(&plan)?;
    for _ in 0..options.rounds.max(3) {
        ask()?;
        let waited = waited();
        let executed = runner.replay(&plan)?;
        match self::waited().saturating_sub(waited) {
            Duration::ZERO => best = best.min(executed),
            waited => least = least.min(executed.saturating_sub(waited)),
        }
    }
    // What is left of a run that waited is an estimate, for want of a better.
    let best = if best == Duration::MAX { least } else { best };
    ask()?;
    runner.executor().set_counting(true);
    let mut besides: Option<Besides> = None;
    let each = |time: Duration| 1e9 * time.as_secs_f64() / plan.steps.len().max(1) as f64;
    for _ in 0..options.rounds.max(3) {
        runner.replay(&plan)?;
        let Some(counters) = runner.executor().counters() else { continue };
        let inside: Duration = counters.spans.iter().map(|span| span.time).sum();
        let found = Besides {
            preparing: each(counters.pack),
            checking: each(counters.check),
            between: each(counters.executing.saturating_sub(inside)),
        };
        besides = Some(besides.filter(|least| least.total() <= found.total()).unwrap_or(found));
    }
    Ok(Effort {
        workload: name.to_owned(),
        isa: isa.to_string(),
        steps: plan.steps.len(),
        product_flops: product_flops(&plan),
        seconds: best.as_secs_f64(),
        peak,
        besides: besides.unwrap_or_default(),
    })
}

/// How long the thread has been ready but not running, where the system tells: on a shared machine that would lengthen executes of
/// milliseconds and not the peak loop beside them.
fn waited() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
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
        let Self { workload, isa, steps, product_flops, seconds, peak, besides } = self;
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
            "besides     {:.0} ns a step outside of kernels, {:.1} % of the run: {:.0} finding programs and weights, {:.0} checking \
             what is bound, {:.0} between steps",
            besides.total(),
            100.0 * besides.total() * 1e-9 * *steps as f64 / seconds,
            besides.preparing,
            besides.checking,
            besides.between,
        )
    }
}
