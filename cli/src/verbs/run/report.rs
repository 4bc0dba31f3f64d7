//! The report of `run`, as text and as JSON.

use super::super::plan::gap_text;
use super::Runner;
use crate::args::RunArgs;
use crate::console::Console;
use crate::failure::Failure;
use autobatch::ir::id::ValueId;
use autobatch::ir::plan::Plan;
use autobatch_inspector::steps::computing;
use autobatch_inspector::text::{byte_size, count, plural, table};
use autobatch_models::catalogue::OpenModel;
use serde_json::json;
use std::io::Write;
use std::time::Duration;

/// The times of the parts of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Split {
    pub(super) emit: Duration,
    pub(super) plan: Duration,
    pub(super) execute: Duration,
}

impl Split {
    /// The median of each part.
    pub(super) fn of(rounds: &[Self]) -> Self {
        let median = |part: fn(&Self) -> Duration| {
            let mut all: Vec<Duration> = rounds.iter().map(part).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        Self { emit: median(|s| s.emit), plan: median(|s| s.plan), execute: median(|s| s.execute) }
    }

    pub(super) fn total(&self) -> Duration {
        self.emit + self.plan + self.execute
    }

    pub(super) fn json(&self, console: &Console<'_>) -> serde_json::Value {
        let [emit, plan, execute, total] =
            [self.emit, self.plan, self.execute, self.total()].map(|time| console.millis(time));
        json!({ "emit": emit, "plan": plan, "execute": execute, "total": total })
    }
}

/// The medians of both variants. Plans of the unbatched variant are made in advance.
pub(super) struct Medians {
    pub(super) unbatched: Split,
    pub(super) batched: Split,
}

impl Medians {
    /// How many times faster the batched variant is.
    pub(super) fn speedup(&self) -> f64 {
        self.unbatched.total().as_secs_f64() / self.batched.total().as_secs_f64().max(1e-9)
    }
}

/// Prints the times of both variants, and the number of instances per second, with its unit.
pub(super) fn print_times(
    times: &Medians,
    per_second: f64,
    unit: &str,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let Medians { unbatched, batched } = times;
    let gain = match console.millis(batched.total()) {
        Some(_) => format!("{:.1} x faster   {} {unit}/s", times.speedup(), count(per_second as u64)),
        None => ".. x faster".to_owned(),
    };
    let row = |name: &str, single: String, time: Duration, gain: &str| {
        vec![name.to_owned(), single, console.time(time), gain.to_owned()]
    };
    let rows = [
        ["", "unbatched", "batched", ""].map(str::to_owned).to_vec(),
        row("emit", console.time(unbatched.emit), batched.emit, ""),
        row("plan", "-".to_owned(), batched.plan, ""),
        row("execute", console.time(unbatched.execute), batched.execute, ""),
        row("total", console.time(unbatched.total()), batched.total(), &gain),
    ];
    let text = table(&rows, &[0, 3]);
    Ok(console.write_all(text.as_bytes())?)
}

/// The written files.
pub(super) struct Files {
    pub(super) graph: String,
    pub(super) plan: String,
    pub(super) picture: String,
    /// Two values of one kernel in different steps, as an example for `explain --why`.
    pub(super) example: Option<[ValueId; 2]>,
}

/// The result of a run.
pub(super) struct RunResult<'a> {
    pub(super) opened: &'a OpenModel,
    pub(super) runner: &'a Runner<'a>,
    pub(super) plan: &'a Plan,
    pub(super) times: Medians,
    /// Whether both variants gave the same bits.
    pub(super) same: bool,
    /// Number of compared numbers.
    pub(super) numbers: u64,
    /// The maximum error against the CPU, on a GPU.
    pub(super) error: Option<f32>,
    /// Whether the plan is proven to compute its graph, or the disagreements.
    pub(super) proof: Result<(), String>,
    pub(super) files: Option<Files>,
}

