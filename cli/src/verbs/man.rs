//! `man`: writes the manual pages.

use crate::args::Cli;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::write_file;
use autobatch_inspector::text::plural;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::io::Write;
use std::path::Path;

/// Writes one page per verb into a folder, or the main page to standard output.
pub fn man(output: &str, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let mut command = Cli::command();
    command.build();
    if output == "-" {
        console.write_all(&page(command)?)?;
        return Ok(Answer::Yes);
    }
    std::fs::create_dir_all(output).map_err(|error| Failure::output(output, &error))?;
    let verbs: Vec<Command> = command
        .get_subcommands()
        .filter(|verb| verb.get_name() != "help")
        .map(|verb| verb.clone().name(format!("autobatch-{}", verb.get_name())))
        .collect();
    let count = 1 + verbs.len() as u64;
    for command in std::iter::once(command).chain(verbs) {
        let path = Path::new(output).join(format!("{}.1", command.get_name()));
        write_file(&path.to_string_lossy(), &page(command)?)?;
    }
    let shown = Path::new(output).join("autobatch.1");
    writeln!(
        console,
        "wrote {} into {output}.  Next: man {}",
        plural(count, "manual page"),
        shown.display()
    )?;
    Ok(Answer::Yes)
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
