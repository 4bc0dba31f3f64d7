//! [`Bar`]: shows the progress of long work, as a bar on a terminal and as a line at a bounded rate elsewhere.

use crate::train::report::Step;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The time before the first plain line. Shorter work prints none.
const FIRST: Duration = Duration::from_secs(1);
/// The shortest time between two plain lines.
const QUIET: Duration = Duration::from_secs(10);

/// Shows the parts of some work on standard error. For the steps of an epoch it shows the moving average of the loss,
/// instances per second, batches and their bound, and the time per phase.
#[derive(Debug)]
pub struct Bar {
    #[cfg(feature = "progress")]
    drawn: Option<indicatif::ProgressBar>,
    what: String,
    steps: u64,
    done: u64,
    average: Option<f64>,
    /// The time of the next plain line.
    due: Instant,
    silent: bool,
}

impl Bar {
    /// Creates a bar for this many steps of the work `what`.
    #[must_use]
    pub fn new(what: &str, steps: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            #[cfg(feature = "progress")]
            drawn: terminal.then(|| drawn(what, steps)),
            what: what.to_owned(),
            steps: steps as u64,
            done: 0,
            average: None,
            due: Instant::now() + FIRST,
            silent: cfg!(feature = "progress") && terminal,
        }
    }

    /// Creates a bar that shows nothing, for programs with reports of their own.
    #[must_use]
    pub fn hidden() -> Self {
        let mut bar = Self::new("", 0);
        #[cfg(feature = "progress")]
        {
            bar.drawn = None;
        }
        bar.silent = true;
        bar
    }

    /// Adds a step.
    pub fn report(&mut self, step: &Step) {
        let loss = f64::from(step.loss);
        let average = self.average.map_or(loss, |average| 0.98 * average + 0.02 * loss);
        self.average = Some(average);
        self.advance(&line(average, step));
    }

    /// Adds a step and shows a message about it.
    pub fn advance(&mut self, message: &str) {
        self.done += 1;
        #[cfg(feature = "progress")]
        if let Some(bar) = &self.drawn {
            bar.set_position(self.done);
            bar.set_message(message.to_owned());
            return;
        }
        if !self.silent && Instant::now() >= self.due {
            self.due = Instant::now() + QUIET;
            // Failing to show progress is no reason to stop the work.
            let _ = writeln!(std::io::stderr(), "{} {}/{}  {message}", self.what, self.done, self.steps);
        }
    }

    /// Returns the moving average of the loss.
    #[must_use]
    pub fn average_loss(&self) -> Option<f64> {
        self.average
    }
}

fn line(average: f64, step: &Step) -> String {
    let total = step.total().as_secs_f64().max(1e-9);
    let share = |part: Duration| 100.0 * part.as_secs_f64() / total;
    format!(
        "loss {average:.4}  {:.0}/s  {} batches (bound {})  {} %",
        step.rate(),
        step.batches,
        step.bound,
        step.times_text(0, share),
    )
}

#[cfg(feature = "progress")]
fn drawn(what: &str, steps: usize) -> indicatif::ProgressBar {
    let bar = indicatif::ProgressBar::new(steps as u64);
    if let Ok(style) = indicatif::ProgressStyle::with_template("{prefix} {bar:20} {pos}/{len} {eta} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_owned());
    bar
}

#[cfg(feature = "progress")]
impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.drawn {
            bar.finish_and_clear();
        }
    }
}
