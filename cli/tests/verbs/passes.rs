//! Plans of graphs that passes rewrote first: what is told, and where the graph is.

use crate::{ORDER, says, scratch, without_folder};
use serde_json::Value as Json;

const MERGED: &str = "tests/files/merged.graph";

fn json(words: &[&str]) -> Json {
    let said = says(words);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error} in {said}"))
}

#[test]
fn the_graph_after_passes_lies_beside_the_plan_and_the_plan_is_proven_against_it() {
    for (extension, form) in [("plan", "graph"), ("abp", "abg"), ("json", "abg")] {
        let plan = scratch(&format!("rewritten.{extension}"));
        let graph = scratch(&format!("rewritten.passes.{form}"));
        let said = says(&["plan", MERGED, "--verify", "prove", "-o", &plan]);
        assert!(said.contains(&format!("autobatch check {graph} {plan}")), "{said}");
        let checked = says(&["check", &graph, &plan]);
        assert!(checked.starts_with("proven: "), "{extension}: {checked}");
        let why = says(&["explain", &plan, "--why", "%3", "%4"]);
        assert!(why.contains("%3  tanh"), "the plan finds that graph: {why}");
        std::fs::remove_file(&graph).expect("just written");
    }
}

#[test]
fn a_graph_that_passes_leave_as_it_is_lies_where_it_was() {
    let plan = scratch("untouched.plan");
    let said = without_folder(&says(&["plan", MERGED, "--stop-after", "0", "-o", &plan]));
    assert!(said.contains("autobatch check tests/files/merged.graph untouched.plan"), "{said}");
    assert!(!std::path::Path::new(&scratch("untouched.passes.graph")).exists());
    assert!(says(&["check", MERGED, &plan]).starts_with("proven: "));
}

#[test]
fn what_was_verified_is_said() {
    let each = says(&["plan", MERGED, "--verify", "each"]);
    assert!(
        each.contains("verified after each of 3 passes: the graph keeps the rules of graphs\n"),
        "{each}"
    );
    let prove = says(&["plan", MERGED, "--verify", "prove"]);
    assert!(prove.contains("and every value left is the value that it was"), "{prove}");
    assert!(!says(&["plan", MERGED, "--verify", "off"]).contains("verified"));
}

#[test]
fn an_answer_for_machines_is_one_document_whatever_passes_are_told() {
    let answer = json(&["plan", MERGED, "--json", "--verify", "each", "--print-after", "changed"]);
    let passes = answer["passes"].as_array().expect("passes are a list");
    let names: Vec<&str> = passes.iter().filter_map(|pass| pass["pass"].as_str()).collect();
    assert_eq!(names, ["fold", "cse", "outline"]);
    assert!(passes[0]["graph"].as_str().is_some_and(|text| text.starts_with("autobatch graph 2")));
    assert_eq!((&passes[2]["changed"], &passes[2]["graph"]), (&Json::Bool(false), &Json::Null));
    assert_eq!(answer["verified"], "the graph keeps the rules of graphs");
    let stopped = json(&["plan", MERGED, "--json", "--stop-after", "1"]);
    assert_eq!(stopped["passes"].as_array().map(Vec::len), Some(1));
    let plan = scratch("rewritten_json.plan");
    let written = json(&["plan", MERGED, "--json", "--verify", "each", "-o", &plan]);
    let graph = scratch("rewritten_json.passes.graph");
    assert_eq!(written["written"], serde_json::json!([graph, plan]));
}

#[test]
fn two_answers_on_standard_output_are_refused() {
    let two = says(&["plan", ORDER, "--json", "-o", "-"]);
    assert!(two.starts_with("error: -o - writes the plan") && two.ends_with("[exit 2]\n"), "{two}");
    let homeless = says(&["plan", ORDER, "--verify", "each", "-o", "-"]);
    assert!(homeless.starts_with("error: -o - ") && homeless.ends_with("[exit 2]\n"), "{homeless}");
}
