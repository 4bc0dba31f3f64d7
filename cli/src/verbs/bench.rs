//! `bench`: times complete steps of a model.

use crate::console::Console;
use crate::failure::{Answer, Failure};
use autobatch_bench::BenchArgs;
use std::io::Write;

/// Times a model and prints the report.
pub fn bench(args: &BenchArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let answer = args.answer()?;
    writeln!(console, "{}", answer.trim_end())?;
    Ok(Answer::Yes)
}
