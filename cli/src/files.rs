//! Files of graphs and plans in every form they have.
//!
//! A known extension picks the form; for standard input (`-`) and foreign extensions the first bytes
//! do. What is loaded is verified: no verb sees a graph or plan that breaks its rules.

use crate::failure::Failure;
use crate::places::apart;
use autobatch_ir::LoadError;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{OTHER_VERSION_HELP, Plan, VERSION, Verified};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The extensions of graphs that passes rewrote before they were planned: `x.passes.graph` lies beside `x.plan`.
const AFTER_PASSES: [&str; 2] = ["passes.abg", "passes.graph"];
const PLAN_FORMAT: &str = "autobatch plan";

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

/// The form that a path's extension says.
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

/// Refuses to write a graph, or else a plan, under an extension of the other: it would not read back.
pub fn check_extension(path: &str, is_graph: bool) -> Result<(), Failure> {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let (what, others, own) = match is_graph {
        true => ("plans", ["plan", "abp"], ".graph, .abg or .json"),
        false => ("graphs", ["graph", "abg"], ".plan, .abp or .json"),
    };
    if others.contains(&extension) {
        let message = format!("{path}: .{extension} is a form of {what}");
        return Err(Failure::usage(message).help(format!("write {own}")));
    }
    Ok(())
}

/// The form in which a graph, or else a plan, is written under a path: text to standard output.
pub fn form_to_write(path: &str, is_graph: bool) -> Result<Form, Failure> {
    check_extension(path, is_graph)?;
    match (path, form_of(path)) {
        ("-", _) => Ok(Form::Text),
        (_, Some(form)) => Ok(form),
        (_, None) => Err(no_such_form(path, is_graph)),
    }
}

/// The same without pictures: the form must read back.
pub fn form_to_keep(path: &str, is_graph: bool) -> Result<Form, Failure> {
    match form_to_write(path, is_graph)? {
        Form::Dot | Form::Svg => Err(no_such_form(path, is_graph)),
        form => Ok(form),
    }
}

fn no_such_form(path: &str, is_graph: bool) -> Failure {
    let (what, own) = match is_graph {
        true => ("graphs", ".graph, .abg or .json"),
        false => ("plans", ".plan, .abp or .json"),
    };
    let help = format!("write {own}; `autobatch show` makes pictures");
    Failure::usage(format!("{path}: no form of {what} has this extension")).help(help)
}

/// Refuses to read standard input for two files: it can be read once.
pub fn one_standard_input<'a>(paths: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    if paths.into_iter().filter(|path| *path == "-").count() > 1 {
        return Err(
            Failure::usage("standard input can be one file, not two").help("name a file for the other")
        );
    }
    Ok(())
}

/// What a file held.
#[derive(Debug)]
pub enum Loaded {
    /// A graph that keeps its rules.
    Graph(Box<GraphData>),
    /// A plan that keeps its rules.
    Plan(Box<Verified<Plan>>),
}

/// A plan among JSON documents. No field may be flattened: the structure has 128 bits.
#[derive(Serialize, Deserialize)]
struct PlanDocument<P> {
    format: String,
    version: u32,
    plan: P,
}

#[derive(Deserialize)]
struct Head {
    format: String,
    #[serde(default)]
    version: u32,
}

/// The bytes of a file or of standard input.
pub fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let bytes = match path {
        "-" => autobatch_ir::files::read_standard_input(),
        _ => autobatch_ir::files::read(Path::new(path)),
    };
    bytes.map_err(|error| Failure::input(format!("{}: {error}", spelled(path))).help("check the path"))
}

/// What messages call a file.
fn spelled(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// The graph or plan in a file.
pub fn load(path: &str) -> Result<Loaded, Failure> {
    let bytes = read(path)?;
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]).into_owned();
    let first = head.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(';'));
    let (first, path) = (first.unwrap_or(""), spelled(path));
    match extension {
        "graph" => text_graph(path, &bytes),
        "plan" => text_plan(path, &bytes),
        "abg" => binary_graph(path, &bytes),
        "abp" => binary_plan(path, &bytes),
        "json" => json(path, &bytes),
        _ if first.starts_with("autobatch update") || matches!(extension, "update" | "abu") => {
            let message = format!("{path}: this is an update plan, which only executors read");
            Err(Failure::input(message).help("name a graph or a plan"))
        }
        _ if first.starts_with("autobatch graph") || first.starts_with("module ") => text_graph(path, &bytes),
        _ if first.starts_with("autobatch plan") => text_plan(path, &bytes),
        _ if first.starts_with('{') => json(path, &bytes),
        _ => sniff_binary(path, &bytes),
    }
}

/// A binary file under a name that does not say what it holds: its header does.
fn sniff_binary(path: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
    match GraphData::from_bytes(bytes) {
        Ok(graph) => Ok(Loaded::Graph(Box::new(graph))),
        Err(LoadError::Kind { .. }) => binary_plan(path, bytes),
        Err(LoadError::Foreign) => {
            let help = "graphs are .graph, .abg or .json files, plans .plan, .abp or .json files; `autobatch emit` makes graphs";
            Err(Failure::input(format!("{path}: neither a graph nor a plan in any form")).help(help))
        }
        Err(error) => Err(Failure::input(format!("{path}: {error}"))),
    }
}

