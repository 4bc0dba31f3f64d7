//! The latency of one instance at a time, as a user of a session sees it.

use crate::{BenchError, Mode, Options};
use autobatch::train::Bar;
use autobatch::{Session, SessionOptions};
use autobatch_ir::{Value, Weights};
use autobatch_models::catalogue::{self, OpenModel};
use serde::Serialize;
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of calls of each variant in a round.
const CALLS: usize = 1_000;

/// Percentiles of the times of calls, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of the calls were faster.
    pub p50: f64,
    /// 90 of 100 calls were faster.
    pub p90: f64,
    /// 99 of 100 calls were faster.
    pub p99: f64,
}

impl Percentiles {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(place).map_or(f64::NAN, Duration::as_secs_f64)
        };
        Self { p50: at(50), p90: at(90), p99: at(99) }
    }
}

/// The times of complete calls of one instance each: recording, planning or a lookup, execution, reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The model's name.
    pub workload: String,
    /// The name of instances, such as trees.
    pub unit: String,
    /// The number of instances, which calls take in turns.
    pub instances: usize,
    /// Number of threads; 0 means one per core.
    pub threads: usize,
    /// Number of calls of each variant.
    pub calls: usize,
    /// Calls whose plan is in the cache of the session, because the structure of the instance was seen before.
    pub cached: Percentiles,
    /// Calls that make a plan.
    pub planned: Percentiles,
}

/// Measures calls of one instance each: a thousand for each round, with and without cached plans in turns.
///
/// # Errors
/// If the model is unknown, an option does not fit, or a call fails.
pub fn latency(name: &str, options: &Options) -> Result<Latency, BenchError> {
    options.check()?;
    if options.mode == Mode::Train {
        let measurement = "latency".to_owned();
        return Err(BenchError::Unused { option: "--mode train", measurement });
    }
    let opened = catalogue::open(name, &options.sizes)?;
    let instances = opened.workload.instances();
    if instances == 0 {
        return Err(BenchError::NoInstances);
    }
    let weights = Arc::new(Weights::init(&opened.module, 0));
    let session = |cached_plans| {
        let options = SessionOptions {
            policy: Some(options.policy.clone()),
            threads: options.threads,
            cached_plans,
            ..SessionOptions::default()
        };
        Session::with_options(&opened.module, Arc::clone(&weights), options)
    };
    let mut variants = [session(instances)?, session(0)?];
    let mut times = [Vec::new(), Vec::new()];
    // The first calls fill the cache, compile kernels and touch memory.
    for session in &mut variants {
        (0..instances).try_for_each(|instance| call(session, &opened, instance).map(drop))?;
    }
    let mut bar = Bar::new("latency", options.rounds);
    for round in 0..options.rounds {
        bar.advance(&format!("round {}", round + 1));
        for (session, times) in variants.iter_mut().zip(&mut times) {
            for number in 0..CALLS {
                times.push(call(session, &opened, (round * CALLS + number) % instances)?);
            }
        }
    }
    let [cached, planned] = times.map(Percentiles::of);
    Ok(Latency {
        workload: opened.entry.name.to_owned(),
        unit: opened.entry.unit.to_owned(),
        instances,
        threads: options.threads,
        calls: options.rounds * CALLS,
        cached,
        planned,
    })
}

/// One complete call.
fn call(session: &mut Session, opened: &OpenModel, instance: usize) -> Result<Duration, BenchError> {
    let start = Instant::now();
    let graph = session.graph();
    let mut outputs: Vec<Value<'_>> = Vec::new();
    opened.workload.emit(&graph, instance, &mut outputs);
    let run = session.run(&graph, &outputs)?;
    for &output in &outputs {
        black_box(&run[output]);
    }
    Ok(start.elapsed())
}

impl Latency {
    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings serialize")
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, unit, instances, threads, calls, .. } = self;
        writeln!(f, "{workload}  {calls} calls over {instances} {unit}, one at a time, threads {threads}")?;
        writeln!(f, "{:14}{:>10}{:>10}{:>10}   microseconds", "", "p50", "p90", "p99")?;
        for (name, Percentiles { p50, p90, p99 }) in
            [("cached plan", self.cached), ("new plan", self.planned)]
        {
            writeln!(f, "{name:14}{:>10.1}{:>10.1}{:>10.1}", 1e6 * p50, 1e6 * p90, 1e6 * p99)?;
        }
        Ok(())
    }
}
