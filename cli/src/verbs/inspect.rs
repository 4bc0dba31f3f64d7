//! `inspect`: writes a page that shows a graph with its plan, answers questions and plans again.

use super::check::{InFile, check_computes};
use crate::args::InspectArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Loaded, load_bytes, one_standard_input, read, write};
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
    one_standard_input(args.graph.iter().chain(&args.plan))?;
    let bytes = |path: &Option<String>| path.as_ref().map(|path| read(path)).transpose();
    let (graph, plan) = (bytes(&args.graph)?, bytes(&args.plan)?);
    let [graph_path, plan_path] = [&args.graph, &args.plan].map(|path| path.as_deref().unwrap_or_default());
    check(graph_path, graph.as_deref(), plan_path, plan.as_deref())?;
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

/// Rejects damaged files, and a plan that does not compute the graph. The page would show the same errors, but a damaged file
/// should not become a page.
fn check(
    graph_path: &str,
    graph: Option<&[u8]>,
    plan_path: &str,
    plan: Option<&[u8]>,
) -> Result<(), Failure> {
    let Some(graph) = graph else { return Ok(()) };
    let Loaded::Graph(graph) = load_bytes(graph_path, graph)? else {
        return Err(Failure::input(format!("{graph_path}: expected a graph, found a plan"))
            .help("name the graph first"));
    };
    let Some(plan) = plan else { return Ok(()) };
    let Loaded::Plan(plan) = load_bytes(plan_path, plan)? else {
        let help = format!("make one: autobatch plan {graph_path} -o out.plan");
        return Err(Failure::input(format!("{plan_path}: expected a plan, found a graph")).help(help));
    };
    check_computes(
        &InFile { path: plan_path, content: &*plan },
        &InFile { path: graph_path, content: &*graph },
    )
}

/// The name of a file without its folders. The extension selects the form.
fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}
