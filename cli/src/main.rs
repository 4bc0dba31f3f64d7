//! The command `autobatch`: parses the command line, runs a verb, says what went wrong.

#![forbid(unsafe_code)]

use autobatch_cli::{Answer, Cli, Console, Failure};
use clap::Parser;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            return match error.use_stderr() {
                // Nothing is left to do if not even this can be printed.
                true => ExitCode::from(2),
                false => ended(printed.map(|()| Answer::Yes).map_err(Failure::from)),
            };
        }
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = autobatch_cli::run(&cli, &mut Console::new(&mut out));
    ended(result.and_then(|answer| match out.flush() {
        // Who stops reading has not changed the answer.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(answer),
        flushed => Ok(flushed.map(|()| answer)?),
    }))
}

fn ended(result: Result<Answer, Failure>) -> ExitCode {
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
