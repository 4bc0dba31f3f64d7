//! Tables of policies: read, written, read back, and used to plan.

use super::{Files, Form, boxed, corpus, of_files};
use crate::counts::{Counts, Tally};
use crate::target::Subject;
use autobatch_ir::graph::GraphData;
use autobatch_planner::schedule::{Auto, CostTable, Fsm, Problem, Schedule, Scratch, Table, Training, train};
use autobatch_planner::{Jobs, Planner, Request};

/// A table of a policy.
trait Learned: Sized {
    fn from_json(text: &str) -> Result<Self, String>;
    fn to_json(&self) -> String;
    fn policy(self) -> Box<dyn Schedule + Send + Sync>;
}

impl Learned for Table {
    fn from_json(text: &str) -> Result<Self, String> {
        Table::from_json(text).map_err(|error| error.to_string())
    }

    fn to_json(&self) -> String {
        self.to_json()
    }

    fn policy(self) -> Box<dyn Schedule + Send + Sync> {
        Box::new(Fsm { table: self })
    }
}

impl Learned for CostTable {
    fn from_json(text: &str) -> Result<Self, String> {
        CostTable::from_json(text).map_err(|error| error.to_string())
    }

    fn to_json(&self) -> String {
        self.to_json()
    }

    fn policy(self) -> Box<dyn Schedule + Send + Sync> {
        Box::new(Auto { costs: self })
    }
}

struct Tables<T> {
    files: Files,
    graphs: Vec<GraphData>,
    table: std::marker::PhantomData<T>,
}

const FSM: [&str; 6] =
    ["\"states\":[],", "\"ready\":[1,1]", "\"value\":1,", "18446744073709551615", "[[", "\"type\":0,"];
const COSTS: [&str; 6] = ["\"gains\":[],", "-0.0", "1e308", "\"width\":0", "\"version\":2", "4294967296"];

pub(super) fn open_fsm() -> Box<dyn Subject> {
    let graphs = corpus::graphs();
    let learn = |graph: &GraphData| {
        let jobs = Jobs::new(graph, &[]);
        let problem: Problem<'_> = jobs.problem();
        let training = Training { episodes: 4, seed: 1, ..Training::default() };
        train(&[problem], &training, &mut Scratch::default()).table.to_json().into_bytes()
    };
    let seeds = graphs.iter().map(learn).collect();
    tables::<Table>(seeds, &FSM, graphs)
}

pub(super) fn open_costs() -> Box<dyn Subject> {
    let seeds = vec![CostTable::default().to_json().into_bytes()];
    tables::<CostTable>(seeds, &COSTS, corpus::graphs())
}

fn tables<T: Learned + 'static>(
    seeds: Vec<Vec<u8>>,
    tokens: &'static [&'static str],
    graphs: Vec<GraphData>,
) -> Box<dyn Subject> {
    let files = Files { form: Form::Json, seeds, tokens };
    boxed(Tables::<T> { files, graphs, table: std::marker::PhantomData })
}

impl<T: Learned> Subject for Tables<T> {
    of_files!();

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let text = String::from_utf8_lossy(input);
        let Some(table) = counts.read(text.len(), || T::from_json(&text)) else { return };
        let written = table.to_json();
        let again = T::from_json(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert!(again.to_json() == written, "the file reads back another table\n{written}");
        counts.add(Tally::Accepted);
        let graph = &self.graphs[input.len() % self.graphs.len()];
        match Planner::new(table.policy()).plan(graph, &Request::default()) {
            Ok(plan) => {
                plan.verify().unwrap_or_else(|errors| panic!("the plan is invalid: {errors}\n{written}"));
                counts.add(Tally::Planned);
            }
            Err(error) => {
                assert!(graph.outputs.is_empty(), "no plan: {error}\n{written}");
                counts.add(Tally::Unplanned);
            }
        }
    }
}
