//! Times complete steps of the catalogue's models, as users experience them.
//!
//! A *step* processes all instances once, a batch of instances per graph. For each graph it emits the
//! graph, makes and verifies a new plan, executes the plan and reads all outputs. No plan is reused,
//! because training rarely repeats a minibatch.
//!
//! The *unbatched* variant executes the same kernels with the same packed weights, one node at a time
//! (policy `none`). Its plans are made in advance and cost no time. The *repeated* variant takes its plans from a cache, as
//! a session does that meets the same structures often: in inference they come from a longer search. Rounds of all variants
//! alternate and the report shows medians, so other load on the machine affects all. Their outputs are compared bit by bit.
//!
//! [`run`] returns a [`Report`], which prints a table and serializes as JSON. Scripts of other systems
//! read its fields `seconds_per_step`, `mode` and `threads`, so they can time this program between
//! their own runs. [`sweep`] measures several batch sizes, [`effort`] measures against the
//! peak of the processor, [`pairs`] measures several threads against one, and [`latency`] calls of one instance.

mod arguments;
#[cfg(feature = "gpu")]
pub mod doctor;
mod dump;
mod effort;
mod error;
#[cfg(feature = "gpu")]
pub mod gpu;
mod latency;
mod machine;
mod pairs;
#[cfg(feature = "gpu")]
mod predict;
mod report;
mod step;
mod sweep;

pub use arguments::{BenchArgs, StepArgs, parse_bytes};
pub use dump::dump;
pub use effort::{Effort, effort};
pub use error::BenchError;
pub use latency::{Latency, Percentiles, latency};
pub use machine::Machine;
pub use pairs::{Pairs, pairs};
#[cfg(feature = "gpu")]
pub use predict::{Predictions, predict};
pub use report::{GpuPhases, KernelShare, Phases, PlanFacts, Report, SameBits, Split};
pub use sweep::{Sweep, SweepRow, sweep};

use autobatch::Device;
use autobatch::train::Bar;
use autobatch_models::catalogue::{self, OpenModel};
use autobatch_planner::schedule::Policy;
use autobatch_runtime_cpu::MAX_THREADS;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use step::{Measured, Prepared, Runner};

/// The mode of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Inference: outputs only.
    #[default]
    Infer,
    /// Training: forward, reverse and update.
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

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes and instances.
    pub sizes: catalogue::Options,
    /// The mode of a step.
    pub mode: Mode,
    /// The device that executes.
    pub device: Device,
    /// Number of threads of the CPU; 0 means one per core.
    pub threads: usize,
    /// Number of rounds of each variant.
    pub rounds: usize,
    /// Duration of a round, which repeats the step.
    pub turn: Duration,
    /// The batching policy.
    pub policy: Policy,
    /// Whether to measure the unbatched and the repeated variant too and compare the bits.
    pub variants: bool,
    /// Whether updates change only the rows of tables that the minibatch looked up.
    pub sparse_rows: bool,
    /// Whether to measure the phases of execution, at the cost of two clock readings per step.
    pub phases: bool,
    /// Maximum memory of executing a plan, in bytes; `None` is unlimited.
    pub memory_limit: Option<u64>,
}

impl Options {
    fn check(&self) -> Result<(), BenchError> {
        if !(1..=MAX_ROUNDS).contains(&self.rounds) {
            return Err(BenchError::Rounds { max: MAX_ROUNDS, found: self.rounds });
        }
        if self.threads > MAX_THREADS {
            return Err(BenchError::Threads { max: MAX_THREADS, found: self.threads });
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sizes: catalogue::Options { seed: 1, ..catalogue::Options::default() },
            mode: Mode::Infer,
            device: Device::Cpu,
            threads: 1,
            rounds: 7,
            turn: Duration::from_millis(100),
            policy: Policy::default(),
            variants: true,
            sparse_rows: false,
            phases: false,
            memory_limit: None,
        }
    }
}

/// Maximum number of rounds.
const MAX_ROUNDS: usize = 10_000;
/// Least number of minibatches whose training is compared.
const COMPARED_MINIBATCHES: usize = 8;
/// Maximum number of repetitions of the step in a round.
const MAX_REPEATS: usize = 1_000;

