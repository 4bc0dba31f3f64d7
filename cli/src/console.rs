//! Where a verb writes its answer, and what it may say about time.
//!
//! Verbs write to a [`Console`] and nowhere else, so that tests read what users read. Timings are
//! the only part of an answer that differs from run to run; a console can mask them.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Standard output, or what stands for it in a test.
pub struct Console<'a> {
    out: &'a mut dyn Write,
    timings: bool,
    /// Whether it goes on without a reader.
    works_on: bool,
}

impl<'a> Console<'a> {
    /// A console that shows timings.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out, timings: true, works_on: false }
    }

    /// A console that writes `..` for every timing.
    pub fn masked(out: &'a mut dyn Write) -> Self {
        Self { out, timings: false, works_on: false }
    }

    /// From now on, what is said is lost where nobody reads any more, and is no failure: for verbs that have more to do than to
    /// answer, or whose exit code is the answer.
    pub fn work_on(&mut self) {
        self.works_on = true;
    }

    fn unless_closed(&self, error: std::io::Error) -> std::io::Result<()> {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe if self.works_on => Ok(()),
            _ => Err(error),
        }
    }

    /// A time in words, masked where wanted.
    #[must_use]
    pub fn time(&self, time: Duration) -> String {
        let seconds = time.as_secs_f64();
        match seconds {
            _ if !self.timings => "..".to_owned(),
            ..1e-3 => format!("{:.0} µs", seconds * 1e6),
            ..1e-2 => format!("{:.2} ms", seconds * 1e3),
            ..1.0 => format!("{:.1} ms", seconds * 1e3),
            _ => format!("{seconds:.2} s"),
        }
    }

    /// A number of milliseconds for machines; none where masked.
    #[must_use]
    pub fn millis(&self, time: Duration) -> Option<f64> {
        self.timings.then(|| (time.as_secs_f64() * 1e6).round() / 1e3)
    }
}

impl Write for Console<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes).or_else(|error| self.unless_closed(error).map(|()| bytes.len()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush().or_else(|error| self.unless_closed(error))
    }
}

/// A bar for work of so many parts, drawn on standard error where that is a terminal.
#[must_use]
pub(crate) fn progress(parts: usize, what: &str) -> indicatif::ProgressBar {
    if !std::io::stderr().is_terminal() || parts < 2 {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new(parts as u64);
    if let Ok(style) = indicatif::ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that nobody reads.
    struct Unread;

    impl Write for Unread {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn work_goes_on_where_nobody_reads_if_a_verb_says_so() {
        let mut out = Unread;
        let mut console = Console::new(&mut out);
        assert!(writeln!(console, "an answer").is_err() && console.flush().is_err());
        console.work_on();
        writeln!(console, "news of the work").unwrap();
        console.flush().unwrap();
    }
}
