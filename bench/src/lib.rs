//! Times whole steps of the catalogue's models: what a user waits for, not what a kernel takes.
//!
//! A *step* goes through all instances once, so many a graph: emit the graph, plan it afresh (no
//! plan is kept: the same minibatch hardly ever comes twice), verify the plan, execute it, read every
//! output. It stands beside the same instances *one by one*: the same kernels on the same packed
//! weights, one node after another (policy `none`), and its plans are made beforehand and
//! cost nothing. Rounds of both take turns, and medians are reported, so that a busy machine hurts
//! both alike. Outputs of both are compared bit by bit.
//!
//! [`run`] makes a [`Report`], which displays itself as a table and serialises as JSON whose
//! `seconds_per_step`, `mode` and `threads` are what the scripts of other systems read, so that
//! ours can be timed between theirs. [`sweep`] goes through batch sizes, [`effort`] measures against the
//! peak of the processor, [`pairs`] measures several threads against one, and [`calibrate`] fits the cost
//! table that policies predict with.

mod arguments;
mod calibrate;
mod dump;
mod effort;
mod error;
#[cfg(feature = "gpu")]
pub mod gpu;
mod pairs;
mod report;
mod step;
mod sweep;

pub use arguments::{BenchArgs, parse_bytes};
pub use calibrate::{Calibration, calibrate};
pub use dump::dump;
pub use effort::{Effort, effort};
pub use error::BenchError;
pub use pairs::{Pairs, pairs};
pub use report::{KernelShare, Phases, PlanFacts, Report, Split};
pub use sweep::{Sweep, SweepRow, sweep};

use autobatch_models::catalogue::{self, Problem};
use autobatch_planner::schedule::Policy;
use autobatch_runtime_cpu::MAX_THREADS;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use step::{Measured, Prepared, Runner};

/// What a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Outputs only.
    #[default]
    Infer,
    /// Forward, backward and update.
    Train,
}

impl FromStr for Mode {
    type Err = BenchError;

    fn from_str(word: &str) -> Result<Self, BenchError> {
        match word {
            "infer" => Ok(Self::Infer),
            "train" => Ok(Self::Train),
            _ => Err(BenchError::Mode(word.to_owned())),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Infer => "infer",
            Self::Train => "train",
        })
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes and instances.
    pub sizes: catalogue::Options,
    /// What a step does.
    pub mode: Mode,
    /// On how many threads plans are executed; 0 means one a core.
    pub threads: usize,
    /// How often each variant takes its turn.
    pub rounds: usize,
    /// A turn repeats the step until it has taken this long.
    pub turn: Duration,
    /// How batches are chosen.
    pub policy: Policy,
    /// Whether to measure one by one, too, and to compare the bits.
    pub one_by_one: bool,
    /// Whether updates leave rows of tables alone that the minibatch did not look up.
    pub sparse_rows: bool,
    /// Whether to split executing into its phases; costs two readings of the clock a step.
    pub phases: bool,
    /// How many bytes the slabs of a plan may take; `None` is as many as can be had.
    pub memory_limit: Option<u64>,
}

impl Options {
    fn check(&self) -> Result<(), BenchError> {
        if !(1..=MOST_ROUNDS).contains(&self.rounds) {
            return Err(BenchError::Rounds { most: MOST_ROUNDS, found: self.rounds });
        }
        if self.threads > MAX_THREADS {
            return Err(BenchError::Threads { most: MAX_THREADS, found: self.threads });
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sizes: catalogue::Options { seed: 1, ..catalogue::Options::default() },
            mode: Mode::Infer,
            threads: 1,
            rounds: 7,
            turn: Duration::from_millis(100),
            policy: Policy::default(),
            one_by_one: true,
            sparse_rows: false,
            phases: false,
            memory_limit: None,
        }
    }
}

/// More rounds than this are refused.
const MOST_ROUNDS: usize = 10_000;
/// A turn repeats a step at most so often.
const MOST_REPEATS: usize = 1_000;

/// Measures a model of the catalogue.
///
/// # Errors
/// If there is no such model, an option does not fit, or a step fails.
pub fn run(name: &str, options: &Options) -> Result<Report, BenchError> {
    options.check()?;
    let problem = catalogue::open(name, &options.sizes)?;
    if problem.workload.instances() == 0 {
        return Err(BenchError::NoInstances);
    }
    let mut batched = Runner::new(&problem, &options.policy, options)?;
    let facts = batched.facts()?;
    let mut single = match options.one_by_one {
        true => {
            let mut runner = Runner::new(&problem, &Policy::Unbatched, options)?;
            let prepared = runner.prepare()?;
            Some((runner, prepared))
        }
        false => None,
    };
    let same_bits = match &mut single {
        Some((runner, prepared)) => Some(same_bits(&mut batched, runner, prepared)?),
        None => None,
    };
    let (fresh, known) = take_turns(&mut batched, single.as_mut(), options)?;
    Ok(Report::new(&problem, options, &batched, facts, (&fresh, &known), same_bits))
}

fn same_bits(
    batched: &mut Runner<'_>,
    single: &mut Runner<'_>,
    prepared: &Prepared,
) -> Result<bool, BenchError> {
    batched.fresh_step()?;
    single.known_step(prepared)?;
    let bits = |outputs: &[f32]| outputs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    Ok(bits(batched.outputs()) == bits(single.outputs()))
}

/// Measures in turns; the second list is empty where nothing is measured one by one.
fn take_turns(
    batched: &mut Runner<'_>,
    mut single: Option<&mut (Runner<'_>, Prepared)>,
    options: &Options,
) -> Result<(Vec<Measured>, Vec<Measured>), BenchError> {
    let (mut fresh, mut known) = (Vec::new(), Vec::new());
    // Not counted: touches memory, compiles kernels, packs weights, and says how long a step is.
    batched.fresh_step()?;
    let first = batched.fresh_step()?.total();
    let repeats = options.turn.as_secs_f64() / first.as_secs_f64().max(1e-9);
    let repeats = (repeats.round() as usize).clamp(1, MOST_REPEATS);
    for _ in 0..options.rounds {
        fresh.push(mean(repeats, || batched.fresh_step())?);
        if let Some((runner, prepared)) = &mut single {
            known.push(runner.known_step(prepared)?);
        }
    }
    Ok((fresh, known))
}

fn mean(
    repeats: usize,
    mut step: impl FnMut() -> Result<Measured, BenchError>,
) -> Result<Measured, BenchError> {
    let mut sum = Measured::default();
    for _ in 0..repeats {
        sum += step()?;
    }
    Ok(sum.divided(repeats as u32))
}

/// The instances of a problem that go into each graph.
fn chunks(problem: &Problem) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
    let (count, batch) = (problem.workload.instances(), problem.batch.max(1));
    (0..count).step_by(batch).map(move |start| start..count.min(start.saturating_add(batch)))
}