/// Measures a model of the catalogue.
///
/// # Errors
/// If the model is unknown, an option does not fit, or a step fails.
pub fn run(name: &str, options: &Options) -> Result<Report, BenchError> {
    options.check()?;
    let opened = catalogue::open(name, &options.sizes)?;
    if opened.workload.instances() == 0 {
        return Err(BenchError::NoInstances);
    }
    let mut batched = Runner::new(&opened, &options.policy, options)?;
    let facts = batched.facts()?;
    let mut others = match options.variants {
        true => {
            let mut single = Runner::new(&opened, &Policy::None, options)?;
            let prepared = single.prepare()?;
            let mut repeated = Runner::new(&opened, &options.policy, options)?;
            let facts = repeated.settle()?;
            Some((Others { single, prepared, repeated }, facts))
        }
        false => None,
    };
    let same_bits = match &mut others {
        Some((others, _)) => Some(same_bits(&mut batched, others)?),
        None => None,
    };
    let repeated = others.as_ref().map(|(_, facts)| *facts);
    let rounds = alternate(&mut batched, others.as_mut().map(|(others, _)| others), options)?;
    let report = Report::new(&opened, options, &batched, facts, repeated, &rounds, same_bits);
    let executions = if options.phases { options.rounds } else { 0 };
    Ok(Report { kernels: batched.kernels(executions)?, ..report })
}

/// The variants beside the batched one.
struct Others<'p> {
    single: Runner<'p>,
    /// The plans of the unbatched variant.
    prepared: Prepared,
    repeated: Runner<'p>,
}

/// Compares the outputs of all variants; in training the losses of some minibatches, and the weights and states of the
/// optimizer after the last.
fn same_bits(batched: &mut Runner<'_>, others: &mut Others<'_>) -> Result<SameBits, BenchError> {
    let Others { single, prepared, repeated } = others;
    let steps = match batched.trained().next() {
        Some(_) => COMPARED_MINIBATCHES.div_ceil(prepared.len().max(1)),
        None => 1,
    };
    let equal =
        |one: &[f32], other: &[f32]| one.iter().map(|x| x.to_bits()).eq(other.iter().map(|x| x.to_bits()));
    let mut same = SameBits { equal: true, minibatches: steps * prepared.len(), numbers: 0, trained: 0 };
    for _ in 0..steps {
        batched.full_step()?;
        single.prepared_step(prepared)?;
        repeated.repeated_step()?;
        same.equal &= equal(batched.outputs(), single.outputs());
        same.equal &= equal(batched.outputs(), repeated.outputs());
        same.numbers += batched.outputs().len();
    }
    for (one, (single, repeated)) in batched.trained().zip(single.trained().zip(repeated.trained())) {
        same.equal &= equal(one, single) && equal(one, repeated);
        same.trained += one.len();
    }
    Ok(same)
}

/// The measurements of all rounds, by variant. The others are empty if only the batched variant is measured.
#[derive(Default)]
pub(crate) struct Rounds {
    pub(crate) batched: Vec<Measured>,
    pub(crate) unbatched: Vec<Measured>,
    pub(crate) repeated: Vec<Measured>,
}

/// Measures all variants in turns.
fn alternate(
    batched: &mut Runner<'_>,
    mut others: Option<&mut Others<'_>>,
    options: &Options,
) -> Result<Rounds, BenchError> {
    let mut rounds = Rounds::default();
    // Two steps without measurement touch memory, compile kernels, pack weights and estimate the time.
    batched.full_step()?;
    let first = batched.full_step()?.total();
    let repeats = options.turn.as_secs_f64() / first.as_secs_f64().max(1e-9);
    let repeats = (repeats.round() as usize).clamp(1, MAX_REPEATS);
    let mut bar = Bar::new("bench", options.rounds);
    for round in 1..=options.rounds {
        bar.advance(&format!("round {round}"));
        rounds.batched.push(mean(repeats, || batched.full_step())?);
        if let Some(Others { single, prepared, repeated }) = &mut others {
            rounds.unbatched.push(single.prepared_step(prepared)?);
            rounds.repeated.push(mean(repeats, || repeated.repeated_step())?);
        }
    }
    Ok(rounds)
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

/// The instances of each graph.
fn chunks(opened: &OpenModel) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
    let (count, batch) = (opened.workload.instances(), opened.batch.max(1));
    (0..count).step_by(batch).map(move |start| start..count.min(start.saturating_add(batch)))
}
