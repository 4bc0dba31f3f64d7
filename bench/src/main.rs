//! `autobatch-bench`: times models of the catalogue, alone or between the scripts of other systems.

use autobatch_bench::BenchArgs;
use clap::Parser;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Times whole steps: emit, plan, verify, execute, read. AUTOBATCH_CPU=avx2 forces an instruction set.
#[derive(Parser, Debug)]
#[command(name = "autobatch-bench", version)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    let answered = Arguments::parse().bench.answer().map_err(|error| error.to_string());
    let said = answered.and_then(|answer| match writeln!(std::io::stdout(), "{answer}") {
        // Whoever reads may stop reading.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write standard output: {error}"))
        }
        _ => Ok(()),
    });
    let Err(error) = said else { return ExitCode::SUCCESS };
    // Nothing is left to do if not even that can be said.
    let _ = writeln!(std::io::stderr(), "error: {error}");
    ExitCode::FAILURE
}
