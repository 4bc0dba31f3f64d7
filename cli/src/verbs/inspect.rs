//! `inspect`: writes a page that shows a graph with its plan, answers questions and plans again.

use crate::args::InspectArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{load_graph, load_plan, read, write};
use crate::output_paths::check_distinct;
use autobatch_inspector::page::{Files, document};
use autobatch_inspector::text::byte_size;
use std::io::Write;
use std::path::Path;

/// Writes the page.
pub fn inspect(args: &InspectArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let inputs: Vec<&str> = args.graph.iter().chain(&args.plan).map(String::as_str).collect();
    check_distinct(&[&args.output], &inputs)?;
    if args.graph.is_none() && !args.empty {
        return Err(
            Failure::usage("inspect needs a graph").help("name one, or make an empty page with --empty")
        );
    }
    // The page shows the same errors, but a damaged file should not become a page.
    if let Some(graph) = &args.graph {
        let structure = load_graph(graph)?.structure();
        if let Some(plan) = &args.plan
            && load_plan(plan)?.structure != structure
        {
            let message = format!("{plan}: the plan was made for another graph than {graph}");
            return Err(Failure::input(message).help(format!("autobatch plan {graph} -o {plan}")));
        }
    }
    let bytes = |path: &Option<String>| path.as_ref().map(|path| read(path)).transpose();
    let (graph, plan) = (bytes(&args.graph)?, bytes(&args.plan)?);
    let files = Files {
        title: args.graph.as_deref().map(file_name).unwrap_or_default(),
        graph: args.graph.as_deref().map(file_name).zip(graph.as_deref()),
        plan: args.plan.as_deref().map(file_name).zip(plan.as_deref()),
    };
    let page = document(files);
    write(&args.output, page.as_bytes(), console)?;
    if args.output != "-" {
        writeln!(
            console,
            "wrote {} ({}). Open it in a browser; it needs no network.",
            args.output,
            byte_size(page.len() as u64)
        )?;
    }
    Ok(Answer::Yes)
}

/// The name of a file without its folders. The extension selects the form.
fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}
