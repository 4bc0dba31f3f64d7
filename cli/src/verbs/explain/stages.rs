//! `explain --stages`: the product of each stage of planning, as text.

use super::Report;
use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::planning;
use autobatch_ir::graph::GraphData;
use autobatch_planner::{Planner, Request, StageDump};
use serde_json::json;

pub(super) fn report(graph: &GraphData, args: &ExplainArgs) -> Result<Report, Failure> {
    let options = args.planning.options();
    let request = Request {
        mode: options.mode,
        training: options.training(),
        rows: options.rows,
        ..Request::default()
    };
    let dumps = Planner::new(planning::policy(&options.policy)?)
        .trace(graph, &request)
        .map_err(|error| Failure::input(format!("{}: {error}", args.file)))?;
    let text = |StageDump { name, text }: &StageDump| format!("== {name} ==\n{text}\n");
    let json = |StageDump { name, text }: &StageDump| json!({ "stage": name, "text": text });
    Ok(Report { text: dumps.iter().map(text).collect(), json: dumps.iter().map(json).collect() })
}
