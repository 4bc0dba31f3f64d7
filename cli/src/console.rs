//! The output of verbs.
//!
//! Verbs write their answers to a [`Console`] only, so tests read the same output as users. Timings
//! are the only part of an answer that differs between runs; a console can mask them.

use autobatch_ir::printable::printable;
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

/// Standard output, or a buffer of a test.
pub struct Console<'a> {
    out: &'a mut dyn Write,
    timings: bool,
    /// Whether writing to a closed pipe succeeds.
    ignores_closed_pipe: bool,
}

impl<'a> Console<'a> {
    /// A console that shows timings.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out, timings: true, ignores_closed_pipe: false }
    }

    /// A console that writes `..` for every timing.
    pub fn masked(out: &'a mut dyn Write) -> Self {
        Self { out, timings: false, ignores_closed_pipe: false }
    }

    /// Discards further output if the reader closes the pipe, instead of failing. Verbs call this if
    /// they also write files or if their exit code is the answer.
    pub fn ignore_closed_pipe(&mut self) {
        self.ignores_closed_pipe = true;
    }

    fn unless_ignored(&self, error: std::io::Error) -> std::io::Result<()> {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe if self.ignores_closed_pipe => Ok(()),
            _ => Err(error),
        }
    }

    /// The width of the terminal that shows standard output; `None` if the output goes elsewhere.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        // A masked console belongs to a test, whose output must not depend on the terminal.
        let size = terminal_size::terminal_size_of(std::io::stdout()).filter(|_| self.timings);
        size.map(|(width, _)| usize::from(width.0))
    }

    /// A time with its unit, or `..` on a masked console.
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

    /// A time in milliseconds for JSON; `None` on a masked console.
    #[must_use]
    pub fn millis(&self, time: Duration) -> Option<f64> {
        self.timings.then(|| (time.as_secs_f64() * 1e6).round() / 1e3)
    }
}

impl Write for Console<'_> {
    /// Writes text. Characters that would control the terminal are escaped: names from files may contain them.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match std::str::from_utf8(bytes).map(printable) {
            Ok(Cow::Owned(escaped)) => {
                let written = self.out.write_all(escaped.as_bytes()).map(|()| bytes.len());
                written.or_else(|error| self.unless_ignored(error).map(|()| bytes.len()))
            }
            Ok(Cow::Borrowed(_)) | Err(_) => {
                self.out.write(bytes).or_else(|error| self.unless_ignored(error).map(|()| bytes.len()))
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush().or_else(|error| self.unless_ignored(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output whose reader has closed the pipe.
    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let mut out = Vec::new();
        let mut console = Console::new(&mut out);
        let (module, file) = ("m\u{1b}]0;owned\u{7}", "\u{202e}");
        writeln!(console, "module {module}\twrote {file:?}").unwrap();
        console.write_all(b"\x1b\xff").unwrap();
        assert_eq!(out, b"module m\\u001b]0;owned\\u0007\twrote \"\\u{202e}\"\n\x1b\xff");
    }

    #[test]
    fn a_closed_pipe_is_an_error_unless_the_verb_ignores_it() {
        let mut out = ClosedPipe;
        let mut console = Console::new(&mut out);
        assert!(writeln!(console, "an answer").is_err() && console.flush().is_err());
        console.ignore_closed_pipe();
        writeln!(console, "progress of the work").unwrap();
        console.flush().unwrap();
    }
}
