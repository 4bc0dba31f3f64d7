//! The trace of a run: the first steps of all processes on one time line.

use crate::console::Console;
use crate::failure::Failure;
use crate::files::write;
use crate::ranks::Ranks;
use autobatch::distributed::{Group, Operation, Record};
use autobatch::train::Step;
use autobatch_inspector::text::{byte_size, plural};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// The number of steps in a trace. Viewers become slow with more.
const STEPS: u64 = 100;

/// The line of a process with its steps, and the one with its messages.
const LINES: [(u8, &str); 2] = [(0, "steps"), (1, "messages")];

/// The events of this process so far.
pub(super) struct Trace {
    /// The moment at which the processes left a common operation.
    origin: Instant,
    record: Record,
    rank: usize,
    /// The end of the last step.
    end: Instant,
    steps: u64,
    events: Vec<Json>,
}

impl Trace {
    /// Begins. The caller has just waited for all processes, whose messages are in the record.
    pub(super) fn new(rank: usize, record: Record) -> Self {
        let process = json!({ "ph": "M", "name": "process_name", "pid": rank, "args": { "name": format!("rank {rank}") } });
        let line = |(number, name): (u8, &str)| json!({ "ph": "M", "name": "thread_name", "pid": rank, "tid": number, "args": { "name": name } });
        let events = std::iter::once(process).chain(LINES.map(line)).collect();
        let origin = Instant::now();
        Self { origin, record, rank, end: origin, steps: 0, events }
    }

    fn push(&mut self, line: usize, name: &str, start: Instant, time: Duration, details: &Json) {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        self.events.push(json!({
            "ph": "X", "name": name, "pid": self.rank, "tid": LINES[line].0, "args": details,
            "ts": micros(start.saturating_duration_since(self.origin)), "dur": micros(time),
        }));
    }

    /// Adds a step that began at a moment and has just ended, with the messages since the last one.
    pub(super) fn step(&mut self, start: Instant, step: &Step) {
        let operations = self.record.take();
        if self.steps == STEPS {
            return;
        }
        self.steps += 1;
        let (now, whole) = (Instant::now(), step.total());
        // A step that was prepared during the one before begins in its time, behind its phases.
        let prepared = now.checked_sub(whole).unwrap_or(start).max(self.end);
        let mut at = if now.duration_since(start) < whole { prepared } else { start };
        let details = json!({ "loss": step.loss, "instances": step.instances(), "batches": step.batches });
        self.push(0, &format!("step {}", step.number), at, whole, &details);
        let [emit, plan, execute, update, wait] = step.times();
        for (name, time) in [emit, plan, execute, wait, update] {
            if !time.is_zero() {
                self.push(0, name, at, time, &Json::Null);
            }
            at += time;
        }
        self.end = at;
        for operation in operations {
            let Operation { start, time, sent, received, ref buckets } = operation;
            let kind = if buckets.is_empty() { "gather" } else { "exchange" };
            let details = json!({
                "sent": sent, "received": received, "buckets": buckets.len(),
                "work_ms": operation.work().as_secs_f64() * 1e3,
            });
            self.push(1, &format!("{kind} {}", byte_size(received as u64)), start, time, &details);
        }
    }

    /// Collects the events of all processes, and writes them on the first.
    pub(super) fn write(
        &self,
        path: &str,
        ranks: &Ranks,
        is_json: bool,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let own = self.events.iter().map(ToString::to_string).collect::<Vec<_>>().join(",\n");
        let all = match ranks.group() {
            Some(mut group) => group.gather(0, own.as_bytes()).map_err(autobatch::Error::from)?,
            None => vec![own.into_bytes()],
        };
        if ranks.rank() > 0 {
            return Ok(());
        }
        let text =
            [&b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"[..], &all.join(&b",\n"[..]), b"\n]}\n"];
        write(path, &text.concat(), console)?;
        if !is_json {
            let (steps, ranks) = (plural(self.steps, "step"), plural(ranks.size() as u64, "process"));
            writeln!(console, "wrote {path}: {steps} of {ranks}; open it with https://ui.perfetto.dev")?;
        }
        Ok(())
    }
}
