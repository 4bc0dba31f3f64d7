//! Counters and times of each step of a run, and their export as a trace for Perfetto or Chrome.
//!
//! Counting is optional; without it no clock is read. Flops follow the definition: two per multiplication with a weight
//! and one per other computed element, regardless of its cost. Bytes are those of operands, results and parameters,
//! once per step or lane that names them, regardless of caches.

use super::clock::{Clock, Ticks, TimedPart};
use super::work_kind::{KindTicks, WorkKind};
use autobatch_ir::plan::{KernelId, Plan};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

/// One step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCount {
    /// The number of the step in the plan.
    pub step: u32,
    /// Its kernel.
    pub kernel: KernelId,
    /// Its wave.
    pub wave: u32,
    /// The rows of the step.
    pub rows: u32,
    /// Bytes of operands, results and parameters.
    pub bytes: u64,
    /// Floating-point operations of the definition.
    pub flops: u64,
    /// The start, relative to the start of the run.
    pub start: Duration,
    /// The time, summed over all threads.
    pub time: Duration,
}

/// The part of a step that one thread executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The number of the step in the plan.
    pub step: u32,
    /// The thread, from 0.
    pub thread: u32,
    /// The start, relative to the start of the run.
    pub start: Duration,
    /// The duration.
    pub time: Duration,
}

/// The sums over all steps of a run with one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCount {
    /// The kernel.
    pub kernel: KernelId,
    /// Its name.
    pub name: String,
    /// The number of steps.
    pub steps: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their floating-point operations.
    pub flops: u64,
    /// Their time.
    pub time: Duration,
}

/// The counters of the last run, in plan order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The steps.
    pub steps: Vec<StepCount>,
    /// The time before the first step to look up programs and pack changed weights.
    pub pack: Duration,
    /// The time after that to check bindings and allocate memory.
    pub check: Duration,
    /// The time of all steps and the gaps between them, including two clock readings per step.
    pub executing: Duration,
    /// The time of the reductions, after the last step.
    pub reductions: Duration,
    /// The executed parts of steps, by step and thread.
    pub spans: Vec<Span>,
    /// The time of each kind of work in the steps, in the order of [`WorkKind::ALL`], summed over all threads. It includes a
    /// reading of the clock for each stage of a tile.
    pub kinds: [Duration; WorkKind::ALL.len()],
}

/// The clock of a counted run, and when its stages ended.
pub(super) struct Timing {
    pub(super) clock: Clock,
    /// The end of the preparation of steps.
    pub(super) prepared: Ticks,
    /// The end of checking bindings and allocating memory.
    pub(super) checked: Ticks,
    /// The end of the waves.
    pub(super) executed: Ticks,
}

impl Counters {
    /// Records a run: its times, the time of all threads by kind of work, and the parts of steps that each thread executed.
    pub(super) fn record(
        &mut self,
        plan: &Plan,
        timing: &Timing,
        kinds: KindTicks,
        parts: impl Iterator<Item = (u32, TimedPart)>,
    ) {
        let Timing { clock, prepared, checked, executed } = *timing;
        let time = clock.stop();
        self.kinds = kinds.map(&time);
        let begun = time(checked);
        self.pack = time(prepared);
        self.check = begun.saturating_sub(self.pack);
        self.executing = time(executed).saturating_sub(begun);
        let span = |(thread, TimedPart { step, start, end })| {
            let (start, end) = (time(start), time(end));
            let time = end.saturating_sub(start);
            Span { step, thread, start: start.saturating_sub(begun), time }
        };
        self.fill(plan, parts.map(span));
    }

