//! Reports of measurements, as text and as JSON.

use crate::step::{self, Measured, Runner};
use crate::{Mode, Options, Rounds};
use autobatch::Device;
use autobatch_ir::plan::Plan;
use autobatch_models::catalogue::OpenModel;
use autobatch_runtime_cpu::executor::KernelCount;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Seconds of the parts of a step: the median of each over all rounds. Medians need not add up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Split {
    /// Emitting the graph.
    pub emit: f64,
    /// Planning; 0 if plans were made in advance.
    pub plan: f64,
    /// Verifying the plan; 0 if plans were made in advance.
    pub verify: f64,
    /// Executing the plan.
    pub execute: f64,
    /// Updating the parameters; 0 in inference.
    pub update: f64,
    /// Copying all outputs.
    pub read: f64,
    /// The whole step.
    pub total: f64,
}

/// A part of a step: its name and its time.
type Column = (&'static str, fn(&Split) -> f64);

impl Split {
    pub(crate) fn of(rounds: &[Measured]) -> Option<Self> {
        let of = |phase| median(rounds, |measured| measured.of(phase));
        Some(Self {
            emit: of(step::Phase::Emit)?,
            plan: of(step::Phase::Plan)?,
            verify: of(step::Phase::Verify)?,
            execute: of(step::Phase::Execute)?,
            update: of(step::Phase::Update)?,
            read: of(step::Phase::Read)?,
            total: median(rounds, Measured::total)?,
        })
    }
}

/// Seconds of the phases of execution: the median of each over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phases {
    /// Looking up programs and packing weights that an update changed.
    pub pack: f64,
    /// Forward steps.
    pub forward: f64,
    /// Reverse steps.
    pub reverse: f64,
    /// Parameter-gradient reductions.
    pub reductions: f64,
}

impl Phases {
    pub(crate) fn of(rounds: &[Measured]) -> Option<Self> {
        let of = |phase| median(rounds, |measured| measured.of(phase));
        Some(Self {
            pack: of(step::Phase::Pack)?,
            forward: of(step::Phase::Forward)?,
            reverse: of(step::Phase::Reverse)?,
            reductions: of(step::Phase::Reductions)?,
        })
    }
}

/// Seconds of the phases of execution on a GPU: the median of each over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GpuPhases {
    /// The host compiles plans into dispatches and uploads their tables.
    pub compile: f64,
    /// The host uploads inputs and changed parameters.
    pub upload: f64,
    /// The host writes and submits commands.
    pub encode: f64,
    /// The host waits for the device and reads the outputs.
    pub wait: f64,
}

impl GpuPhases {
    pub(crate) fn of(rounds: &[Measured]) -> Option<Self> {
        let of = |phase| median(rounds, |measured| measured.of(phase));
        Some(Self {
            compile: of(step::Phase::Compile)?,
            upload: of(step::Phase::Upload)?,
            encode: of(step::Phase::Encode)?,
            wait: of(step::Phase::Wait)?,
        })
    }
}

/// The time of a kernel in the first graph: the minimum over all rounds. On a GPU, the device time of a template.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelShare {
    /// Its name, with a prime for its reverse.
    pub name: String,
    /// Number of steps; on a GPU, of dispatches.
    pub steps: u64,
    /// Number of rows; on a GPU, of workgroups.
    pub rows: u64,
    /// Seconds of all steps.
    pub seconds: f64,
    /// Floating-point operations per nanosecond, as the definition counts them.
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
    /// A kernel that no step executes.
    #[cfg(feature = "gpu")]
    pub(crate) fn nothing(name: &str) -> Self {
        Self { name: name.to_owned(), steps: 0, rows: 0, seconds: 0.0, gflops: 0.0 }
    }

    /// The kernels of an execution, each with its minimum time over this and all earlier executions with
    /// the same steps and rows. The slowest kernel comes first.
    pub(crate) fn least(before: &[Self], found: Vec<Self>) -> Vec<Self> {
        let least = |own: Self| {
            let same =
                |known: &&Self| (&known.name, known.steps, known.rows) == (&own.name, own.steps, own.rows);
            match before.iter().find(same) {
                Some(known) if known.seconds < own.seconds => known.clone(),
                _ => own,
            }
        };
        let mut kernels: Vec<Self> = found.into_iter().map(least).collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        kernels
    }
}

