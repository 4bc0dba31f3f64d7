//! The inspector's page: one file that shows a graph and its plan, answers questions about them and plans again.
//!
//! [`Inspected`] answers the questions of the page. The page runs it as WebAssembly, so its answers are those of the command
//! line. [`document`] fills the page's template. Text from a file enters the page as JSON alone, never as markup.

#[cfg(feature = "document")]
mod document;
mod view;

#[cfg(feature = "document")]
pub use document::{Files, document};

use crate::why::{Question, why};
use crate::{Loaded, Refused, load, load_policy, losses, names};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request, RowOrder};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// A graph with a plan, about which the page asks.
#[derive(Debug, Default)]
pub struct Inspected {
    graph: Option<GraphData>,
    /// The plan of a file, or of the last policy.
    plan: Option<Verified<Plan>>,
    /// The policy of the plan. A plan from a file does not record it.
    policy: Option<Policy>,
}

/// A question of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum Ask {
    /// Plans the graph.
    Plan { policy: String, mode: String },
    /// The graph and its plan as numbers to draw.
    View,
    /// Why two values share a batch or do not.
    Why { a: String, b: String },
    /// The text of the plan.
    PlanText,
}

impl Inspected {
    /// Takes the graph or the plan of a file. A plan must compute the graph that was opened before it.
    ///
    /// # Errors
    /// If the file is damaged, or the plan belongs to another graph.
    pub fn open(&mut self, name: &str, bytes: &[u8]) -> Result<Json, Refused> {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match load(name, extension, bytes)? {
            Loaded::Graph(graph) => {
                *self = Self { graph: Some(*graph), ..Self::default() };
                Ok(json!({"opened": "graph"}))
            }
            Loaded::Plan(plan) => {
                let graph = self.graph()?;
                if plan.structure != graph.structure() {
                    let message = format!("{name}: the plan was made for another graph");
                    return Err(Refused::file(message).help("open the graph of the plan first"));
                }
                (self.plan, self.policy) = (Some(*plan), None);
                Ok(json!({"opened": "plan"}))
            }
        }
    }

    /// Answers a question, which is a JSON document.
    ///
    /// # Errors
    /// If the document is no question, or the question has no answer.
    pub fn ask(&mut self, question: &str) -> Result<Json, Refused> {
        let malformed = |error: serde_json::Error| Refused::question(error.to_string());
        match serde_json::from_str(question).map_err(malformed)? {
            Ask::Plan { policy, mode } => self.make_plan(&policy, &mode),
            Ask::View => {
                let (graph, plan) = self.both()?;
                Ok(view::view(graph, plan))
            }
            Ask::Why { a, b } => {
                let (graph, plan) = self.both()?;
                let values = [names::parse_value(graph, &a)?, names::parse_value(graph, &b)?];
                let (policy, assumed) = (self.policy.clone().unwrap_or_default(), self.policy.is_none());
                let question = Question { values, policy, assumed, passes: false, forced: None };
                let answer = why(graph, plan, &question)?;
                Ok(json!({"text": answer.text, "answer": answer.json}))
            }
            Ask::PlanText => Ok(json!({"text": self.both()?.1.to_text()})),
        }
    }

    fn make_plan(&mut self, policy: &str, mode: &str) -> Result<Json, Refused> {
        let policy: Policy = policy.parse().map_err(|error| Refused::question(format!("{error}")))?;
        let mode = if mode == "train" { Mode::Train } else { Mode::Infer };
        let mut planner = Planner::new(load_policy(&policy)?);
        let graph = self.graph()?;
        let losses = losses(graph, mode);
        let gradients = Gradients { losses: &losses, params: None, values: &[] };
        let request = Request {
            mode,
            training: mode == Mode::Train,
            rows: RowOrder::default(),
            gradients: (!losses.is_empty()).then_some(gradients),
            ..Request::default()
        };
        let plan = planner.plan(graph, &request).map_err(|error| Refused::file(error.to_string()))?;
        let plan = plan.verify().map_err(|errors| Refused::file(errors.to_string()))?;
        let summary = view::summary(&plan);
        (self.plan, self.policy) = (Some(plan), Some(policy));
        Ok(summary)
    }

    fn graph(&self) -> Result<&GraphData, Refused> {
        self.graph.as_ref().ok_or_else(|| Refused::question("no graph is open").help("open a graph first"))
    }

    fn both(&self) -> Result<(&GraphData, &Verified<Plan>), Refused> {
        let graph = self.graph()?;
        let plan = self.plan.as_ref().ok_or_else(|| Refused::question("the graph has no plan yet"))?;
        Ok((graph, plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = "autobatch graph 2\nmodule \"</script><b>\"\ngraph\ninstance 0:\n  %0 = input f32[2] (#[1.0, 2.0])\n  %1 = tanh(%0)\ninstance 1:\n  %2 = input f32[2] (#[3.0, 4.0])\n  %3 = tanh(%2)\n  %4 = tanh(%3)\noutput \"a\" %1\noutput \"b\" %4\n";

    #[test]
    fn questions_have_the_answers_of_the_command_line() {
        let mut inspected = Inspected::default();
        assert!(inspected.ask("{\"ask\":\"view\"}").is_err(), "nothing is open");
        inspected.open("g.graph", GRAPH.as_bytes()).expect("a graph");
        let plan =
            inspected.ask("{\"ask\":\"plan\",\"policy\":\"depth\",\"mode\":\"infer\"}").expect("a plan");
        assert_eq!(plan["batches"], 2);
        let view = inspected.ask("{\"ask\":\"view\"}").expect("a view");
        assert_eq!(view["nodes"]["step"].as_array().map(Vec::len), Some(5));
        let why = inspected.ask("{\"ask\":\"why\",\"a\":\"%1\",\"b\":\"%3\"}").expect("an answer");
        assert_eq!(why["answer"]["verdict"]["name"], "same-step");
        let wrong = inspected.ask("{\"ask\":\"why\",\"a\":\"%1\",\"b\":\"%9\"}").expect_err("no value");
        assert!(wrong.message.contains("the graph has no value %9"), "{wrong}");
        let broken = inspected.open("g.graph", b"autobatch graph 2\nmodule").expect_err("cut");
        assert!(broken.message.contains("g.graph:2:7"), "{broken}");
    }
}
