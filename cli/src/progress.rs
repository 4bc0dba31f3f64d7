//! Progress of work that has no countable parts.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time before the first sign of life.
const FIRST: Duration = Duration::from_secs(1);
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
