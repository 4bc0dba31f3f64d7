//! What each step of a run did and how long it took, and the same as a trace for Perfetto or Chrome.
//!
//! Counting is a choice of the executor; without it no clock is read. Flops are those of the
//! definition: two for each product of a weight, one for each other element computed, whatever it
//! costs. Bytes are those of operands, results and parameters, each once per step or lane that
//! names it, wherever caches hold them.

use autobatch_ir::plan::{KernelId, ListSource, Operand, Plan, Stage, Step};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

/// One step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCount {
    /// The step, by its place in the plan.
    pub step: u32,
    /// Its kernel.
    pub kernel: KernelId,
    /// Its wave.
    pub wave: u32,
    /// On how many rows the kernel was executed.
    pub rows: u32,
    /// Bytes of operands, results and parameters.
    pub bytes: u64,
    /// Floating-point operations of the definition.
    pub flops: u64,
    /// When it began, from the beginning of the run.
    pub start: Duration,
    /// How long it took, on all threads together.
    pub time: Duration,
}

/// What one thread did of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The step, by its place in the plan.
    pub step: u32,
    /// The thread, from 0.
    pub thread: u32,
    /// When it began, from the beginning of the run.
    pub start: Duration,
    /// How long it took.
    pub time: Duration,
}

/// All steps of a run that were executed with one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCount {
    /// The kernel.
    pub kernel: KernelId,
    /// Its name.
    pub name: String,
    /// How many steps.
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

/// The steps of the last run, in the order of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The steps.
    pub steps: Vec<StepCount>,
    /// How long it took to find programs and to pack weights that had changed, before the first step.
    pub pack: Duration,
    /// How long it took to check what is bound and to find memory, behind that.
    pub check: Duration,
    /// How long the steps took with all that lies between them, two readings of the processor's counter a step included.
    pub executing: Duration,
    /// How long the sums over all rows took, after the last step.
    pub reductions: Duration,
    /// Who executed which part of a step when, by step and thread.
    pub spans: Vec<Span>,
}

impl Counters {
    /// Takes the spans of a run; every step of the plan has at least one, unless the run was stopped.
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
                bytes: bytes(plan, step),
                flops: flops(plan, step),
                start: spans.iter().map(|span| span.start).min().unwrap_or_default(),
                time: spans.iter().map(|span| span.time).sum(),
            });
        }
    }

    /// The share of time, from the beginning of the first step to the end of the last, in which so many
    /// threads executed nothing: waited, or planned who executes what.
    #[must_use]
    pub fn idle_share(&self, threads: usize) -> f64 {
        let first = self.spans.iter().map(|span| span.start).min().unwrap_or_default();
        let last = self.spans.iter().map(|span| span.start + span.time).max().unwrap_or_default();
        let whole = last.saturating_sub(first).as_secs_f64() * threads.max(1) as f64;
        let busy: f64 = self.spans.iter().map(|span| span.time.as_secs_f64()).sum();
        if whole > 0.0 { (1.0 - busy / whole).max(0.0) } else { 0.0 }
    }

    /// Sums by kernel, the longest time first; ties by kernel.
    #[must_use]
    pub fn by_kernel(&self, plan: &Plan) -> Vec<KernelCount> {
        let empty = |(number, kernel): (usize, &std::sync::Arc<autobatch_ir::plan::Kernel>)| KernelCount {
            kernel: KernelId(number as u32),
            name: kernel.name.clone(),
            steps: 0,
            rows: 0,
            bytes: 0,
            flops: 0,
            time: Duration::ZERO,
        };
        let mut kernels: Vec<KernelCount> = plan.kernels.iter().enumerate().map(empty).collect();
        for step in &self.steps {
            let sum = &mut kernels[step.kernel.index()];
            sum.steps += 1;
            sum.rows += u64::from(step.rows);
            sum.bytes += step.bytes;
            sum.flops += step.flops;
            sum.time += step.time;
        }
        kernels.retain(|kernel| kernel.steps > 0);
        kernels.sort_by(|a, b| b.time.cmp(&a.time).then(a.kernel.cmp(&b.kernel)));
        kernels
    }

    /// Time of the forward steps and of those in reverse, whose kernels are named with a prime.
    #[must_use]
    pub fn directions(&self, plan: &Plan) -> [Duration; 2] {
        let mut times = [Duration::ZERO; 2];
        for step in &self.steps {
            times[usize::from(plan.kernels[step.kernel.index()].name.ends_with('\''))] += step.time;
        }
        times
    }

    /// Writes the run as trace events, which Perfetto and Chrome's tracing page draw: one bar a
    /// step and thread, named as its kernel, times in microseconds.
    ///
    /// # Errors
    /// If `out` cannot be written to.
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

