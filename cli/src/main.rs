//! The command `autobatch`: parses the command line, runs a verb and reports errors.

#![forbid(unsafe_code)]

use autobatch_cli::{Answer, Cli, Console, Failure};
use clap::Parser;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    report_large_files();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            return match error.use_stderr() {
                // An error while printing the usage error cannot be reported anywhere.
                true => ExitCode::from(2),
                false => exit_code(printed.map(|()| Answer::Yes).map_err(Failure::from)),
            };
        }
    };
    autobatch_cli::environment::set_runtime_folder(&cli);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = autobatch_cli::run(&cli, &mut Console::new(&mut out));
    exit_code(result.and_then(|answer| match out.flush() {
        // A reader that closes the pipe does not change the answer.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(answer),
        flushed => Ok(flushed.map(|()| answer)?),
    }))
}

/// Makes a write beyond the limit on the size of files an error, which a message explains. Without a handler the signal ends the
/// process.
fn report_large_files() {
    #[cfg(unix)]
    {
        // SIGXFSZ of Linux, macOS and the BSDs.
        const FILE_SIZE_EXCEEDED: i32 = 25;
        // Without the handler, such a write ends the process; nothing else changes.
        let _ = signal_hook::flag::register(FILE_SIZE_EXCEEDED, std::sync::Arc::default());
    }
}

fn exit_code(result: Result<Answer, Failure>) -> ExitCode {
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
