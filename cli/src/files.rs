//! Reading and writing of graphs and plans in all their forms.
//!
//! A known extension selects the form. For standard input (`-`) and unknown extensions, the first
//! bytes select it. Loading verifies, so verbs only see graphs and plans that keep their rules.

use crate::console::Console;
use crate::failure::Failure;
use crate::limits::machine_memory;
use crate::output_paths::check_distinct;
use autobatch_inspector::text::byte_size;
pub use autobatch_inspector::{Loaded, plan_json};
use autobatch_ir::LoadError;
use autobatch_ir::codec::{Kind, check_header, is_binary};
use autobatch_ir::files::{Opened, read_remedy, without_mark};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Plan, Verified};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The extensions of graphs that passes rewrote before planning: `x.passes.graph` is the graph of `x.plan`.
const AFTER_PASSES: [&str; 2] = ["passes.abg", "passes.graph"];
/// The most bytes of a graph or plan on any machine.
const MAX_DOCUMENT: u64 = 4 << 30;
/// The part of the memory of the machine that a graph or plan may have: reading takes up to 16 times its bytes, so half of the
/// memory.
const DOCUMENT_PART: u64 = 32;

/// The form of a file, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `.graph`, `.plan`
    Text,
    /// `.abg`, `.abp`
    Binary,
    /// `.json`
    Json,
    /// `.dot`
    Dot,
    /// `.svg`
    Svg,
}

/// The form that the extension of a path selects.
#[must_use]
pub fn form_of(path: &str) -> Option<Form> {
    match Path::new(path).extension()?.to_str()? {
        "graph" | "plan" => Some(Form::Text),
        "abg" | "abp" => Some(Form::Binary),
        "json" => Some(Form::Json),
        "dot" | "gv" => Some(Form::Dot),
        "svg" => Some(Form::Svg),
        _ => None,
    }
}

/// Rejects an extension of plans for a graph, and an extension of graphs for a plan. Such a file would
/// not read back.
pub fn check_extension(path: &str, is_graph: bool) -> Result<(), Failure> {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let (other, other_extensions, own) = match is_graph {
        true => ("plans", ["plan", "abp"], ".graph, .abg or .json"),
        false => ("graphs", ["graph", "abg"], ".plan, .abp or .json"),
    };
    if other_extensions.contains(&extension) {
        let message = format!("{path}: .{extension} is an extension of {other}");
        return Err(Failure::usage(message).help(format!("use {own}")));
    }
    Ok(())
}

/// The form in which a graph or plan is written to a path. Standard output gets the text form.
pub fn form_to_write(path: &str, is_graph: bool) -> Result<Form, Failure> {
    check_extension(path, is_graph)?;
    match (path, form_of(path)) {
        ("-", _) => Ok(Form::Text),
        (_, Some(form)) => Ok(form),
        (_, None) => Err(no_such_form(path, is_graph)),
    }
}

/// As [`form_to_write`], but rejects pictures: the form must read back.
pub fn readable_form_to_write(path: &str, is_graph: bool) -> Result<Form, Failure> {
    match form_to_write(path, is_graph)? {
        Form::Dot | Form::Svg => Err(no_such_form(path, is_graph)),
        form => Ok(form),
    }
}

fn no_such_form(path: &str, is_graph: bool) -> Failure {
    let (kind, own) = match is_graph {
        true => ("graphs", ".graph, .abg or .json"),
        false => ("plans", ".plan, .abp or .json"),
    };
    let help = format!("use {own}; `autobatch show` draws pictures");
    Failure::usage(format!("{path}: no form of {kind} has this extension")).help(help)
}

/// Rejects `-` for two inputs: standard input can be read only once.
pub fn one_standard_input<'a>(paths: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    if paths.into_iter().filter(|path| *path == "-").count() > 1 {
        return Err(Failure::usage("two inputs are `-`, but standard input can be read only once")
            .help("name a file for one of them"));
    }
    Ok(())
}

/// Reads a file, or standard input for `-`.
pub fn read(path: &str) -> Result<Vec<u8>, Failure> {
    read_if(path, |_| Ok(true))
}

/// Reads a file whose first bytes `is_promising` accepts. Of another file it returns the first bytes alone, which the reader
/// of the form then rejects.
fn read_if(
    path: &str,
    is_promising: impl FnOnce(&Opened) -> Result<bool, LoadError>,
) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::input(format!("{}: {error}", display_name(path))).help(read_remedy(&error))
    };
    let file = match path {
        "-" => Opened::standard_input(),
        _ => Opened::open(Path::new(path)),
    };
    let file = file.map_err(unreadable)?;
    let most = MAX_DOCUMENT.min(machine_memory() / DOCUMENT_PART);
    match is_promising(&file) {
        Ok(true) if file.length().is_some_and(|length| length > most) => {
            let length = byte_size(file.length().unwrap_or(0));
            let message = format!("{}: the file has {length}", display_name(path));
            Err(Failure::input(message).help(format!(
                "this machine reads graphs and plans of up to {}, because reading takes a multiple of that; name the right file",
                byte_size(most)
            )))
        }
        Ok(true) => file.read(most).map_err(unreadable),
        Ok(false) => Ok(file.into_head()),
        Err(error) => Err(Failure::input(format!("{}: {error}", display_name(path)))),
    }
}

