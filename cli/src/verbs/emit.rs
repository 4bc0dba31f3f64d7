//! `emit`: writes a sample graph.

use crate::args::EmitArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Form, readable_form_to_write, write};
use autobatch_inspector::text::{byte_size, count, plural};
use autobatch_planner::Jobs;
use std::io::Write;

/// Emits a graph and writes it to the output.
pub fn emit(args: &EmitArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let form = readable_form_to_write(&args.output, true)?;
    let graph = crate::emit::emit(args)?;
    let bytes = match form {
        Form::Binary => graph.to_bytes(),
        Form::Json => super::show::graph_json(&graph)?,
        Form::Text | Form::Dot | Form::Svg => graph.to_text().into_bytes(),
    };
    write(&args.output, &bytes, console)?;
    if args.output != "-" {
        let size = byte_size(bytes.len() as u64);
        writeln!(
            console,
            "wrote {} ({size}): {}, {}, of which {} need a step",
            args.output,
            plural(graph.instances() as u64, "instance"),
            plural(graph.arena.len() as u64, "node"),
            count(Jobs::new(&graph, &[]).nodes().len() as u64),
        )?;
        writeln!(console, "Next: autobatch plan {0}   |   autobatch policies {0}", args.output)?;
    }
    Ok(Answer::Yes)
}