    /// Fills the counters from the spans of a run. Every executed step has at least one span.
    pub(super) fn fill(&mut self, plan: &Plan, spans: impl Iterator<Item = Span>) {
        self.steps.clear();
        self.spans.clear();
        self.spans.extend(spans);
        self.spans.sort_unstable_by_key(|span| (span.step, span.thread, span.start));
        let mut wave = 0;
        for spans in self.spans.chunk_by(|a, b| a.step == b.step) {
            let number = spans[0].step;
            while plan.waves.get(wave).is_some_and(|&end| end <= number) {
                wave += 1;
            }
            let step = &plan.steps[number as usize];
            self.steps.push(StepCount {
                step: number,
                kernel: step.kernel,
                wave: wave as u32,
                rows: step.rows,
                bytes: plan.traffic_of(step),
                flops: plan.work_of(step),
                start: spans.iter().map(|span| span.start).min().unwrap_or_default(),
                time: spans.iter().map(|span| span.time).sum(),
            });
        }
    }

    /// The share of time between the first and the last step in which threads waited or distributed work.
    #[must_use]
    pub fn idle_share(&self, threads: usize) -> f64 {
        let first = self.spans.iter().map(|span| span.start).min().unwrap_or_default();
        let last = self.spans.iter().map(|span| span.start + span.time).max().unwrap_or_default();
        let whole = last.saturating_sub(first).as_secs_f64() * threads.max(1) as f64;
        let busy: f64 = self.spans.iter().map(|span| span.time.as_secs_f64()).sum();
        if whole > 0.0 { (1.0 - busy / whole).max(0.0) } else { 0.0 }
    }

    /// The sums by kernel, longest time first; ties by kernel number.
    #[must_use]
    pub fn by_kernel(&self, plan: &Plan) -> Vec<KernelCount> {
        let names: Vec<&str> = plan.kernels.iter().map(|kernel| &*kernel.name).collect();
        self.by_kind(&names, |step| step.kernel.index())
    }

    /// The sums over the steps of each kind, by falling time. `kind_of` numbers the kinds in the order of their names.
    #[must_use]
    pub fn by_kind(
        &self,
        names: &[impl AsRef<str>],
        kind_of: impl Fn(&StepCount) -> usize,
    ) -> Vec<KernelCount> {
        let mut kinds: Vec<Option<KernelCount>> = vec![None; names.len()];
        for step in &self.steps {
            let kind = kind_of(step);
            let sum = kinds[kind].get_or_insert_with(|| KernelCount {
                kernel: step.kernel,
                name: names[kind].as_ref().to_owned(),
                steps: 0,
                rows: 0,
                bytes: 0,
                flops: 0,
                time: Duration::ZERO,
            });
            sum.steps += 1;
            sum.rows += u64::from(step.rows);
            sum.bytes += step.bytes;
            sum.flops += step.flops;
            sum.time += step.time;
        }
        let mut kinds: Vec<KernelCount> = kinds.into_iter().flatten().collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.time));
        kinds
    }

    /// The times of the forward steps and of the reverse steps, whose kernel names end with a prime.
    #[must_use]
    pub fn directions(&self, plan: &Plan) -> [Duration; 2] {
        let mut times = [Duration::ZERO; 2];
        for step in &self.steps {
            times[usize::from(plan.kernels[step.kernel.index()].name.ends_with('\''))] += step.time;
        }
        times
    }

    /// Writes the run as trace events for Perfetto or Chrome: one bar per step and thread, with times in microseconds.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_trace(&self, plan: &Plan, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let mut counts = self.steps.iter();
        let mut count = counts.next();
        for (number, span) in self.spans.iter().enumerate() {
            while count.is_some_and(|count| count.step < span.step) {
                count = counts.next();
            }
            let Some(count) = count else { break };
            let name = escaped(&plan.kernels[count.kernel.index()].name);
            write!(
                out,
                "{}\n{{\"name\":\"{name}\",\"cat\":\"step\",\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3},\"dur\":{:.3},\
                 \"args\":{{\"step\":{},\"wave\":{},\"rows\":{},\"bytes\":{},\"flops\":{}}}}}",
                if number == 0 { "" } else { "," },
                span.thread,
                micros(span.start),
                micros(span.time),
                count.step,
                count.wave,
                count.rows,
                count.bytes,
                count.flops,
            )?;
        }
        out.write_all(b"\n]}\n")
    }
}

/// Escapes a string for JSON.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c < ' ' => {
                // Writing to a string never fails.
                let _ = write!(escaped, "\\u{:04x}", c as u32);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