impl RunResult<'_> {
    fn source(&self, args: &RunArgs) -> String {
        match (&args.model.data, &args.peer_data) {
            (Some(path), _) | (None, Some(path)) => path.clone(),
            (None, None) => format!("generated, seed {}", args.model.seed),
        }
    }

    fn parameters(&self) -> u64 {
        self.runner.weights.iter().map(|param| param.values().len() as u64).sum()
    }

    fn nodes(&self) -> u64 {
        computing(self.plan).map(|(_, step)| u64::from(step.rows)).sum()
    }

    fn per_second(&self) -> f64 {
        self.runner.instances as f64 / self.times.batched.total().as_secs_f64().max(1e-9)
    }

    pub(super) fn json(&self, args: &RunArgs, console: &Console<'_>) -> serde_json::Value {
        let (entry, certificate) = (self.opened.entry, &self.plan.certificate);
        let speed = console.millis(Duration::ZERO).map(|_| (self.times.speedup(), self.per_second()));
        let written: Vec<&String> =
            self.files.iter().flat_map(|files| [&files.graph, &files.plan, &files.picture]).collect();
        json!({
            "model": entry.name, "about": entry.about, "width": args.model.hidden.unwrap_or(entry.hidden),
            "parameters": self.parameters(), "instances": self.runner.instances, "source": self.source(args),
            "device": self.runner.device, "nodes": self.nodes(),
            "batches": certificate.batches, "bound": certificate.bound, "copied_rows": certificate.copied,
            "slab_bytes": certificate.slab_bytes, "unbatched_ms": self.times.unbatched.json(console),
            "batched_ms": self.times.batched.json(console), "speedup": speed.map(|speed| speed.0),
            "per_second": speed.map(|speed| speed.1), "same_bits": self.same, "numbers": self.numbers,
            "error_against_cpu": self.error, "proven": self.proof.is_ok(),
            "disagreements": self.proof.as_ref().err(), "written": written,
        })
    }

    pub(super) fn print(&self, args: &RunArgs, console: &mut Console<'_>) -> Result<(), Failure> {
        let (entry, certificate) = (self.opened.entry, &self.plan.certificate);
        let (name, unit) = (entry.name, entry.unit);
        writeln!(
            console,
            "{name}  {}, width {}, {} parameters; {} {unit}, {}",
            entry.about,
            args.model.hidden.unwrap_or(entry.hidden),
            count(self.parameters()),
            count(self.runner.instances as u64),
            self.source(args),
        )?;
        writeln!(console, "device    {}    (autobatch devices)", self.runner.device)?;
        writeln!(
            console,
            "plan      {} -> {}, bound {}, {}; {} copied; {}\n",
            plural(self.nodes(), "node"),
            plural(certificate.batches.into(), "batch"),
            certificate.bound,
            gap_text(self.plan),
            plural(certificate.copied, "row"),
            byte_size(certificate.slab_bytes),
        )?;
        print_times(&self.times, self.per_second(), self.opened.entry.unit, console)?;
        let verdict = if self.same { "yes" } else { "NO" };
        writeln!(
            console,
            "same bits         {verdict}, {} numbers compared bit by bit",
            count(self.numbers)
        )?;
        if let Some(error) = self.error {
            writeln!(console, "against the cpu   maximum error {error:.1e} of the largest number")?;
        }
        let reads = certificate.direct + certificate.gathered;
        match &self.proof {
            Ok(()) => writeln!(
                console,
                "check             proven: {}, {}",
                plural(self.nodes(), "node"),
                plural(reads, "operand read")
            )?,
            Err(disagreements) => writeln!(console, "check             not proven: {disagreements}")?,
        }
        self.print_files(console)
    }

    fn print_files(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let name = self.opened.entry.name;
        let Some(Files { plan, example, .. }) = &self.files else {
            writeln!(
                console,
                "Next: autobatch run {name} -o out/ (writes graph, plan and picture)   |   autobatch train {name}"
            )?;
            return Ok(());
        };
        writeln!(console, "wrote             {plan}  .abg  .svg  (the SVG shows the batches)")?;
        let why = example.map_or_else(String::new, |[a, b]| format!(" --why {a} {b}"));
        writeln!(console, "Next: autobatch explain {plan}{why}   |   autobatch train {name}")?;
        Ok(())
    }
}
