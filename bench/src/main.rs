//! `autobatch-bench`: times models of the catalogue, alone or between the scripts of other systems.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program reports to the terminal")]

use autobatch_bench::BenchArgs;
use clap::Parser;
use std::process::ExitCode;

/// Times whole steps: emit, plan, verify, play, read. AUTOBATCH_CPU=avx2 forces an instruction set.
#[derive(Parser, Debug)]
#[command(name = "autobatch-bench", version)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    match Arguments::parse().bench.answer() {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
