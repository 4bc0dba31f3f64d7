//! One thread against several, in pairs that take turns, and how long the threads idle.

use crate::step::Runner;
use crate::{BenchError, Options};
use autobatch_models::catalogue;
use autobatch_runtime_cpu::resolve_threads;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The most pairs; more are executed only where more rounds are asked for.
const LEAST_PAIRS: usize = 20;

/// Executes of one plan on one thread and on several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pairs {
    /// The model's name.
    pub workload: String,
    /// The threads of the second of each pair.
    pub threads: usize,
    /// How many pairs there were.
    pub pairs: usize,
    /// Seconds of the best execute on one thread.
    pub single: f64,
    /// Seconds of the best execute on all threads.
    pub several: f64,
    /// The median over pairs of how much faster several threads were.
    pub median_speedup: f64,
    /// The least share of time, over counted executes, in which threads executed no step.
    pub idle: f64,
}

impl Pairs {
    /// How much faster several threads are, each at its best.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        self.single / self.several
    }

    /// The same as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words have a spelling in JSON")
    }
}

/// Executes the first graph of a model in at least twenty pairs. `options.threads` are those of the second of each pair; 0 and 1 mean
/// one a core.
///
/// # Errors
/// As [`run`](crate::run).
pub fn pairs(name: &str, options: &Options) -> Result<Pairs, BenchError> {
    options.check()?;
    let problem = catalogue::open(name, &options.sizes)?;
    let threads = match options.threads {
        0 | 1 => resolve_threads(0),
        threads => threads,
    };
    let runner = |threads| Runner::new(&problem, &options.policy, &Options { threads, ..options.clone() });
    let (mut single, mut several) = (runner(1)?, runner(threads)?);
    let plans = (single.first_plan()?, several.first_plan()?);
    let mut best = (Duration::MAX, Duration::MAX);
    let pairs = options.rounds.max(LEAST_PAIRS);
    let mut speedups = Vec::with_capacity(pairs);
    single.replay(&plans.0)?;
    several.replay(&plans.1)?;
    for _ in 0..pairs {
        let pair = (single.replay(&plans.0)?, several.replay(&plans.1)?);
        speedups.push(pair.0.as_secs_f64() / pair.1.as_secs_f64().max(1e-9));
        best = (best.0.min(pair.0), best.1.min(pair.1));
    }
    speedups.sort_by(f64::total_cmp);
    several.executor().set_counting(true);
    let mut idle = 1.0f64;
    for _ in 0..pairs {
        several.replay(&plans.1)?;
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
        writeln!(f, "{workload}  first graph, {pairs} pairs in turns")?;
        writeln!(f, "1 thread    {:.3} ms at best", 1e3 * single)?;
        writeln!(
            f,
            "{threads} threads   {:.3} ms at best, {:.2} x faster, median of pairs {median_speedup:.2} x; idle {:.0} %",
            1e3 * several,
            self.speedup(),
            100.0 * idle
        )
    }
}
