//! The passes that the options of `plan` request, and their report.

use crate::args::{PlanArgs, VerifyArg};
use crate::failure::Failure;
use autobatch_inspector::text::plural;
use autobatch_ir::graph::GraphData;
use autobatch_oracle::equivalent::prove;
use autobatch_planner::Selection;
use autobatch_planner::passes::{self, Step, UnknownPass, Verify};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The graph after the requested passes; the unchanged graph if the options request none.
pub(super) struct Rewritten<'g> {
    pub(super) graph: Cow<'g, GraphData>,
    /// The effect of each pass, in execution order.
    pub(super) passes: Vec<PassReport>,
    /// The property that was checked after each pass.
    pub(super) checked: Option<&'static str>,
}

/// The effect of a pass.
#[derive(Serialize)]
pub(super) struct PassReport {
    pass: &'static str,
    changed: bool,
    /// A description of the effect; it starts with the name of the pass.
    line: String,
    /// The graph after the pass, if the pass changed it and the options request it.
    graph: Option<String>,
    /// Whether the options request the graph even without a change.
    #[serde(skip)]
    always: bool,
}

/// Whether the options request passes.
pub(super) fn requested(args: &PlanArgs) -> bool {
    args.print_after.is_some() || args.stop_after.is_some() || args.verify.is_some()
}

/// Runs the passes of the mode, if the options request passes.
pub(super) fn rewritten<'g>(args: &PlanArgs, graph: &'g GraphData) -> Result<Rewritten<'g>, Failure> {
    let max = args.stop_after.unwrap_or(usize::MAX);
    let mode = args.planning.options().mode;
    let mut selection = Selection::of_mode(mode);
    let shown = args.print_after.as_deref().unwrap_or("");
    if !["", "each", "changed"].contains(&shown) {
        let unknown = |error: UnknownPass| {
            Failure::usage(error.to_string()).help("`autobatch passes` lists the passes")
        };
        selection = selection.with(shown, true).map_err(unknown)?;
    }
    if !requested(args) || max == 0 {
        return Ok(Rewritten { graph: Cow::Borrowed(graph), passes: Vec::new(), checked: None });
    }
    match args.verify {
        Some(VerifyArg::Off) => selection.verify = Verify::Off,
        Some(VerifyArg::Each) => selection.verify = Verify::Each,
        Some(VerifyArg::Prove) => selection.verify = Verify::Prove(prove),
        None => {}
    }
    let mut reports = Vec::new();
    let mut observe = |step: Step<'_>| {
        let always = shown == "each" || shown == step.pass.name;
        let graph = (step.changed && (always || shown == "changed")).then(|| step.graph.to_text());
        let (pass, line) = (step.pass.name, step.line.to_owned());
        reports.push(PassReport { pass, changed: step.changed, line, graph, always });
        if reports.len() == max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let optimized = passes::optimize(graph, &[], mode, &selection, &mut observe);
    let optimized = optimized.map_err(|failure| Failure::input(format!("{}: {failure}", args.graph)))?;
    let checked = match args.verify {
        Some(VerifyArg::Each) => Some("the graph keeps the rules of graphs"),
        Some(VerifyArg::Prove) => {
            Some("the graph keeps the rules of graphs, and every remaining value is unchanged")
        }
        Some(VerifyArg::Off) | None => None,
    };
    Ok(Rewritten { graph: optimized.graph, passes: reports, checked })
}

impl Rewritten<'_> {
    /// The text that the options request.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for report in &self.passes {
            text += &format!("after {}\n", report.line);
            match &report.graph {
                Some(graph) => text += graph,
                None if report.always => text += "the graph is unchanged\n",
                None => {}
            }
        }
        if let Some(checked) = self.checked {
            let passes = plural(self.passes.len() as u64, "pass");
            text += &format!("verified after each of {passes}: {checked}\n");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}