/// Whether the first bytes of a file may begin a graph or plan in the form that its extension selects.
fn is_promising(extension: &str, file: &Opened) -> Result<bool, LoadError> {
    let head = without_mark(file.head());
    Ok(match extension {
        "abg" => return check_header(Kind::Graph, file).map(|()| true),
        "abp" => return check_header(Kind::Plan, file).map(|()| true),
        "json" => head.trim_ascii_start().first().is_none_or(|&first| first == b'{'),
        "graph" | "plan" => !head.contains(&0),
        _ => is_binary(head) || !head.contains(&0),
    })
}

/// The name of a file in messages.
fn display_name(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// Loads the graph or plan in the bytes of a file.
pub fn load_bytes(path: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
    Ok(autobatch_inspector::load(display_name(path), extension_of(path), bytes)?)
}

fn extension_of(path: &str) -> &str {
    Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("")
}

/// Loads the graph or plan in a file.
pub fn load(path: &str) -> Result<Loaded, Failure> {
    let bytes = read_if(path, |file| is_promising(extension_of(path), file))?;
    load_bytes(path, &bytes)
}

/// Loads the graph in a file.
pub fn load_graph(path: &str) -> Result<GraphData, Failure> {
    match load(path)? {
        Loaded::Graph(graph) => Ok(*graph),
        Loaded::Plan(_) => Err(Failure::input(format!("{path}: expected a graph, found a plan"))
            .help("name the graph of this plan")),
    }
}

/// Loads the plan in a file.
pub fn load_plan(path: &str) -> Result<Verified<Plan>, Failure> {
    match load(path)? {
        Loaded::Plan(plan) => Ok(*plan),
        Loaded::Graph(_) => Err(Failure::input(format!("{path}: expected a plan, found a graph"))
            .help(format!("make one: autobatch plan {path} -o out.plan"))),
    }
}

/// Loads the graph next to a plan: a file with the same stem that `fits` accepts.
pub fn adjacent_graph(plan_path: &str, fits: impl Fn(&str, &GraphData) -> bool) -> Option<GraphData> {
    adjacent_paths(plan_path).into_iter().find_map(|path| {
        let path = path.to_str()?.to_owned();
        let graph = (path != plan_path && Path::new(&path).exists()).then(|| load_graph(&path).ok())??;
        fits(&path, &graph).then_some(graph)
    })
}

/// The paths where [`adjacent_graph`] looks.
fn adjacent_paths(plan_path: &str) -> [PathBuf; 5] {
    ["abg", "graph", "json", AFTER_PASSES[0], AFTER_PASSES[1]]
        .map(|extension| Path::new(plan_path).with_extension(extension))
}

/// Whether [`adjacent_graph`] finds a graph without being told its path.
pub fn is_adjacent(plan_path: &str, graph_path: &str) -> bool {
    adjacent_paths(plan_path).iter().any(|path| path == Path::new(graph_path))
}

/// Writes the graph after passes next to its plan and returns the path. `given` is the path of the graph
/// before passes.
pub fn write_after_passes(plan_path: &str, graph: &GraphData, given: &str) -> Result<String, Failure> {
    let is_text = form_of(plan_path) == Some(Form::Text);
    let path = Path::new(plan_path).with_extension(AFTER_PASSES[usize::from(is_text)]);
    let path = path.to_string_lossy().into_owned();
    check_distinct(&[&path], &[given])?;
    let bytes = if is_text { graph.to_text().into_bytes() } else { graph.to_bytes() };
    write_file(&path, &bytes)?;
    Ok(path)
}

/// Writes to a file, or to standard output for `-`.
pub fn write(path: &str, bytes: &[u8], console: &mut Console<'_>) -> Result<(), Failure> {
    if path == "-" {
        // The console escapes control characters of text; an array is no text.
        return Ok(console.write_all(bytes)?);
    }
    write_file(path, bytes)
}

/// Writes a file atomically: readers see the old or the new content, never a part.
pub fn write_file(path: &str, bytes: &[u8]) -> Result<(), Failure> {
    autobatch_ir::files::write(Path::new(path), bytes).map_err(|error| Failure::output(path, &error))
}
