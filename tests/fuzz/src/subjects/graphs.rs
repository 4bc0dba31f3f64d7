//! Files of graphs: read, written in every form, read back, then planned, proven, executed and compared.

use super::values::{forward, reverse};
use super::{Files, Form, boxed, corpus, of_files};
use crate::counts::{Counts, Tally};
use crate::effort::{is_small_graph, is_small_plan};
use crate::machine::Machine;
use crate::setting::Setting;
use crate::target::Subject;
use autobatch_ir::GraphData;
use autobatch_ir::hash::hash_bytes;
use autobatch_oracle::check::{Wanted, check};
use autobatch_planner::{Planner, Request};
use autobatch_testing::hostile::{SplitMix64, tokens};

struct Graphs {
    files: Files,
    machine: Machine,
}

pub(super) fn open(form: Form) -> Box<dyn Subject> {
    let write = |graph: &GraphData| match form {
        Form::Text => graph.to_text().into_bytes(),
        Form::Binary => graph.to_bytes(),
        Form::Json => graph.to_json(false).expect("a valid graph has a JSON form").into_bytes(),
    };
    let seeds = corpus::graphs().iter().map(write).collect();
    let tokens: &[&str] = if form == Form::Json { &tokens::GRAPH_JSON } else { &tokens::GRAPH };
    boxed(Graphs { files: Files { form, seeds, tokens }, machine: Machine::new() })
}

impl Subject for Graphs {
    of_files!();

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let read = match self.files.form {
            Form::Text => counts.read(input.len(), || GraphData::from_text(input)),
            Form::Binary => counts.read(input.len(), || GraphData::from_bytes(input)),
            Form::Json => {
                let text = String::from_utf8_lossy(input);
                counts.read(text.len(), || GraphData::from_json(&text))
            }
        };
        let Some(graph) = read else { return };
        if let Err(errors) = graph.verify() {
            assert!(self.files.form == Form::Text, "the reader accepts an invalid graph: {errors}");
            counts.add(Tally::Refused);
            return;
        }
        reads_back(&graph);
        counts.add(Tally::Accepted);
        if !is_small_graph(&graph) {
            // Planning, the proof and the refusal must stay within the budget of the case.
            counts.add(Tally::Large);
            planned_and_proven(&mut self.machine, &graph, counts);
            return;
        }
        let mut random = SplitMix64(hash_bytes(input));
        let [ahead, back] = [Setting::forward(&mut random), Setting::reverse(&mut random)];
        let outcome = forward(&mut self.machine, &graph, ahead, &mut random, true, counts)
            .and_then(|()| reverse(&mut self.machine, &graph, back, &mut random, true, counts));
        outcome.unwrap_or_else(|what| panic!("{what}\n{graph}"));
    }
}

/// Plans a graph and proves the plan. A plan beyond the limits must be refused.
fn planned_and_proven(machine: &mut Machine, graph: &GraphData, counts: &mut Counts) {
    let Ok(plan) = Planner::default().plan(graph, &Request::default()) else {
        counts.add(Tally::Unplanned);
        return;
    };
    let plan = plan.verify().unwrap_or_else(|errors| panic!("the plan is invalid: {errors}\n{graph}"));
    counts.add(Tally::Planned);
    if !is_small_plan(&plan) {
        machine.refuse(&plan).unwrap_or_else(|what| panic!("{what}\n{graph}"));
    }
    let proof = check(&plan, graph, Wanted { values: &[], training: false });
    counts.add(if proof.is_ok() { Tally::Proven } else { Tally::Unproven });
}

/// Writes a graph in every form, and asserts that each reads back equal.
fn reads_back(graph: &GraphData) {
    let (bytes, text) = (graph.to_bytes(), graph.to_text());
    let again = GraphData::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}\n{text}"));
    // The comparison is of bytes, because NaN values compare unequal.
    assert!(again.to_bytes() == bytes, "the binary form reads back another graph\n{text}");
    let json = graph.to_json(false).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = GraphData::from_json(&json).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again.to_bytes() == bytes, "JSON reads back another graph\n{text}");
    // A text numbers types and signatures anew.
    let again = GraphData::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again.to_text() == text, "the text reads back another graph\n{text}");
    assert!(again.structure() == graph.structure(), "the text reads back another structure\n{text}");
}
