//! [`load`]: graphs and plans in any of their forms.

use crate::Refused;
use autobatch_ir::LoadError;
use autobatch_ir::files::without_mark;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{OTHER_VERSION_HELP, Plan, VERSION, Verified};
use autobatch_ir::printable::brief;
use serde::{Deserialize, Serialize};

const GRAPH_FORMAT: &str = "autobatch graph";
const PLAN_FORMAT: &str = "autobatch plan";

/// The content of a file.
#[derive(Debug)]
pub enum Loaded {
    /// A verified graph.
    Graph(Box<GraphData>),
    /// A verified plan.
    Plan(Box<Verified<Plan>>),
}

/// The JSON document of a plan. Serde cannot flatten `plan`, because the structure hash has 128 bits.
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

/// Loads and verifies the graph or plan in a file with these bytes. The extension selects the form; the first bytes select the
/// form of a file with an unknown one.
///
/// # Errors
/// If the bytes are no graph or plan, or a damaged one. The message begins with `path`.
pub fn load(path: &str, extension: &str, bytes: &[u8]) -> Result<Loaded, Refused> {
    let bytes = without_mark(bytes);
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]).into_owned();
    let first = head.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(';'));
    let first = first.unwrap_or("");
    match extension {
        "graph" => text_graph(path, bytes),
        "plan" => text_plan(path, bytes),
        "abg" => binary_graph(path, bytes),
        "abp" => binary_plan(path, bytes),
        "json" => json(path, bytes),
        _ if first.starts_with("autobatch update") || matches!(extension, "update" | "abu") => {
            let message = format!("{path}: this is an update plan, which only executors read");
            Err(Refused::file(message).help("name a graph or a plan"))
        }
        _ if first.starts_with("autobatch graph") || first.starts_with("module ") => text_graph(path, bytes),
        _ if first.starts_with("autobatch plan") => text_plan(path, bytes),
        _ if first.starts_with('{') => json(path, bytes),
        _ => sniff_binary(path, bytes),
    }
}

/// Loads a binary file whose name does not tell its kind; the header does.
fn sniff_binary(path: &str, bytes: &[u8]) -> Result<Loaded, Refused> {
    let help = "graphs are .graph, .abg or .json files, plans are .plan, .abp or .json files; `autobatch emit` makes graphs";
    match GraphData::from_bytes(bytes) {
        Ok(graph) => Ok(Loaded::Graph(Box::new(graph))),
        Err(LoadError::Kind { .. }) => binary_plan(path, bytes),
        Err(_) if bytes.is_empty() => Err(Refused::file(format!("{path}: the file is empty")).help(help)),
        Err(LoadError::Foreign) => {
            Err(Refused::file(format!("{path}: the file is neither a graph nor a plan")).help(help))
        }
        Err(error) => Err(Refused::file(format!("{path}: {error}"))),
    }
}

fn text_graph(path: &str, bytes: &[u8]) -> Result<Loaded, Refused> {
    let graph =
        GraphData::from_text(bytes).map_err(|error| Refused::file(error.in_file(path).to_string()))?;
    graph.verify().map_err(|errors| Refused::file(format!("{path}: {errors}")))?;
    Ok(Loaded::Graph(Box::new(graph)))
}

fn text_plan(path: &str, bytes: &[u8]) -> Result<Loaded, Refused> {
    let plan = Plan::from_text(bytes).map_err(|error| Refused::file(error.in_file(path).to_string()))?;
    verified(path, plan)
}

fn binary_graph(path: &str, bytes: &[u8]) -> Result<Loaded, Refused> {
    let graph = GraphData::from_bytes(bytes).map_err(|error| Refused::file(format!("{path}: {error}")))?;
    Ok(Loaded::Graph(Box::new(graph)))
}

fn binary_plan(path: &str, bytes: &[u8]) -> Result<Loaded, Refused> {
    let plan = Plan::from_bytes(bytes).map_err(|error| Refused::file(format!("{path}: {error}")))?;
    Ok(Loaded::Plan(Box::new(plan)))
}

fn json(path: &str, bytes: &[u8]) -> Result<Loaded, Refused> {
    let malformed = |message: String| Refused::file(format!("{path}: {message}"));
    let text = std::str::from_utf8(bytes)
        .map_err(|error| malformed(format!("the file is not UTF-8 text: {error}")))?;
    let head: Head = serde_json::from_str(text).map_err(|error| {
        let message = match error.classify() {
            serde_json::error::Category::Data => "the document has no field \"format\"".to_owned(),
            _ => error.to_string(),
        };
        malformed(message).help("expected a graph or plan as `autobatch show --format json` writes it")
    })?;
    if head.format == PLAN_FORMAT {
        if head.version != VERSION {
            let message = format!("expected version {VERSION} of the plan format, found {}", head.version);
            return Err(malformed(message).help(OTHER_VERSION_HELP));
        }
        let document: PlanDocument<Plan> =
            serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        return verified(path, document.plan);
    }
    if head.format != GRAPH_FORMAT {
        let message = format!(
            "expected \"{GRAPH_FORMAT}\" or \"{PLAN_FORMAT}\" as \"format\", found {:?}",
            brief(&head.format)
        );
        return Err(malformed(message).help("name a document that `autobatch show --format json` wrote"));
    }
    let graph = GraphData::from_json(text).map_err(|error| malformed(error.to_string()))?;
    Ok(Loaded::Graph(Box::new(graph)))
}

fn verified(path: &str, plan: Plan) -> Result<Loaded, Refused> {
    match plan.verify() {
        Ok(plan) => Ok(Loaded::Plan(Box::new(plan))),
        Err(errors) => Err(Refused::file(format!("{path}: {errors}"))),
    }
}

/// Encodes a plan as a JSON document.
///
/// # Errors
/// If the document cannot be encoded.
pub fn plan_json(plan: &Plan) -> Result<String, Refused> {
    let document = PlanDocument { format: PLAN_FORMAT.to_owned(), version: VERSION, plan };
    serde_json::to_string(&document)
        .map_err(|error| Refused::file(format!("cannot encode the plan as JSON: {error}")))
}
