//! The command `autobatch`: parses the command line, runs a verb, says what went wrong.

#![forbid(unsafe_code)]

use autobatch_cli::{Cli, Console};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing is left to do if not even the help can be printed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = autobatch_cli::run(&cli, &mut Console::new(&mut out));
    let result = result.and_then(|answer| Ok(out.flush().map(|()| answer)?));
    match result {
        Ok(answer) => ExitCode::from(answer.code()),
        Err(failure) => {
            if failure.code() != 0 {
                let _ = writeln!(std::io::stderr(), "{failure}");
            }
            ExitCode::from(failure.code())
        }
    }
}
