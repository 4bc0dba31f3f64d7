//! What was measured, for people and for programs.

use crate::step::{self, Measured, Runner};
use crate::{Mode, Options};
use autobatch_ir::plan::Plan;
use autobatch_models::catalogue::Problem;
use autobatch_runtime_cpu::executor::KernelCount;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Seconds of a step's parts: the median of each over the rounds. Medians need not add up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Split {
    /// Recording the graph.
    pub emit: f64,
    /// From the graph to a plan; 0 where plans were made beforehand.
    pub plan: f64,
    /// Checking the plan; 0 where plans were made beforehand.
    pub verify: f64,
    /// Computing.
    pub execute: f64,
    /// Changing the parameters; 0 where nothing is trained.
    pub update: f64,
    /// Copying every output.
    pub read: f64,
    /// The whole step.
    pub total: f64,
}

/// A part of a step: its name and its seconds.
type Part = (&'static str, fn(&Split) -> f64);

impl Split {
    pub(crate) fn of(rounds: &[Measured]) -> Option<Self> {
        let part = |part| median(rounds, |measured| measured.of(part));
        Some(Self {
            emit: part(step::Part::Emit)?,
            plan: part(step::Part::Plan)?,
            verify: part(step::Part::Verify)?,
            execute: part(step::Part::Execute)?,
            update: part(step::Part::Update)?,
            read: part(step::Part::Read)?,
            total: median(rounds, Measured::total)?,
        })
    }
}

/// Seconds of the phases of executing: the median of each over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phases {
    /// Finding programs, and packing weights that an update changed.
    pub pack: f64,
    /// Forward steps.
    pub forward: f64,
    /// Steps in reverse.
    pub reverse: f64,
    /// Gradients of parameters, as sums over all rows.
    pub reductions: f64,
}

impl Phases {
    pub(crate) fn of(rounds: &[Measured]) -> Option<Self> {
        let part = |part| median(rounds, |measured| measured.of(part));
        Some(Self {
            pack: part(step::Part::Pack)?,
            forward: part(step::Part::Forward)?,
            reverse: part(step::Part::Reverse)?,
            reductions: part(step::Part::Reductions)?,
        })
    }
}

/// What a kernel took of the last graph: the least of all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelShare {
    /// Its name; a prime stands for its reverse.
    pub name: String,
    /// Steps that executed it.
    pub steps: u64,
    /// Their rows.
    pub rows: u64,
    /// Their seconds.
    pub seconds: f64,
    /// Floating-point operations of the definition, a nanosecond.
    pub gflops: f64,
}

impl From<KernelCount> for KernelShare {
    fn from(count: KernelCount) -> Self {
        let seconds = count.time.as_secs_f64();
        let gflops = count.flops as f64 / 1e9 / seconds.max(1e-12);
        Self { name: count.name, steps: count.steps, rows: count.rows, seconds, gflops }
    }
}

impl KernelShare {
    /// The kernels of a run, each with its least time of this execute and of those before that did
    /// the same, the longest first.
    pub(crate) fn least(before: &[Self], counts: Vec<KernelCount>) -> Vec<Self> {
        let least = |count: KernelCount| {
            let own = Self::from(count);
            let same =
                |known: &&Self| (&known.name, known.steps, known.rows) == (&own.name, own.steps, own.rows);
            match before.iter().find(same) {
                Some(known) if known.seconds < own.seconds => known.clone(),
                _ => own,
            }
        };
        let mut kernels: Vec<Self> = counts.into_iter().map(least).collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        kernels
    }
}

/// So many kernels are shown.
const KERNELS_SHOWN: usize = 12;

fn median(rounds: &[Measured], part: impl Fn(&Measured) -> Duration) -> Option<f64> {
    let mut parts: Vec<Duration> = rounds.iter().map(part).collect();
    parts.sort_unstable();
    parts.get(parts.len() / 2).map(Duration::as_secs_f64)
}

/// The plans of a step, summed over its graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlanFacts {
    /// How many graphs there are.
    pub graphs: usize,
    /// Nodes recorded.
    pub nodes: usize,
    /// Batches.
    pub batches: u64,
    /// No schedule has fewer.
    pub bound: u64,
    /// Rows moved by steps that do nothing else.
    pub copied: u64,
    /// Operand rows read through tables.
    pub gathered: u64,
    /// Operand rows read in place.
    pub direct: u64,
    /// Bytes of slabs of the largest graph.
    pub slab_bytes: u64,
}

impl PlanFacts {
    pub(crate) fn add(&mut self, plan: &Plan, nodes: usize) {
        let certificate = plan.certificate;
        self.graphs += 1;
        self.nodes += nodes;
        self.batches += u64::from(certificate.batches);
        self.bound += u64::from(certificate.bound);
        self.copied += certificate.copied;
        self.gathered += certificate.gathered;
        self.direct += certificate.direct;
        self.slab_bytes = self.slab_bytes.max(certificate.slab_bytes);
    }

