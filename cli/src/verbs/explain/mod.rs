//! `explain`: why a plan is as it is.
//!
//! A plan alone says where its steps go and what it reads through tables. With its graph, which is
//! looked for beside it, it also says what could have been batched further, and why two values are
//! not together.

mod batching;
mod copies;
mod gathers;
mod kernels;
mod lanes;
mod site;
mod stages;
mod verdict;
mod why;

use super::check::computes;
use crate::args::{ExplainArgs, WishArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Loaded, graph_beside, load, load_graph, one_standard_input};
use crate::planning;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Plan;
use std::io::Write;

/// What is explained.
struct Subject {
    /// The file that the user named.
    path: String,
    plan: Plan,
    graph: Option<GraphData>,
    /// Whether the plan was read and not made now.
    from_file: bool,
}

/// An answer for people, and the same for machines.
struct Report {
    text: String,
    json: serde_json::Value,
}

impl Subject {
    fn load(args: &ExplainArgs) -> Result<Self, Failure> {
        one_standard_input([Some(&args.file), args.graph.as_ref()].into_iter().flatten())?;
        let path = args.file.clone();
        let plan = match load(&path)? {
            Loaded::Graph(graph) => {
                let plan = planning::plan(&path, &graph, &args.wish.wish())?.plan;
                return Ok(Self { path, plan, graph: Some(*graph), from_file: false });
            }
            Loaded::Plan(plan) => *plan,
        };
        // Alternatives to a plan are judged by a policy, too.
        let policy = args.wish.policy.clone().filter(|_| args.why.is_none());
        let unheeded = WishArgs { policy, rows: args.wish.rows, mode: args.wish.mode };
        unheeded.none_given(&format!("{path} is a plan already"))?;
        let graph = match &args.graph {
            Some(graph_path) => {
                let graph = load_graph(graph_path)?;
                computes((&path, &plan), (graph_path, &graph))?;
                Some(graph)
            }
            None => graph_beside(&path, |beside, graph| computes((&path, &plan), (beside, graph)).is_ok()),
        };
        let plan = plan.into_inner();
        Ok(Self { path, plan, graph, from_file: true })
    }

    /// The graph, for questions that only it answers.
    fn graph(&self, question: &str) -> Result<&GraphData, Failure> {
        let message = || {
            format!(
                "{question} is a question about the graph, and none that {} computes lies beside it",
                self.path
            )
        };
        self.graph.as_ref().ok_or_else(|| {
            Failure::usage(message()).help("name it: --graph FILE, or explain the graph itself")
        })
    }
}

/// Explains a plan.
pub fn explain(args: &ExplainArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let subject = Subject::load(args)?;
    let report = if let Some(values) = &args.why {
        why::report(&subject, args, values)?
    } else if args.lanes {
        lanes::report(subject.graph("--lanes")?, &subject.plan, args.kernel.as_deref(), args.labels)?
    } else if let Some(site) = &args.site {
        site::report(subject.graph("--site")?, &subject.plan, site)?
    } else if args.stages {
        stages::report(subject.graph("--stages")?, args)?
    } else if args.gathers {
        gathers::report(&subject.plan)
    } else {
        kernels::report(&subject)?
    };
    let text = if args.json { format!("{:#}\n", report.json) } else { report.text };
    console.write_all(text.as_bytes())?;
    Ok(Answer::Yes)
}