fn text_graph(path: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
    let graph =
        GraphData::from_text(bytes).map_err(|error| Failure::input(error.in_file(path).to_string()))?;
    graph.verify().map_err(|errors| Failure::input(format!("{path}: {errors}")))?;
    Ok(Loaded::Graph(Box::new(graph)))
}

fn text_plan(path: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
    let plan = Plan::from_text(bytes).map_err(|error| Failure::input(error.in_file(path).to_string()))?;
    verified(path, plan)
}

fn binary_graph(path: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
    let graph = GraphData::from_bytes(bytes).map_err(|error| Failure::input(format!("{path}: {error}")))?;
    Ok(Loaded::Graph(Box::new(graph)))
}

fn binary_plan(path: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
    let plan = Plan::from_bytes(bytes).map_err(|error| Failure::input(format!("{path}: {error}")))?;
    Ok(Loaded::Plan(Box::new(plan)))
}

fn json(path: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
    let wrong = |what: String| Failure::input(format!("{path}: {what}"));
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(format!("no UTF-8 text: {error}")))?;
    let head: Head = serde_json::from_str(text).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Data => {
                "no field \"format\" that says what the document is".to_owned()
            }
            _ => error.to_string(),
        };
        wrong(what).help("expected a graph or plan that `autobatch show --format json` wrote")
    })?;
    if head.format == PLAN_FORMAT {
        if head.version != VERSION {
            let message = format!("expected version {VERSION} of the plan format, found {}", head.version);
            return Err(wrong(message).help(OTHER_VERSION_HELP));
        }
        let document: PlanDocument<Plan> =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        return verified(path, document.plan);
    }
    let graph = GraphData::from_json(text).map_err(|error| wrong(error.to_string()))?;
    Ok(Loaded::Graph(Box::new(graph)))
}

fn verified(path: &str, plan: Plan) -> Result<Loaded, Failure> {
    match plan.verify() {
        Ok(plan) => Ok(Loaded::Plan(Box::new(plan))),
        Err(errors) => Err(Failure::input(format!("{path}: {errors}"))),
    }
}

/// The graph in a file.
pub fn load_graph(path: &str) -> Result<GraphData, Failure> {
    match load(path)? {
        Loaded::Graph(graph) => Ok(*graph),
        Loaded::Plan(_) => Err(Failure::input(format!("{path}: expected a graph, found a plan"))
            .help("name the graph it was made from")),
    }
}

/// The plan in a file.
pub fn load_plan(path: &str) -> Result<Verified<Plan>, Failure> {
    match load(path)? {
        Loaded::Plan(plan) => Ok(*plan),
        Loaded::Graph(_) => Err(Failure::input(format!("{path}: expected a plan, found a graph"))
            .help(format!("make one: autobatch plan {path} -o out.plan"))),
    }
}

/// The graph that lies beside a plan under the same name and fits it.
pub fn graph_beside(plan_path: &str, fits: impl Fn(&str, &GraphData) -> bool) -> Option<GraphData> {
    ["abg", "graph", "json", AFTER_PASSES[0], AFTER_PASSES[1]].into_iter().find_map(|extension| {
        let path: PathBuf = Path::new(plan_path).with_extension(extension);
        let path = path.to_str()?.to_owned();
        let graph = (path != plan_path && Path::new(&path).exists()).then(|| load_graph(&path).ok())??;
        fits(&path, &graph).then_some(graph)
    })
}

/// Writes the graph that passes made of the one in `given` beside the plan that is made of it; gives its path.
pub fn write_after_passes(plan_path: &str, graph: &GraphData, given: &str) -> Result<String, Failure> {
    let is_text = form_of(plan_path) == Some(Form::Text);
    let path = Path::new(plan_path).with_extension(AFTER_PASSES[usize::from(is_text)]);
    let path = path.to_string_lossy().into_owned();
    apart(&[&path], &[given])?;
    let bytes = if is_text { graph.to_text().into_bytes() } else { graph.to_bytes() };
    write_file(&path, &bytes)?;
    Ok(path)
}

/// A plan as a JSON document.
pub fn plan_json(plan: &Plan) -> Result<String, Failure> {
    let document = PlanDocument { format: PLAN_FORMAT.to_owned(), version: VERSION, plan };
    serde_json::to_string(&document)
        .map_err(|error| Failure::input(format!("the plan has no JSON form: {error}")))
}

/// Writes to a file, or to standard output for `-`.
pub fn write(path: &str, bytes: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    if path == "-" {
        return Ok(out.write_all(bytes)?);
    }
    write_file(path, bytes)
}

/// Writes to a file, which is whole at every moment.
pub fn write_file(path: &str, bytes: &[u8]) -> Result<(), Failure> {
    autobatch_ir::files::write(Path::new(path), bytes).map_err(|error| Failure::output(path, &error))
}

/// A size in bytes, as people read it.
#[must_use]
pub fn bytes_in_words(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let size = bytes as f64;
    match size {
        ..KIB => format!("{bytes} B"),
        _ if size < KIB * KIB => format!("{:.1} KiB", size / KIB),
        _ if size < KIB * KIB * KIB => format!("{:.1} MiB", size / KIB / KIB),
        _ => format!("{:.1} GiB", size / KIB / KIB / KIB),
    }
}