    /// How many batches more than the bound, as a share of the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.bound == 0 { 0.0 } else { self.batches as f64 / self.bound as f64 - 1.0 }
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Seconds of a batched step, everything included.
    pub seconds_per_step: f64,
    /// What a step does.
    pub mode: Mode,
    /// On how many threads plans were executed; 0 means one a core.
    pub threads: usize,
    /// The model's name.
    pub workload: String,
    /// What it is.
    pub about: String,
    /// What instances are.
    pub unit: String,
    /// How many instances a step goes through.
    pub instances: usize,
    /// How many of them are in a graph.
    pub batch: usize,
    /// The policy.
    pub policy: String,
    /// The instruction set.
    pub isa: String,
    /// How many rounds the medians are over.
    pub rounds: usize,
    /// The batched step.
    pub batched: Split,
    /// The phases of executing it, if they were asked for.
    pub phases: Option<Phases>,
    /// The kernels of the last graph, the longest first, if phases were asked for.
    pub kernels: Vec<KernelShare>,
    /// One by one, if it was measured.
    pub one_by_one: Option<Split>,
    /// Whether both gave the same bits, if both ran.
    pub same_bits: Option<bool>,
    /// How many numbers were compared.
    pub numbers: usize,
    /// The plans of the batched step.
    pub plans: PlanFacts,
}

impl Report {
    pub(crate) fn new(
        problem: &Problem,
        options: &Options,
        runner: &Runner<'_>,
        plans: PlanFacts,
        (fresh, known): (&[Measured], &[Measured]),
        same_bits: Option<bool>,
    ) -> Self {
        let batched = Split::of(fresh).expect("there is at least one round");
        Self {
            seconds_per_step: batched.total,
            mode: options.mode,
            threads: options.threads,
            workload: problem.entry.name.to_owned(),
            about: problem.entry.about.to_owned(),
            unit: problem.entry.unit.to_owned(),
            instances: problem.workload.instances(),
            batch: problem.batch,
            policy: options.policy.to_string(),
            isa: runner.isa(),
            rounds: options.rounds,
            batched,
            phases: options.phases.then(|| Phases::of(fresh)).flatten(),
            kernels: runner.kernels().to_vec(),
            one_by_one: Split::of(known),
            same_bits,
            numbers: runner.outputs().len(),
            plans,
        }
    }

    /// Instances a second, batched.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.instances as f64 / self.seconds_per_step
    }

    /// The line that the scripts of other systems read.
    #[must_use]
    pub fn agreed_line(&self) -> String {
        let Self { seconds_per_step, mode, threads, .. } = self;
        format!(r#"{{"seconds_per_step": {seconds_per_step}, "mode": "{mode}", "threads": {threads}}}"#)
    }
}

impl Report {
    /// The same as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words have a spelling in JSON")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, about, unit, instances, batch, plans, .. } = self;
        writeln!(f, "{workload}  {about}; {instances} {unit}, {batch} a graph, {}", self.mode)?;
        writeln!(f, "device      cpu  {}  threads {}", self.isa, self.threads)?;
        writeln!(
            f,
            "plan        {} nodes -> {} batches, bound {}, gap {:.0} %; policy {}",
            plans.nodes,
            plans.batches,
            plans.bound,
            100.0 * plans.gap(),
            self.policy
        )?;
        writeln!(
            f,
            "rows        {} copied, {} by table, {} in place; {:.1} MiB",
            plans.copied,
            plans.gathered,
            plans.direct,
            plans.slab_bytes as f64 / (1 << 20) as f64
        )?;
        writeln!(f, "\n{:8}{:>14}{:>14}   medians of {}", "", "one by one", "batched", self.rounds)?;
        let parts: [Part; 7] = [
            ("emit", |s| s.emit),
            ("plan", |s| s.plan),
            ("verify", |s| s.verify),
            ("execute", |s| s.execute),
            ("update", |s| s.update),
            ("read", |s| s.read),
            ("total", |s| s.total),
        ];
        for (name, part) in parts {
            let single = match &self.one_by_one {
                Some(split) if part(split) > 0.0 => format!("{:.3} ms", 1e3 * part(split)),
                _ => "-".to_owned(),
            };
            write!(f, "{name:8}{single:>14}{:>11.3} ms", 1e3 * part(&self.batched))?;
            if name == "total" {
                if let Some(split) = &self.one_by_one {
                    write!(f, "   {:.1} x faster", split.total / self.batched.total)?;
                }
                write!(f, "   {:.0} {unit}/s", self.per_second())?;
            }
            writeln!(f)?;
        }
        if let Some(Phases { pack, forward, reverse, reductions }) = self.phases {
            write!(f, "phases      pack {:.3}, forward {:.3}, ", 1e3 * pack, 1e3 * forward)?;
            writeln!(f, "reverse {:.3}, reductions {:.3} ms", 1e3 * reverse, 1e3 * reductions)?;
            for kernel in self.kernels.iter().take(KERNELS_SHOWN) {
                let KernelShare { name, steps, rows, seconds, gflops } = kernel;
                let ms = 1e3 * seconds;
                writeln!(f, "{ms:>12.3} ms  {name}: {steps} steps, {rows} rows, {gflops:.1} GFLOP/s")?;
            }
        }
        match self.same_bits {
            Some(true) => writeln!(f, "same bits   yes, all {} numbers", self.numbers),
            Some(false) => writeln!(f, "same bits   NO, among {} numbers", self.numbers),
            None => writeln!(f, "same bits   not compared"),
        }
    }
}
