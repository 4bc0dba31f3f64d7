//! `sweep`: times a model at several batch sizes.

use crate::args::SweepArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Form, form_of, write};
use crate::output_paths::check_writable;
use crate::picture;
use std::io::Write;

/// Times a model at several batch sizes, prints a table and draws a picture.
pub fn sweep(args: &SweepArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    if let Some(path) = args.output.as_deref().filter(|&path| path != "-" && form_of(path) != Some(Form::Svg))
    {
        return Err(Failure::usage(format!("{path}: the picture must be an .svg file"))
            .help("for example: -o sweep.svg"));
    }
    if args.step.json && args.output.as_deref() == Some("-") {
        return Err(Failure::usage("-o - and --json both write to standard output")
            .help("name a file for the picture: -o sweep.svg"));
    }
    args.output.as_deref().map_or(Ok(()), check_writable)?;
    let found = args.step.sweep(&args.model)?;
    let text = if args.step.json { format!("{}\n", found.to_json()) } else { found.to_string() };
    write!(console, "{text}")?;
    if let Some(output) = &args.output {
        write(output, picture::sweep(&found).as_bytes(), console)?;
        if output != "-" && !args.step.json {
            writeln!(console, "wrote {output}: {} per second by batch size", found.unit)?;
        }
    }
    Ok(Answer::Yes)
}
