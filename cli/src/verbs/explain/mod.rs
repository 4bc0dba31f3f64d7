//! `explain`: shows why a plan has its batches, gathered operands and copies.
//!
//! The plan alone is enough to show kernels and gathered operands. With the graph, which is searched
//! for next to the plan, the report also shows kernels with more batches than needed, and why two values do not share a batch.

mod batching;
mod copies;
#[cfg(feature = "gpu")]
mod device;
mod gathers;
mod kernels;
mod lanes;
mod site;
mod stages;

use super::check::{InFile, check_computes};
use crate::args::{ExplainArgs, PlanningArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Loaded, adjacent_graph, load, load_graph, one_standard_input};
use crate::planning;
use crate::progress::Waiting;
use autobatch_inspector::names;
use autobatch_inspector::why::Question;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Plan, Verified};
use std::io::Write;

/// The plan to explain.
struct Subject {
    /// The file that the user named.
    path: String,
    plan: Verified<Plan>,
    graph: Option<GraphData>,
    /// The file of the graph as commands name it.
    graph_path: String,
    /// Whether the plan was loaded from a file.
    from_file: bool,
}

/// An answer, as text and as JSON.
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
                let waiting = Waiting::new("planning");
                let plan = planning::plan(&path, &graph, &args.planning.options())?.plan;
                drop(waiting);
                return Ok(Self {
                    graph_path: path.clone(),
                    path,
                    plan,
                    graph: Some(*graph),
                    from_file: false,
                });
            }
            Loaded::Plan(plan) => *plan,
        };
        // `--why` uses the policy to judge alternatives.
        let policy = args.planning.policy.clone().filter(|_| args.why.is_none());
        let unused = PlanningArgs { policy, rows: args.planning.rows, mode: args.planning.mode };
        unused.reject_if_given(&format!("{path} is already a plan"))?;
        let check = |graph_path: &str, graph: &GraphData| {
            let plan = InFile { path: &path, content: &plan };
            check_computes(&plan, &InFile { path: graph_path, content: graph })
        };
        let graph = match &args.graph {
            Some(graph_path) => {
                let graph = load_graph(graph_path)?;
                check(graph_path, &graph)?;
                Some(graph)
            }
            None => adjacent_graph(&path, |graph_path, graph| check(graph_path, graph).is_ok()),
        };
        let graph_path = args.graph.clone().unwrap_or_else(|| "GRAPH".to_owned());
        Ok(Self { path, plan, graph, graph_path, from_file: true })
    }

    /// The graph, which `option` needs.
    fn graph(&self, option: &str) -> Result<&GraphData, Failure> {
        self.graph.as_ref().ok_or_else(|| {
            Failure::usage(format!("{option} needs the graph of {}, which is not next to it", self.path))
                .help("name the graph with --graph FILE, or explain the graph itself")
        })
    }
}

/// Reports on two values, written `%12`.
fn why(subject: &Subject, args: &ExplainArgs, values: &[String]) -> Result<Report, Failure> {
    let graph = subject.graph("--why")?;
    let [a, b] = values else {
        return Err(Failure::usage("--why takes two values").help("for example: --why %12 %34"));
    };
    let question = Question {
        values: [names::parse_value(graph, a)?, names::parse_value(graph, b)?],
        policy: args.planning.options().policy,
        assumed: subject.from_file && args.planning.policy.is_none(),
        passes: args.passes,
        forced: args.forced.as_ref().map(|forced| names::parse_value(graph, forced)).transpose()?,
    };
    let answer = autobatch_inspector::why::why(graph, &subject.plan, &question)?;
    Ok(Report { text: answer.text, json: answer.json })
}

/// Reports on the dispatches of a plan on a GPU.
fn on_device(subject: &Subject) -> Result<Report, Failure> {
    #[cfg(feature = "gpu")]
    {
        device::report(&subject.plan)
    }
    #[cfg(not(feature = "gpu"))]
    {
        let message = format!("this build cannot compile {} for a GPU", subject.path);
        Err(Failure::usage(message).help("build with the feature gpu"))
    }
}

/// Explains a plan.
pub fn explain(args: &ExplainArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let subject = Subject::load(args)?;
    let waiting = Waiting::new("explaining");
    let report = if let Some(values) = &args.why {
        why(&subject, args, values)?
    } else if args.lanes {
        lanes::report(subject.graph("--lanes")?, &subject.plan, args.kernel.as_deref(), args.labels)?
    } else if let Some(site) = &args.site {
        site::report(subject.graph("--site")?, &subject.plan, site)?
    } else if args.stages {
        stages::report(subject.graph("--stages")?, args)?
    } else if args.device.is_some() {
        on_device(&subject)?
    } else if args.gathers {
        gathers::report(&subject.plan, subject.graph.as_ref())
    } else {
        kernels::report(&subject, console)?
    };
    drop(waiting);
    let text = if args.json { format!("{:#}\n", report.json) } else { report.text };
    console.write_all(text.as_bytes())?;
    Ok(Answer::Yes)
}
