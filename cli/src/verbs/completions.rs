//! `completions`: prints a shell completion script.

use crate::args::Cli;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use clap::CommandFactory;
use std::io::Write;

/// Prints the completion script of a shell.
pub fn completions(shell: clap_complete::Shell, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "autobatch", &mut script);
    console.write_all(&script)?;
    Ok(Answer::Yes)
}
