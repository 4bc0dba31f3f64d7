//! `autobatch-bench`: times models of the catalogue, alone or together with scripts of other systems.

use autobatch_bench::BenchArgs;
use clap::Parser;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Times complete steps: emit, plan, verify, execute, read. AUTOBATCH_CPU=avx2 selects an instruction set.
#[derive(Parser, Debug)]
#[command(name = "autobatch-bench", version)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    let answer = Arguments::parse().bench.answer().map_err(|error| error.to_string());
    let written = answer.and_then(|answer| match writeln!(std::io::stdout(), "{answer}") {
        // A reader that closes the pipe is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write standard output: {error}"))
        }
        _ => Ok(()),
    });
    let Err(error) = written else { return ExitCode::SUCCESS };
    // An error while printing the error cannot be reported anywhere.
    let _ = writeln!(std::io::stderr(), "error: {error}");
    ExitCode::FAILURE
}
