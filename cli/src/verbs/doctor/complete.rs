//! The complete report.

use crate::args::DoctorArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use autobatch_bench::doctor::{Options, examine};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Examines a GPU and prints a table, or JSON. A GPU that hangs ends the process with code 1 and the report so far.
pub(super) fn doctor(args: &DoctorArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let selector = args.device.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let file = args.json.as_deref().filter(|path| *path != "-").map(PathBuf::from);
    if let Some(path) = &file {
        autobatch_ir::files::writable(path)
            .map_err(|error| Failure::output(&path.display().to_string(), &error))?;
    }
    let options = Options { selector, file, ..Options::default() };
    let is_terminal = std::io::stderr().is_terminal();
    let progress = move |what: &str| {
        // Failing to show progress is no reason to stop the work.
        let _ = match is_terminal {
            true => write!(std::io::stderr(), "\r\x1b[K{what}"),
            false => writeln!(std::io::stderr(), "{what}"),
        };
    };
    let hang = |report: &autobatch_bench::doctor::Report| {
        let _ = writeln!(std::io::stderr(), "\n{}", report.text());
        std::process::exit(i32::from(Answer::No.code()));
    };
    let report = examine(&options, progress, hang)?;
    if is_terminal {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    match args.json.as_deref() {
        Some("-") => writeln!(console, "{:#}", report.json())?,
        _ => console.write_all(report.text().as_bytes())?,
    }
    Ok(if report.is_healthy() { Answer::Yes } else { Answer::No })
}
