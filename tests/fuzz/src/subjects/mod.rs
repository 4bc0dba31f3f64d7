//! The subjects of the targets.

mod corpus;
mod graphs;
mod growing;
mod modules;
mod plans;
mod random;
mod tables;
mod tasks;
mod updates;
mod values;
mod weights;

use crate::counts::Counts;
use crate::target::{Subject, Target};
use autobatch_testing::hostile::{Budget, SplitMix64, mutated_bytes, mutated_json, mutated_text, reseal};
use random::Under;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The budget of a case that reads a file.
const FILE: Budget = Budget { bytes: 64 << 20, time: Duration::from_millis(2_000) };
/// The budget of a case that makes a random graph.
const GRAPH: Budget = Budget { bytes: 128 << 20, time: Duration::from_millis(5_000) };

/// Returns all targets: first those of file forms, then those of random graphs.
#[must_use]
pub fn targets() -> Vec<Target> {
    let file = |name, about, open| Target { name, about, budget: FILE, open };
    let graph = |name, about, open| Target { name, about, budget: GRAPH, open };
    vec![
        file("graph_text", "texts of graphs", || graphs::open(Form::Text)),
        file("graph_binary", "binary files of graphs", || graphs::open(Form::Binary)),
        file("graph_json", "graphs as JSON", || graphs::open(Form::Json)),
        file("module_text", "texts of modules", || modules::open(Form::Text)),
        file("module_binary", "binary files of modules", || modules::open(Form::Binary)),
        file("plan_text", "texts of plans", || plans::open(Form::Text)),
        file("plan_binary", "binary files of plans", || plans::open(Form::Binary)),
        file("plan_json", "plans as JSON", || plans::open(Form::Json)),
        file("update_text", "texts of update plans", || updates::open(Form::Text)),
        file("update_binary", "binary files of update plans", || updates::open(Form::Binary)),
        file("update_json", "update plans as JSON", || updates::open(Form::Json)),
        file("fsm_table", "learned tables of the policy fsm", tables::open_fsm),
        file("cost_table", "cost tables of the policy auto", tables::open_costs),
        file("checkpoint", "checkpoints of trainers", weights::open_checkpoints),
        file("weights", "weights as safetensors files", weights::open_weights),
        graph("forward", "random graphs: plan, verify, prove, execute, compare", || {
            random::open(false, Under::One)
        }),
        graph("reverse", "random graphs: differentiate, verify, prove, execute, compare", || {
            random::open(true, Under::One)
        }),
        graph("forward_everywhere", "as forward, under every policy and order of rows", || {
            random::open(false, Under::Every)
        }),
        graph("reverse_everywhere", "as reverse, under every policy and order of rows", || {
            random::open(true, Under::Every)
        }),
        graph("grow", "graphs that grow: extend, verify, prove, resume, compare", growing::open),
        graph("tasks", "tasks that branch on values: together, alone, by the reference", tasks::open),
    ]
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Binary,
    Json,
}

/// Valid files of one form, and the tokens to insert into them.
struct Files {
    form: Form,
    seeds: Vec<Vec<u8>>,
    tokens: &'static [&'static str],
}

impl Files {
    fn draw(&self, random: &mut SplitMix64) -> Vec<u8> {
        match self.form {
            Form::Text => mutated_text(random, &self.seeds, self.tokens),
            Form::Binary => mutated_bytes(random, &self.seeds),
            Form::Json => mutated_json(random, &self.seeds, self.tokens),
        }
    }

    fn repair(&self, input: &mut [u8]) {
        if self.form == Form::Binary {
            reseal(input);
        }
    }

    /// Reads a plan in the form of the files, and verifies it where its reader does not.
    fn read_plan<P: DeserializeOwned, V>(
        &self,
        input: &[u8],
        counts: &mut Counts,
        text: impl FnOnce(&[u8]) -> Result<P, String>,
        binary: impl FnOnce(&[u8]) -> Result<V, String>,
        verify: impl FnOnce(P) -> Result<V, String>,
    ) -> Option<V> {
        match self.form {
            Form::Text => counts.read(input.len(), || verify(text(input)?)),
            Form::Binary => counts.read(input.len(), || binary(input)),
            Form::Json => {
                let json = String::from_utf8_lossy(input);
                counts.read(json.len(), || {
                    verify(serde_json::from_str(&json).map_err(|error| error.to_string())?)
                })
            }
        }
    }
}

/// Implements the inputs of a subject with a field `files`.
macro_rules! of_files {
    () => {
        fn seeds(&self) -> &[Vec<u8>] {
            &self.files.seeds
        }

        fn draw(&self, random: &mut autobatch_testing::hostile::SplitMix64) -> Vec<u8> {
            self.files.draw(random)
        }

        fn repair(&self, input: &mut [u8]) {
            self.files.repair(input);
        }
    };
}
use of_files;

/// Returns a subject behind a pointer.
fn boxed(subject: impl Subject + 'static) -> Box<dyn Subject> {
    Box::new(subject)
}
