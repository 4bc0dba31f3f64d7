//! Plans written by hand, in `tests/files/handwritten`: examples of the format, and the only inputs of the
//! proof and the executor that do not come from the planner.
//!
//! The tests parse, verify, prove and execute each plan. Values, losses and parameter gradients have the
//! bits of the reference, because every plan sums in graph order. (Zeros of both signs count as equal.)

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_oracle::naive::{Executed, execute};
use autobatch_oracle::reference;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/handwritten")
}

struct Example {
    graph: GraphData,
    plan: Verified<Plan>,
}

fn example(name: &str) -> Example {
    let read = |extension: &str| {
        let path = folder().join(format!("{name}.{extension}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let graph = GraphData::from_text(read("graph")).unwrap_or_else(|error| panic!("{name}.graph: {error}"));
    let plan = Plan::from_text(read("plan")).unwrap_or_else(|error| panic!("{name}.plan: {error}"));
    assert_eq!(plan.structure, graph.structure(), "{name}: the structure is {:#034x}", graph.structure());
    let plan = plan.verify().unwrap_or_else(|errors| panic!("{name}: {errors}"));
    Example { graph, plan }
}

fn same(found: &[f32], expected: &[f32], what: &str) {
    let equal = |(a, b): (&f32, &f32)| a == b;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(equal),
        "{what}: {found:?}, the reference says {expected:?}"
    );
}

fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|&word| f32::from_bits(word)).collect()
}

/// Executes an example and compares all outputs, losses and parameter gradients with the reference.
fn agrees(name: &str) -> (Example, Executed) {
    let example = example(name);
    let Example { graph, plan, .. } = &example;
    let losses: Vec<(ValueId, f32)> = match plan.given_stores() < plan.stores.len() {
        true => graph.outputs.iter().map(|output| (output.value, 1.0)).collect(),
        false => Vec::new(),
    };
    let proof = check_losses(plan, graph, Wanted { values: &[], training: true }, &losses)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let weights = Weights::init(&graph.module, 7);
    let stores: Vec<Vec<f32>> = weights.iter().map(|param| param.values().to_vec()).collect();
    let bound = &graph.bindings;
    let run = execute(plan, &stores, &bound.words, &bound.floats, Noise::Off).expect("the example is valid");
    let mode = reference::Noise::Off;
    let values = reference::forward::<f32>(graph, &weights, mode).expect("the example is valid");
    for (number, output) in graph.outputs.iter().enumerate() {
        let found = floats(run.output(number).expect("the output exists"));
        same(&found, values.floats(output.value).expect("outputs are floats"), &output.name);
    }
    if losses.is_empty() {
        return (example, run);
    }
    let expected = reference::reverse(graph, &weights, &values, &losses).expect("the example is valid");
    for (number, &value) in proof.values.iter().enumerate() {
        let found = floats(run.output(graph.outputs.len() + number).expect("the output exists"));
        same(&found, expected.value(value).unwrap_or(&vec![0.0; found.len()]), &format!("grad {value}"));
    }
    assert_eq!(proof.params.len(), graph.module.params.len(), "{name} trains all parameters");
    for param in (0..graph.module.params.len()).map(ParamId::new) {
        let found = run
            .gradient(plan.gradient_of(param).expect("the gradient has a store"))
            .expect("the run computes the gradient");
        assert!(found.iter().any(|&x| x != 0.0), "{name}: the gradient of {param} is zero");
        same(found, expected.param(param).expect("the parameter is used"), &format!("{name}: {param}"));
    }
    let again = Plan::from_text(plan.to_text()).expect("a printed plan must parse");
    assert!(again == **plan, "{name} must equal the plan parsed from its text");
    (example, run)
}

#[test]
fn two_trees_match_the_reference() {
    agrees("tree");
}

#[test]
fn two_bidirectional_sentences_match_the_reference() {
    agrees("bilstm");
}

#[test]
fn a_tree_with_any_number_of_children_matches_the_reference() {
    agrees("child_sum");
}

#[test]
fn a_lattice_matches_the_reference() {
    agrees("lattice");
}

#[test]
fn attention_over_any_number_of_values_matches_the_reference() {
    agrees("attention");
}

#[test]
fn the_grown_plan_of_a_parser_preserves_its_rows() {
    let (first, first_run) = agrees("parser_first");
    let (then, run) = agrees("parser_then");
    for (number, step) in first.plan.steps.iter().enumerate() {
        let same = &then.plan.steps[number];
        assert_eq!(
            first.plan.lanes(step),
            then.plan.lanes(same),
            "step {number} must execute the same nodes"
        );
        assert_eq!(first.plan.places(step), then.plan.places(same), "step {number} must write the same rows");
    }
    // The outputs of the first plan must not move.
    for output in &first.plan.outputs {
        let before = first_run.row(output.field, output.row);
        assert_eq!(before, run.row(output.field, output.row), "{} must not change", output.key);
    }
}

#[test]
fn every_plan_in_the_folder_has_a_test() {
    let entries = std::fs::read_dir(folder()).expect("the folder exists");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".plan").map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names, ["attention", "bilstm", "child_sum", "lattice", "parser_first", "parser_then", "tree"]);
}
