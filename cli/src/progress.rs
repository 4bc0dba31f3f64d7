//! Progress of work that has no countable parts, and of streams.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time before the first sign of life.
const FIRST: Duration = Duration::from_secs(1);
/// The time between two states on a terminal.
const TICK: Duration = Duration::from_millis(200);
/// The time between two lines.
const QUIET: Duration = Duration::from_secs(10);

/// Shows on standard error that work goes on: a spinner on a terminal, a line every ten seconds elsewhere. Dropping the
/// value ends it.
pub(crate) struct Waiting {
    spinner: indicatif::ProgressBar,
    lines: Option<Lines>,
}

struct Lines {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Waiting {
    /// Begins to show the work `what`.
    pub(crate) fn new(what: &'static str) -> Self {
        if std::io::stderr().is_terminal() {
            let spinner = indicatif::ProgressBar::new_spinner();
            if let Ok(style) = indicatif::ProgressStyle::with_template("{msg} {spinner} {elapsed}") {
                spinner.set_style(style);
            }
            spinner.set_message(what);
            spinner.enable_steady_tick(Duration::from_millis(200));
            return Self { spinner, lines: None };
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let (start, mut pause) = (Instant::now(), FIRST);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = QUIET;
                // Failing to show progress is no reason to stop the work.
                let _ = writeln!(std::io::stderr(), "{what} ({} s)", start.elapsed().as_secs());
            }
        });
        Self { spinner: indicatif::ProgressBar::hidden(), lines: Some(Lines { stop, thread }) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
        if let Some(Lines { stop, thread }) = self.lines.take() {
            drop(stop);
            // A thread that panicked shows no progress; the work is complete.
            let _ = thread.join();
        }
    }
}

/// The counts of a stream, which one thread raises and another one shows.
#[derive(Debug, Default)]
struct Passed {
    bytes: AtomicU64,
    instances: AtomicU64,
}

/// Shows the progress of a stream on standard error, with its rate and, if the bytes are known, the remaining time: a line on a
/// terminal, a line every ten seconds elsewhere. Dropping the value ends it.
pub(crate) struct Streaming {
    passed: Arc<Passed>,
    bar: indicatif::ProgressBar,
    lines: Option<Lines>,
}

impl Streaming {
    /// Begins to show the work `what` on a stream of this many bytes.
    pub(crate) fn new(what: &'static str, bytes: Option<u64>) -> Self {
        let passed = Arc::new(Passed::default());
        let is_terminal = std::io::stderr().is_terminal();
        let bar = match is_terminal {
            true => indicatif::ProgressBar::new_spinner(),
            false => indicatif::ProgressBar::hidden(),
        };
        if let Ok(style) = indicatif::ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        let (stop, stopped) = mpsc::channel();
        let (shown, line) = (Arc::clone(&passed), bar.clone());
        let thread = std::thread::spawn(move || {
            let (start, mut pause) = (Instant::now(), if is_terminal { TICK } else { FIRST });
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = if is_terminal { TICK } else { QUIET };
                let text = format!("{what}: {}", report(&shown, bytes, start.elapsed()));
                match is_terminal {
                    true => {
                        line.set_message(text);
                        line.tick();
                    }
                    // Failing to show progress is no reason to stop the work.
                    false => drop(writeln!(std::io::stderr(), "{text}")),
                }
            }
        });
        Self { passed, bar, lines: Some(Lines { stop, thread }) }
    }

    /// Counts a part of the stream that is complete.
    pub(crate) fn passed(&self, bytes: u64, instances: u64) {
        self.passed.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.passed.instances.fetch_add(instances, Ordering::Relaxed);
    }
}

/// The state of a stream as text.
fn report(passed: &Passed, whole: Option<u64>, elapsed: Duration) -> String {
    let (bytes, instances) = (passed.bytes.load(Ordering::Relaxed), passed.instances.load(Ordering::Relaxed));
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let mut text = format!("{instances} instances, {:.0} a second", instances as f64 / seconds);
    if let Some(whole) = whole.filter(|_| bytes > 0) {
        let share = bytes as f64 / whole.max(bytes) as f64;
        let left = seconds * (1.0 - share) / share;
        text.push_str(&format!(", {:.0} %, {left:.0} s left", 100.0 * share));
    }
    text
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if let Some(Lines { stop, thread }) = self.lines.take() {
            drop(stop);
            // A thread that panicked shows no progress; the work is complete.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_rate_and_the_remaining_time_of_a_file() {
        let passed = Passed { bytes: AtomicU64::new(25), instances: AtomicU64::new(600) };
        let report = |whole| report(&passed, whole, Duration::from_secs(3));
        assert_eq!(report(None), "600 instances, 200 a second");
        assert_eq!(report(Some(100)), "600 instances, 200 a second, 25 %, 9 s left");
        assert_eq!(report(Some(10)), "600 instances, 200 a second, 100 %, 0 s left", "the file grew");
    }
}