/// Number of kernels to show.
const SHOWN_KERNELS: usize = 12;

fn median(rounds: &[Measured], part: impl Fn(&Measured) -> Duration) -> Option<f64> {
    let mut parts: Vec<Duration> = rounds.iter().map(part).collect();
    parts.sort_unstable();
    parts.get(parts.len() / 2).map(Duration::as_secs_f64)
}

/// Figures of the plans of a step, summed over its graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlanFacts {
    /// Number of graphs.
    pub graphs: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of batches.
    pub batches: u64,
    /// The lower bound on the number of batches.
    pub bound: u64,
    /// Rows that steps copy without other work.
    pub copied: u64,
    /// Gathered operand rows.
    pub gathered: u64,
    /// Direct operand rows.
    pub direct: u64,
    /// Size of the slabs of the largest plan in bytes.
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

    /// The additional batches over the bound, relative to the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.bound == 0 { 0.0 } else { self.batches as f64 / self.bound as f64 - 1.0 }
    }
}

/// The report of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Seconds of a complete batched step.
    pub seconds_per_step: f64,
    /// The mode of a step.
    pub mode: Mode,
    /// Number of threads; 0 means one per core.
    pub threads: usize,
    /// The model's name.
    pub workload: String,
    /// A description of the model.
    pub about: String,
    /// The name of instances, such as trees.
    pub unit: String,
    /// Number of instances of a step.
    pub instances: usize,
    /// Number of instances per graph.
    pub batch: usize,
    /// The policy.
    pub policy: String,
    /// The instruction set of the CPU, or the GPU.
    pub device: String,
    /// Whether a GPU executed.
    pub is_gpu: bool,
    /// Number of rounds.
    pub rounds: usize,
    /// The batched step.
    pub batched: Split,
    /// The phases of execution, if requested.
    pub phases: Option<Phases>,
    /// The same of a GPU.
    pub gpu_phases: Option<GpuPhases>,
    /// The kernels of the first graph, slowest first, if phases were requested.
    pub kernels: Vec<KernelShare>,
    /// The unbatched step, if it was measured.
    pub unbatched: Option<Split>,
    /// The repeated step, if it was measured.
    pub repeated: Option<Split>,
    /// The comparison of all variants, if all were measured.
    pub same_bits: Option<SameBits>,
    /// The number of outputs.
    pub numbers: usize,
    /// Figures of the plans of the batched step.
    pub plans: PlanFacts,
    /// Figures of the plans of the repeated step, if it was measured.
    pub repeated_plans: Option<PlanFacts>,
}

/// Whether all variants gave the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SameBits {
    /// The answer.
    pub equal: bool,
    /// The number of minibatches.
    pub minibatches: usize,
    /// The number of compared outputs; in training, of losses.
    pub numbers: usize,
    /// The number of compared weights and states of the optimizer; 0 in inference.
    pub trained: usize,
}

impl Report {
    pub(crate) fn new(
        opened: &OpenModel,
        options: &Options,
        runner: &Runner<'_>,
        plans: PlanFacts,
        repeated_plans: Option<PlanFacts>,
        rounds: &Rounds,
        same_bits: Option<SameBits>,
    ) -> Self {
        let batched = Split::of(&rounds.batched).expect("there is at least one round");
        let on_cpu = options.device == Device::Cpu;
        Self {
            seconds_per_step: batched.total,
            mode: options.mode,
            threads: options.threads,
            workload: opened.entry.name.to_owned(),
            about: opened.entry.about.to_owned(),
            unit: opened.entry.unit.to_owned(),
            instances: opened.workload.instances(),
            batch: opened.batch,
            policy: options.policy.to_string(),
            device: runner.device(),
            is_gpu: !on_cpu,
            rounds: options.rounds,
            batched,
            phases: (options.phases && on_cpu).then(|| Phases::of(&rounds.batched)).flatten(),
            gpu_phases: (options.phases && !on_cpu).then(|| GpuPhases::of(&rounds.batched)).flatten(),
            kernels: Vec::new(),
            unbatched: Split::of(&rounds.unbatched),
            repeated: Split::of(&rounds.repeated),
            same_bits,
            numbers: runner.outputs().len(),
            plans,
            repeated_plans,
        }
    }

