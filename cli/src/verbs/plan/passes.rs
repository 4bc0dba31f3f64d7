//! The passes that options of `plan` ask for, and what is told about them.

use crate::args::{PlanArgs, VerifyArg};
use crate::failure::Failure;
use crate::words::plural;
use autobatch_ir::graph::GraphData;
use autobatch_oracle::equivalent::prove;
use autobatch_planner::Selection;
use autobatch_planner::passes::{self, Step, UnknownPass, Verify};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// A graph after the passes that options ask for; as it was given if they ask for none.
pub(super) struct Rewritten<'g> {
    pub(super) graph: Cow<'g, GraphData>,
    /// What each pass did, in their order.
    pub(super) told: Vec<Told>,
    /// What was found true after each pass.
    pub(super) checked: Option<&'static str>,
}

/// What a pass did.
#[derive(Serialize)]
pub(super) struct Told {
    pass: &'static str,
    changed: bool,
    /// What it did, in words that begin with its name.
    line: String,
    /// The graph after it, if it changed and options ask for it.
    graph: Option<String>,
    /// Whether options ask for the graph even if it did not change.
    #[serde(skip)]
    always: bool,
}

/// Whether options ask for passes.
pub(super) fn wanted(args: &PlanArgs) -> bool {
    args.print_after.is_some() || args.stop_after.is_some() || args.verify.is_some()
}

/// The graph after the passes of its mode, if the options speak of any.
pub(super) fn rewritten<'g>(args: &PlanArgs, graph: &'g GraphData) -> Result<Rewritten<'g>, Failure> {
    let most = args.stop_after.unwrap_or(usize::MAX);
    let mode = args.wish.wish().mode;
    let mut selection = Selection::of_mode(mode);
    let shown = args.print_after.as_deref().unwrap_or("");
    if !["", "each", "changed"].contains(&shown) {
        let unknown =
            |error: UnknownPass| Failure::usage(error.to_string()).help("autobatch passes lists them");
        selection = selection.with(shown, true).map_err(unknown)?;
    }
    if !wanted(args) || most == 0 {
        return Ok(Rewritten { graph: Cow::Borrowed(graph), told: Vec::new(), checked: None });
    }
    match args.verify {
        Some(VerifyArg::Off) => selection.verify = Verify::Off,
        Some(VerifyArg::Each) => selection.verify = Verify::Each,
        Some(VerifyArg::Prove) => selection.verify = Verify::Prove(prove),
        None => {}
    }
    let mut told = Vec::new();
    let mut observe = |step: Step<'_>| {
        let always = shown == "each" || shown == step.pass.name;
        let graph = (step.changed && (always || shown == "changed")).then(|| step.graph.to_text());
        let (pass, line) = (step.pass.name, step.line.to_owned());
        told.push(Told { pass, changed: step.changed, line, graph, always });
        if told.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let optimized = passes::optimize(graph, &[], mode, &selection, &mut observe);
    let optimized = optimized.map_err(|failure| Failure::input(format!("{}: {failure}", args.graph)))?;
    let checked = match args.verify {
        Some(VerifyArg::Each) => Some("the graph keeps the rules of graphs"),
        Some(VerifyArg::Prove) => {
            Some("the graph keeps the rules of graphs, and every value left is the value that it was")
        }
        Some(VerifyArg::Off) | None => None,
    };
    Ok(Rewritten { graph: optimized.graph, told, checked })
}

impl Rewritten<'_> {
    /// What the options ask to see.
    pub(super) fn words(&self) -> String {
        let mut text = String::new();
        for told in &self.told {
            text += &format!("after {}\n", told.line);
            match &told.graph {
                Some(graph) => text += graph,
                None if told.always => text += "the same graph as before\n",
                None => {}
            }
        }
        if let Some(checked) = self.checked {
            let passes = plural(self.told.len() as u64, "pass");
            text += &format!("verified after each of {passes}: {checked}\n");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}