/// A string as JSON wants it between its quotes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{:04x}", c as u32);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Values in the lists that a list operand brings to all lanes of a step.
fn listed(plan: &Plan, step: &Step, operand: Operand) -> u64 {
    match operand {
        Operand::Segments { offsets, .. } => {
            let at = |row: u32| u64::from(plan.tables[(offsets + row) as usize]);
            at(step.rows) - at(0)
        }
        _ => 0,
    }
}

fn flops(plan: &Plan, step: &Step) -> u64 {
    let rows = u64::from(step.rows);
    let stage = |stage: &Stage| match stage {
        Stage::Prod { dst, rows: matrix_rows, parts, .. } => {
            let columns = u64::from(dst.width / matrix_rows);
            rows * parts.iter().map(|part| 2 * u64::from(part.source.width) * columns).sum::<u64>()
        }
        Stage::Map { width, code } => rows * u64::from(*width) * code.len() as u64,
        Stage::Row { sources, .. } => {
            rows * sources.iter().map(|(view, _)| u64::from(view.width)).sum::<u64>()
        }
        Stage::Seg { lists, elements, .. } => {
            let list = |(list, ty): (&ListSource, &autobatch_ir::types::Type)| {
                let values = match list {
                    ListSource::Port(port) => listed(plan, step, plan.operands(step)[*port as usize]),
                    ListSource::Views(views) => rows * views.len() as u64,
                };
                values * ty.shape.elements() as u64
            };
            lists.iter().zip(elements).map(list).sum()
        }
        _ => 0,
    };
    plan.kernel(step).stages.iter().map(stage).sum()
}

fn bytes(plan: &Plan, step: &Step) -> u64 {
    let (kernel, rows) = (plan.kernel(step), u64::from(step.rows));
    let operand = |(port, &operand): (usize, &Operand)| match operand {
        Operand::Segments { field, .. } => {
            listed(plan, step, operand) * u64::from(plan.field(field).width() + 1) + rows + 1
        }
        Operand::Rows { stride: 0, .. } => u64::from(kernel.whole(port as u32).width),
        Operand::Rows { .. } | Operand::Words { .. } | Operand::Floats { .. } => {
            rows * u64::from(kernel.whole(port as u32).width)
        }
        Operand::Table { .. } | Operand::WordTable { .. } | Operand::FloatTable { .. } => {
            rows * u64::from(kernel.whole(port as u32).width + 1)
        }
    };
    let operands: u64 = plan.operands(step).iter().enumerate().map(operand).sum();
    let results: u64 =
        plan.places(step).iter().map(|place| rows * u64::from(plan.field(place.field()).width())).sum();
    let param = |(port, ty): (usize, &autobatch_ir::types::Type)| {
        let looked_up = kernel.stages.iter().find_map(|stage| match stage {
            Stage::Lookup { param, dst, .. } if *param as usize == port => Some(rows * u64::from(dst.width)),
            _ => None,
        });
        looked_up.unwrap_or(ty.shape.elements() as u64)
    };
    let params: u64 = kernel.params.iter().enumerate().map(param).sum();
    4 * (operands + results + params)
}