    /// Instances per second of the batched step.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.instances as f64 / self.seconds_per_step
    }
}

impl Report {
    /// One line of JSON. Scripts of all systems read its fields `seconds_per_step`, `mode` and `threads`.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings serialize")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, about, unit, instances, batch, plans, .. } = self;
        writeln!(f, "{workload}  {about}; {instances} {unit}, {batch} per graph, {}", self.mode)?;
        match self.is_gpu {
            false => writeln!(f, "device      cpu  {}  threads {}", self.device, self.threads)?,
            true => writeln!(f, "device      gpu  {}", self.device)?,
        }
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
            "rows        {} copied, {} gathered, {} direct; {:.1} MiB",
            plans.copied,
            plans.gathered,
            plans.direct,
            plans.slab_bytes as f64 / (1 << 20) as f64
        )?;
        if let Some(repeated) = &self.repeated_plans {
            let PlanFacts { batches, bound, .. } = repeated;
            writeln!(
                f,
                "repeated    plans from a cache: {batches} batches, bound {bound}, gap {:.0} %",
                100.0 * repeated.gap()
            )?;
        }
        let variants = format!("{:>14}{:>14}{:>14}", "unbatched", "batched", "repeated");
        writeln!(f, "\n{:8}{variants}   medians of {}", "", self.rounds)?;
        let parts: [Column; 7] = [
            ("emit", |s| s.emit),
            ("plan", |s| s.plan),
            ("verify", |s| s.verify),
            ("execute", |s| s.execute),
            ("update", |s| s.update),
            ("read", |s| s.read),
            ("total", |s| s.total),
        ];
        for (name, part) in parts {
            let of = |split: Option<&Split>| match split {
                Some(split) if part(split) > 0.0 => format!("{:.3} ms", 1e3 * part(split)),
                _ => "-".to_owned(),
            };
            let [single, repeated] = [&self.unbatched, &self.repeated].map(|split| of(split.as_ref()));
            write!(f, "{name:8}{single:>14}{:>11.3} ms{repeated:>14}", 1e3 * part(&self.batched))?;
            if name == "total" {
                if let Some(split) = &self.unbatched {
                    write!(f, "   {:.1} x faster", split.total / self.batched.total)?;
                }
                write!(f, "   {:.0} {unit}/s", self.per_second())?;
            }
            writeln!(f)?;
        }
        if let Some(Phases { pack, forward, reverse, reductions }) = self.phases {
            write!(f, "phases      pack {:.3}, forward {:.3}, ", 1e3 * pack, 1e3 * forward)?;
            writeln!(f, "reverse {:.3}, reductions {:.3} ms", 1e3 * reverse, 1e3 * reductions)?;
        }
        if let Some(GpuPhases { compile, upload, encode, wait }) = self.gpu_phases {
            write!(f, "phases      compile {:.3}, upload {:.3}, ", 1e3 * compile, 1e3 * upload)?;
            writeln!(f, "encode {:.3}, wait {:.3} ms", 1e3 * encode, 1e3 * wait)?;
        }
        let [steps_of, rows_of] = if self.is_gpu { ["dispatches", "groups"] } else { ["steps", "rows"] };
        for kernel in self.kernels.iter().take(SHOWN_KERNELS) {
            let KernelShare { name, steps, rows, seconds, gflops } = kernel;
            let ms = 1e3 * seconds;
            writeln!(f, "{ms:>12.3} ms  {name}: {steps} {steps_of}, {rows} {rows_of}, {gflops:.1} GFLOP/s")?;
        }
        match self.same_bits {
            Some(SameBits { equal, minibatches, numbers, trained }) => {
                let verdict = if equal { "yes, all" } else { "NO, among" };
                write!(f, "same bits   {verdict} {numbers} ")?;
                match trained {
                    0 => writeln!(f, "numbers"),
                    _ => {
                        writeln!(f, "losses of {minibatches} minibatches, and {trained} weights and moments")
                    }
                }
            }
            None => writeln!(f, "same bits   not compared"),
        }
    }
}
