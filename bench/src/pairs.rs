//! Measures one thread against several in alternating pairs, and the idle time of threads.

use crate::step::Runner;
use crate::{BenchError, Options};
use autobatch_models::catalogue;
use autobatch_runtime_cpu::resolve_threads;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Minimum number of pairs; more rounds give more pairs.
const MIN_PAIRS: usize = 20;

/// The executions of one plan on one thread and on several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pairs {
    /// The model's name.
    pub workload: String,
    /// Number of threads of the second execution of each pair.
    pub threads: usize,
    /// Number of pairs.
    pub pairs: usize,
    /// Seconds of the fastest execution on one thread.
    pub single: f64,
    /// Seconds of the fastest execution on all threads.
    pub several: f64,
    /// The median speedup of pairs.
    pub median_speedup: f64,
    /// The smallest share of time in which threads were idle, over executions with counters.
    pub idle: f64,
}

impl Pairs {
    /// The speedup of the fastest executions.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        self.single / self.several
    }

    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings serialize")
    }
}

/// Executes the first graph of a model in at least twenty pairs. `options.threads` is the number of
/// threads of the second execution of each pair; 0 and 1 mean one per core.
///
/// # Errors
/// As [`run`](crate::run).
pub fn pairs(name: &str, options: &Options) -> Result<Pairs, BenchError> {
    options.check()?;
    let opened = catalogue::open(name, &options.sizes)?;
    let threads = match options.threads {
        0 | 1 => resolve_threads(0),
        threads => threads,
    };
    let runner = |threads| Runner::new(&opened, &options.policy, &Options { threads, ..options.clone() });
    let (mut single, mut several) = (runner(1)?, runner(threads)?);
    let plans = (single.first_plan()?, several.first_plan()?);
    let mut best = (Duration::MAX, Duration::MAX);
    let pairs = options.rounds.max(MIN_PAIRS);
    let mut speedups = Vec::with_capacity(pairs);
    single.execute_again(&plans.0)?;
    several.execute_again(&plans.1)?;
    for _ in 0..pairs {
        let pair = (single.execute_again(&plans.0)?, several.execute_again(&plans.1)?);
        speedups.push(pair.0.as_secs_f64() / pair.1.as_secs_f64().max(1e-9));
        best = (best.0.min(pair.0), best.1.min(pair.1));
    }
    speedups.sort_by(f64::total_cmp);
    several.executor().set_counting(true);
    let mut idle = 1.0f64;
    for _ in 0..pairs {
        several.execute_again(&plans.1)?;
        idle = idle.min(several.executor().counters().map_or(1.0, |counters| counters.idle_share(threads)));
    }
    Ok(Pairs {
        workload: name.to_owned(),
        threads,
        pairs,
        single: best.0.as_secs_f64(),
        several: best.1.as_secs_f64(),
        median_speedup: speedups[pairs / 2],
        idle,
    })
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, threads, pairs, single, several, median_speedup, idle } = self;
        writeln!(f, "{workload}  first graph, {pairs} alternating pairs")?;
        writeln!(f, "1 thread    {:.3} ms (fastest)", 1e3 * single)?;
        writeln!(
            f,
            "{threads} threads   {:.3} ms (fastest), {:.2} x faster, median of pairs {median_speedup:.2} x; idle {:.0} %",
            1e3 * several,
            self.speedup(),
            100.0 * idle
        )
    }
}
